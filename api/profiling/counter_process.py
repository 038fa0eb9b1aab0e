"""Runs the counter under the user's interpreter with torch, with limits of time and output, and without leftovers.

The user's code runs in its own process group, which is killed as a whole, together with processes that left the group
if the system can identify them (Linux). Its output is read and dropped, so that it cannot fill a disk or mix with the
answer.
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

from gpuplan.catalog.runtime.errors import UnusableInput

COUNTER = Path(__file__).parent / "counter"
INTERPRETER = "GPUPLAN_TORCH_PYTHON"
#: Environment variable that marks the process and all its descendants, in any process group.
_MARK = "GPUPLAN_COUNTING"
#: Bytes kept of the end of the output, which contains the reason of a failure.
_OUTPUT_TAIL = 4096
#: Largest result file; counts are a few kilobytes.
_LARGEST_RESULT = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The end of the counter: exit status, last output, and whether it left other processes."""

    status: int
    output: str
    left_others: bool


def interpreter(given: Path | None) -> str:
    """The Python with torch: as given, from the environment, or the running one if it has torch.

    Raises `UnusableInput` at "python" if there is none.
    """
    named = str(given) if given is not None else os.environ.get(INTERPRETER)
    if named:
        path = shutil.which(named)
        if path is None:
            raise UnusableInput.at(
                "python", message=f"{named} is not an executable program; give the path of a Python with torch"
            )
        return path
    if importlib.util.find_spec("torch") is None:
        message = (
            "torch is not installed beside gpuplan; name the interpreter of your training environment with --python PATH "
            f"(or {INTERPRETER}), or install torch: the CPU build is enough"
        )
        raise UnusableInput.at("python", message=message)
    return sys.executable


def run_counter(request: dict[str, Any], *, python: str, timeout_seconds: float) -> dict[str, Any]:
    """Run the counter and return its result. Raises `UnusableInput` for all failures."""
    with tempfile.TemporaryDirectory(prefix="gpuplan-profile-") as folder:
        question, answer = Path(folder) / "request.json", Path(folder) / "result.json"
        question.write_text(json.dumps(request), encoding="utf-8")
        # Without this, warnings at the end of the output would hide the reason of a failure.
        command = [python, "-B", "-W", "ignore", str(COUNTER), str(question), str(answer)]
        ended = _run(command, timeout_seconds)
        result = _read(answer, ended, request["target"], python)
    if "error" in result:
        raise UnusableInput.at(result["error"]["field"], message=_where(result["error"], python))
    if ended.left_others:
        result["notes"].append("the module started other processes, which were killed")
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
    """Read the output while the process runs, keep its end, and always kill the group and all marked processes."""
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
        for process_id in _marked(mark):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process_id, signal.SIGKILL)
        # An unidentified process may keep the pipe open; do not wait for it.
        reader.join(timeout=1)


def _drain(stream: IO[bytes], tail: bytearray) -> None:
    while chunk := os.read(stream.fileno(), 65_536):
        tail += chunk
        del tail[:-_OUTPUT_TAIL]
    stream.close()


def _marked(mark: str) -> list[int]:
    """Ids of processes with the mark in their environment; empty without /proc."""
    wanted, process_ids = f"{_MARK}={mark}".encode(), []
    for place in Path("/proc").glob("[0-9]*/environ"):
        # A process may end meanwhile; those of other users are not readable.
        with contextlib.suppress(OSError):
            if wanted in place.read_bytes():
                process_ids.append(int(place.parent.name))
    return process_ids


def _group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _read(answer: Path, ended: Ended, target: str, python: str) -> dict[str, Any]:
    """The contents of the result file. Raises `UnusableInput` with the reason if there is none."""
    if answer.is_file() and answer.stat().st_size <= _LARGEST_RESULT:
        with contextlib.suppress(ValueError):
            result = json.loads(answer.read_text(encoding="utf-8"))
            if isinstance(result, dict) and ({"error"} <= set(result) or {"counts", "model", "notes"} <= set(result)):
                return result
    how = f"was killed by {_signal(-ended.status)}" if ended.status < 0 else f"ended with status {ended.status}"
    lines = [line.strip() for line in ended.output.splitlines() if line.strip()]
    last_output = f"; its last output: {lines[-1][:200]}" if lines else ""
    raise UnusableInput.at(
        "target", message=f"the process that counted {target} {how} before it was done{last_output} [{python}]"
    )


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
