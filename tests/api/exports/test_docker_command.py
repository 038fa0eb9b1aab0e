"""The plain Docker command ends its container on every way out, and hands on the status of the run."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from gpuplan.api.exports.export_formats import one_export
from gpuplan.api.exports.launch_command import read_wishes
from tests.api.exports.documents import answer, phase

#: Notes its calls; `run` waits for a signal if there is a file `stay`, and else ends with the status in `status`.
DOCKER = """#!/bin/bash
cd "{folder}" || exit 1
echo "$*" >> calls
if [ "$1" = run ]; then
  if [ -e stay ]; then exec /bin/sleep 60; fi
  exit "$(cat status)"
fi
"""


def started(folder: Path, machine: str, *, nodes: int = 1, **environment: str) -> "subprocess.Popen[str]":
    (folder / "bin").mkdir()
    (folder / "bin" / "docker").write_text(DOCKER.format(folder=folder))
    (folder / "bin" / "docker").chmod(0o755)
    wishes = read_wishes(command="python train.py")
    (folder / "run.sh").write_text(one_export(answer(phase(machine, nodes=nodes)), to="docker", wishes=wishes).text)
    return subprocess.Popen(
        ["bash", "run.sh"],
        cwd=folder,
        env=os.environ | {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}"} | environment,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL) and None,  # noqa: PLW1509
    )


@pytest.mark.parametrize("status", [0, 3])
def test_the_status_of_the_run_is_that_of_the_script(tmp_path: Path, status: int) -> None:
    (tmp_path / "status").write_text(str(status))
    process = started(tmp_path, "own-campus")
    _, output = process.communicate(timeout=60)
    assert process.returncode == status
    assert (tmp_path / "calls").read_text().splitlines()[-1] == "rm --force gpuplan"
    assert "END THIS MACHINE" in output


@pytest.mark.parametrize(("number", "expected"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_the_container_with_time_for_a_checkpoint(
    tmp_path: Path, number: signal.Signals, expected: int
) -> None:
    (tmp_path / "stay").write_text("")
    process = started(tmp_path, "lambda")
    until = time.monotonic() + 60
    while not (tmp_path / "calls").exists() or "run --name" not in (tmp_path / "calls").read_text():
        assert time.monotonic() < until
        time.sleep(0.01)
    process.send_signal(number)
    # The stand-in keeps the pipe open, so only the script is waited for.
    assert process.wait(timeout=60) == expected
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert (tmp_path / "calls").read_text().splitlines()[-2:] == ["stop --time 900 gpuplan", "rm --force gpuplan"]


def test_several_machines_need_the_same_run_and_their_numbers(tmp_path: Path) -> None:
    process = started(tmp_path, "own-campus", nodes=2, RUN="a-run")
    _, output = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "number the machines from 0" in output
    assert not (tmp_path / "calls").exists()
