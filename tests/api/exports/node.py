"""One node of a run in a folder of its own: the script that every export starts there, with a folder in place of a bucket."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

RCLONE = """#!{python} -IS
import json, os, pathlib, shutil, sys
words = [word for word in sys.argv[1:] if not word.startswith("--") and word != "ERROR"]
store = pathlib.Path({store!r})
def at(text):
    return store / text.rpartition(":")[2] if text.startswith(":") else pathlib.Path(text)
with open({log!r}, "a") as log:
    log.write(json.dumps(words) + "\\n")
if (store / "REFUSES").exists():
    sys.exit(1)
verb, *rest = words
if verb == "copyto":
    source, target = map(at, rest)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(source, target, dirs_exist_ok=True) if source.is_dir() else shutil.copyfile(source, target)
elif verb == "rcat":
    at(rest[0]).parent.mkdir(parents=True, exist_ok=True)
    at(rest[0]).write_bytes(sys.stdin.buffer.read())
elif not at(rest[0]).exists():
    sys.exit(3)
elif verb == "cat":
    sys.stdout.write(at(rest[0]).read_text())
elif verb == "lsf":
    root = at(rest[0])
    for each in sorted(root.rglob("*")):
        if each.is_file():
            print(each.relative_to(root))
else:
    sys.exit(2)
"""
#: A script as a user would write it: saves when it is told to end, unless it hangs or fails.
TRAINING = """#!/bin/bash
echo "resume=${GPUPLAN_RESUME_FROM:-nothing}"
save() { mkdir -p "$GPUPLAN_CHECKPOINT_DIR/$1.tmp"; echo "$2" > "$GPUPLAN_CHECKPOINT_DIR/$1.tmp/weights"; mv "$GPUPLAN_CHECKPOINT_DIR/$1.tmp" "$GPUPLAN_CHECKPOINT_DIR/$1"; }
trap 'save step-900 last; exit 0' TERM
case "$1" in
  ok) save step-10 first; exit 0 ;;
  fails) save step-10 first; exit 3 ;;
  runs) save step-10 first; echo ready > "$2"; while :; do /bin/sleep 0.05; done ;;
  hangs) trap '' TERM; echo ready > "$2"; while :; do /bin/sleep 0.05; done ;;
esac
"""


#: A minute passes at once. The hours to the run limit end when there is a file `limit`; a run ends before other waits do.
SLEEP = """#!/bin/bash
if [ "$1" -gt 10000 ]; then echo "$1" > "{folder}/asked-for"; until [ -e "{folder}/limit" ]; do /bin/sleep 0.02; done
elif [ "$1" -gt 100 ]; then exec /bin/sleep 60; fi
exec /bin/sleep 0.05
"""


class Node:
    """A folder with a stand-in for rclone that keeps what it is given below `store`."""

    def __init__(self, folder: Path, script: str) -> None:
        self.folder, self.script = folder, script
        self.store, self.local, self.calls = folder / "store", folder / "local", folder / "calls"
        bin_folder = folder / "bin"
        for made in (self.store, bin_folder):
            made.mkdir(parents=True)
        program = RCLONE.format(python=sys.executable, store=str(self.store), log=str(self.calls))
        pause = SLEEP.format(folder=folder)
        for name, text in (("rclone", program), ("training", TRAINING), ("sleep", pause)):
            (bin_folder / name).write_text(text)
            (bin_folder / name).chmod(0o755)
        self.environment = os.environ | {
            "PATH": f"{bin_folder}:{os.environ['PATH']}",
            "GPUPLAN_PLAN": "plan-0123456789abcdef0123",
            "GPUPLAN_PHASE": "1",
            "GPUPLAN_CHECKPOINTS": "s3://bucket/a",
            "GPUPLAN_CHECKPOINT_DIR": str(self.local),
            "GPUPLAN_LIMIT_SECONDS": "36000",
            "GPUPLAN_RESUME": "bash run.sh",
        }

    @property
    def bucket(self) -> Path:
        """Where the checkpoints of the job are kept."""
        return self.store / "bucket" / "a"

    def start(self, *command: str, **variables: str) -> "subprocess.Popen[str]":
        """The script on the node, as a process of its own."""
        return subprocess.Popen(
            ["bash", "-c", self.script, "gpuplan", *command],
            env=self.environment | variables,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *command: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        """The script on the node to its end."""
        process = self.start(*command, **variables)
        return _ended(process)

    def signalled(self, number: signal.Signals, *command: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        """The script, sent a signal once the training says that it is ready."""
        ready = self.folder / "ready"
        process = self.start(*command, str(ready), **variables)
        until = time.monotonic() + 60
        while not ready.exists():
            assert time.monotonic() < until, process.communicate(timeout=5)
            time.sleep(0.01)
        process.send_signal(number)
        return _ended(process)

    def keep(self, name: str, *, nodes: int, of: int) -> None:
        """A checkpoint of an earlier run, kept by so many of its nodes."""
        (self.bucket / name).mkdir(parents=True)
        (self.bucket / name / "weights").write_text(name)
        marks = self.bucket / ".complete" / name
        marks.mkdir(parents=True)
        for node in range(nodes):
            (marks / f"{node}-of-{of}").write_text("\n")


def _session(leader: int) -> list[int]:
    """The processes of a session: each job of the script has a group of its own, and a job left holds the pipes open."""
    stats = [path.read_text() for path in Path("/proc").glob("[0-9]*/stat") if path.exists()]
    fields = [(int(text.split()[0]), text.rpartition(")")[2].split()) for text in stats]
    return [number for number, after_the_name in fields if int(after_the_name[3]) == leader]


def _ended(process: "subprocess.Popen[str]") -> "subprocess.CompletedProcess[str]":
    try:
        out, err = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        for member in _session(process.pid):
            os.kill(member, signal.SIGKILL)
        raise AssertionError(f"does not end: {process.communicate()}") from None
    return subprocess.CompletedProcess("run-on-node.sh", process.returncode, out, err)
