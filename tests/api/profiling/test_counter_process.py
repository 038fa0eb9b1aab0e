"""The process that counts is bounded, and every way in which it can fail is one clear line."""

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpuplan.api.profiling import counter_process
from gpuplan.api.profiling.counter_process import interpreter, run_counter
from gpuplan.catalog.runtime.errors import UnusableInput
from tests.patience import until

pytestmark = pytest.mark.slow(reason="needs torch")

REQUEST = {"target": "train:make", "inputs": [], "targets": [], "batch": 1, "batch_axis": 0}
RESULT: dict[str, Any] = {"counts": [], "model": {}, "notes": []}
ANSWER = f"import json, os, sys, time; answer = lambda: open(sys.argv[2], 'w').write({json.dumps(RESULT)!r})\n"
Counter = Callable[[str], None]


@pytest.fixture
def counter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Counter:
    """Put a program in the counter's place that does what a user's module might."""

    def place(program: str) -> None:
        script = tmp_path / "counter.py"
        script.write_text(ANSWER + program, encoding="utf-8")
        monkeypatch.setattr(counter_process, "COUNTER", script)

    return place


def ran(timeout_seconds: float = 60.0) -> dict[str, Any]:
    return run_counter(REQUEST, python=sys.executable, timeout_seconds=timeout_seconds)


def refusal(timeout_seconds: float = 60.0, field: str = "target") -> str:
    with pytest.raises(UnusableInput) as refused:
        ran(timeout_seconds)
    (fault,) = refused.value.faults
    assert fault.field == field
    assert "\n" not in fault.message
    return fault.message


def test_what_the_module_prints_is_dropped_however_much_it_is(counter: Counter) -> None:
    counter("print('x' * 50_000_000); sys.stderr.write('y' * 1000); answer()")
    assert ran() == RESULT


def test_a_module_that_never_returns_is_stopped_with_all_that_it_started(counter: Counter, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    counter(
        f"pid = os.fork()\nif not pid: time.sleep(60)\nopen({str(pid_file)!r}, 'w').write(str(pid)); time.sleep(60)"
    )
    for seconds in (1, 4, 16, 64):  # until it is long enough for the module to begin
        assert f"took more than {seconds} s and was stopped; give --timeout SECONDS" in refusal(seconds)
        if pid_file.exists():
            break
    gone(int(pid_file.read_text(encoding="utf-8")))


def test_processes_that_a_module_leaves_behind_are_ended_and_mentioned(counter: Counter, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    counter(f"pid = os.fork()\nif not pid: time.sleep(60)\nopen({str(pid_file)!r}, 'w').write(str(pid)); answer()")
    assert ran()["notes"] == ["the module started other processes, which were killed"]
    gone(int(pid_file.read_text(encoding="utf-8")))


def test_a_process_that_leaves_the_group_is_ended_and_mentioned_too(counter: Counter, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    daemon = f"os.setsid(); open({str(pid_file)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    counter(f"if not os.fork(): {daemon}\nwhile not os.path.exists({str(pid_file)!r}): time.sleep(0.01)\nanswer()")
    assert ran()["notes"] == ["the module started other processes, which were killed"]
    gone(int(pid_file.read_text(encoding="utf-8")))


def gone(pid: int) -> None:
    """Fails where a process goes on running; one that was killed may linger until its parent has looked."""

    def ended() -> bool:
        try:
            return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0] == "Z"
        except (FileNotFoundError, ProcessLookupError):
            return True

    until(ended, seconds=30)  # by itself it ends after a minute


def test_a_module_that_ends_the_process_is_told_with_its_last_words(counter: Counter) -> None:
    counter("print('CUDA is required'); sys.stdout.flush(); os._exit(7)")
    message = refusal()
    assert "the process that counted train:make ended with status 7 before it was done" in message
    assert "its last output: CUDA is required" in message


def test_a_warning_is_never_taken_for_the_last_words(counter: Counter) -> None:
    counter("import warnings; print('no licence', flush=True); warnings.warn('numpy is missing'); os._exit(7)")
    assert "its last output: no licence" in refusal()


def test_a_crash_is_told_by_its_signal(counter: Counter) -> None:
    counter(f"os.kill(os.getpid(), {int(signal.SIGSEGV)})")
    assert "was killed by SIGSEGV" in refusal()


def test_a_module_that_asks_the_terminal_gets_no_answer(counter: Counter) -> None:
    counter("input('which dataset? ')")
    assert "EOFError" in refusal()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"counts": 1}', "x" * 2_000_000])
def test_a_result_that_is_none_is_not_believed(counter: Counter, text: str) -> None:
    counter(
        f"open(sys.argv[2], 'w').write({text!r})" if len(text) < 99 else "open(sys.argv[2], 'w').write('1' * 2_000_000)"
    )
    assert "before it was done" in refusal()


def test_nothing_is_left_in_the_folder_for_temporary_files(
    counter: Counter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    counter("answer()")
    ran()
    counter("os._exit(1)")
    refusal()
    assert list(folder.iterdir()) == []


def test_an_interpreter_without_torch_is_named_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment that gpuplan runs in has no torch."""
    message = refusal(field="python")
    assert sys.executable in message
    assert "cannot import torch" in message
    monkeypatch.delenv(counter_process.INTERPRETER, raising=False)
    with pytest.raises(UnusableInput, match="torch is not installed beside gpuplan; name the interpreter"):
        interpreter(None)


def test_an_interpreter_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(UnusableInput, match="is not an executable program"):
        interpreter(tmp_path / "python")
    monkeypatch.setenv(counter_process.INTERPRETER, "no-such-python")
    with pytest.raises(UnusableInput, match="no-such-python is not an executable program"):
        interpreter(None)
    script = tmp_path / "broken"
    script.write_text("no program", encoding="utf-8")
    script.chmod(0o755)
    with pytest.raises(UnusableInput, match="cannot be run"):
        run_counter(REQUEST, python=interpreter(script), timeout_seconds=5)


def test_the_option_goes_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(counter_process.INTERPRETER, "no-such-python")
    assert interpreter(Path(sys.executable)) == sys.executable
    assert os.environ[counter_process.INTERPRETER] == "no-such-python"
