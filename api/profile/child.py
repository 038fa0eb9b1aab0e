"""Run the counter under the interpreter that has the user's torch: bounded in time, output and what it leaves behind.

The user's code is imported and run there, in a process group of its own that is ended as a whole, with those
that left the group where the system tells them (Linux); what it prints is read and dropped, so that it can neither fill a disk nor mix with the answer.
"""

import contextlib
import importlib.util
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from catalog.errors import UnusableInput

COUNTER = Path(__file__).parent / "counter"
INTERPRETER = "GPUPLAN_TORCH_PYTHON"
#: In the environment of the process and of all that it starts, whatever group they move to.
_MARK = "GPUPLAN_COUNTING"
#: The end of what a process says, which is where it says why it stopped.
_KEPT_OUTPUT = 4096
#: Counts are a few kilobytes.
_LARGEST_RESULT = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How the counter ended: its exit status, the end of its output, and whether other processes were left."""

    status: int
    output: str
    left_others: bool


def interpreter(given: Path | None) -> str:
    """The Python with torch: as given, as the environment names it, or the running one if it has torch.

    Raises `UnusableInput` at "python" where there is none.
    """
    named = str(given) if given is not None else os.environ.get(INTERPRETER)
    if named:
        found = shutil.which(named)
        if found is None:
            raise UnusableInput.at(
                "python", message=f"{named} is no program that can be run; give the path of a Python with torch"
            )
        return found
    if importlib.util.find_spec("torch") is None:
        message = (
            "torch is not installed beside gpuplan; name the interpreter of your training environment with --python PATH "
            f"(or {INTERPRETER}), or install torch: the CPU build is enough"
        )
        raise UnusableInput.at("python", message=message)
    return sys.executable


def run_counter(request: dict[str, Any], *, python: str, timeout_seconds: float) -> dict[str, Any]:
    """What the counter found. Raises `UnusableInput` for whatever kept it from finding it."""
    with tempfile.TemporaryDirectory(prefix="gpuplan-profile-") as folder:
        question, answer = Path(folder) / "request.json", Path(folder) / "result.json"
        question.write_text(json.dumps(request), encoding="utf-8")
        # Warnings would stand last in what a process says, in place of why it stopped.
        command = [python, "-B", "-W", "ignore", str(COUNTER), str(question), str(answer)]
        ended = _run(command, timeout_seconds)
        result = _read(answer, ended, request["target"], python)
    if "error" in result:
        raise UnusableInput.at(result["error"]["field"], message=_where(result["error"], python))
    if ended.left_others:
        result["notes"].append("the module started processes of its own, which were ended")
    return result


def _where(error: dict[str, str], python: str) -> str:
    return f"{python}: {error['message']}" if error["field"] == "python" else error["message"]


def _run(command: list[str], timeout_seconds: float) -> Ended:
    mark = secrets.token_hex(16)
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=os.environ | {_MARK: mark},
        )
    except OSError as error:
        raise UnusableInput.at("python", message=f"{command[0]} cannot be run: {error.strerror}") from None
    with _ended_with_its_group(process, mark) as tail:
        try:
            status = process.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            message = (
                f"took more than {timeout_seconds:g} s and was stopped; give --timeout SECONDS, or a smaller input"
            )
            raise UnusableInput.at("target", message=message) from None
        left = _group_lives(process.pid) or bool(_marked(mark))
    return Ended(status=status, output=bytes(tail).decode(errors="replace"), left_others=left)


@contextlib.contextmanager
def _ended_with_its_group(process: subprocess.Popen[bytes], mark: str) -> Iterator[bytearray]:
    """Read the output while the process runs, keep its end, and kill the group and all with the mark whatever happens."""
    tail = bytearray()
    stream = process.stdout
    if stream is None:
        raise TypeError("the process must have been started with a pipe")
    reader = threading.Thread(target=_drain, args=(stream, tail), daemon=True)
    reader.start()
    try:
        yield tail
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for stray in _marked(mark):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(stray, signal.SIGKILL)
        # Where strays are not told, one may hold the pipe open; nothing waits for it.
        reader.join(timeout=1)


def _drain(stream: IO[bytes], tail: bytearray) -> None:
    while chunk := os.read(stream.fileno(), 65_536):
        tail += chunk
        del tail[:-_KEPT_OUTPUT]
    stream.close()


def _marked(mark: str) -> list[int]:
    """Processes that carry the mark in their environment; none where the system has no /proc."""
    wanted, found = f"{_MARK}={mark}".encode(), []
    for place in Path("/proc").glob("[0-9]*/environ"):
        # One may end while it is looked at, and those of other users are not shown.
        with contextlib.suppress(OSError):
            if wanted in place.read_bytes():
                found.append(int(place.parent.name))
    return found


def _group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _read(answer: Path, ended: Ended, target: str, python: str) -> dict[str, Any]:
    """The result file, or why there is none."""
    if answer.is_file() and answer.stat().st_size <= _LARGEST_RESULT:
        with contextlib.suppress(ValueError):
            result = json.loads(answer.read_text(encoding="utf-8"))
            if isinstance(result, dict) and ({"error"} <= set(result) or {"counts", "model", "notes"} <= set(result)):
                return result
    how = f"was killed by {_signal(-ended.status)}" if ended.status < 0 else f"ended with status {ended.status}"
    lines = [line.strip() for line in ended.output.splitlines() if line.strip()]
    said = f"; it last said: {lines[-1][:200]}" if lines else ""
    raise UnusableInput.at(
        "target", message=f"the process that counted {target} {how} before it was done{said} [{python}]"
    )


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
