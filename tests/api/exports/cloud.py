"""A cloud in a folder: `aws`, `gcloud` and `az` that remember which machines run, and a clock that waits for nobody."""

import os
import signal
import subprocess
import sys
import time
from ast import literal_eval
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from tests.patience import MOST_SECONDS

#: What the programs do, and what goes wrong: `half` machines come up and the rest does not, `teardown` is refused, `asking`
#: is refused for a while. Places that are `full` refuse as many requests, after some of the machines where a cloud may. Machines
#: end by themselves when they have been asked about `ends_after` times; they are `preempted` so many times before.
PROGRAM = """#!{python} -IS
import sys
words, name = sys.argv[1:], sys.argv[0].rpartition("/")[2]
state = eval(open({folder!r} + "/state").read())
preempted = state["preempted"] > 0
with open({folder!r} + "/calls", "a") as log:
    log.write(repr([name, *words]) + "\\n")
# Each script calls dozens of these programs, and json takes longer to import than Python to start.
if name in ("curl", "nebius") or "--cli-input-json" in words:
    import json

def done(said="", status=0):
    with open({folder!r} + "/state", "w") as kept:
        kept.write(repr(state))
    print(said) if said != "" else None
    sys.exit(status)

def given(option):
    return words[words.index(option) + 1]

def up(names):
    state["machines"] += names
    state["most"] = max(state["most"], len(state["machines"]))

def full(place):
    left = state["full"].get(place, 0)
    state["full"][place] = left - 1
    return left > 0

def alive():
    state["asked"] += 1
    if state["wrong"] == "asking" and state["asked"] < 3:
        done("no route to the cloud", 255)
    if state["ends_after"] is not None and state["asked"] >= state["ends_after"]:
        state["machines"] = []
    if state["wrong"] == "hangs" and state["asked"] >= 2:
        state["machines"] = state["machines"][:1]
    return state["machines"]

def over():
    state["asked"] += 1
    if state["wrong"] == "asking" and state["asked"] < 3:
        done("no route to the cloud", 255)
    return state["ends_after"] is not None and state["asked"] >= state["ends_after"]

def exit_status():
    # The first machine of a run that is taken back was told to end.
    state["preempted"] -= state["preempted"] > 0
    return "143" if preempted else state["exit"]

def refuse_teardown():
    if state["wrong"] == "teardown":
        done("", 1)

if name == "aws":
    verb = words[1]
    if verb == "get-parameter": done("ami-1")
    if verb == "describe-subnets": done("subnet-1")
    if verb == "describe-instance-types": done("None")
    if verb == "create-placement-group": state["groups"].append(given("--group-name")); done()
    if verb == "describe-placement-groups": done(" ".join(state["groups"]))
    if verb == "delete-placement-group": refuse_teardown(); state["groups"].remove(given("--group-name")); done()
    if verb == "run-instances":
        asked = json.loads(given("--cli-input-json"))
        tags = asked["TagSpecifications"][0]["Tags"]
        assert any(tag["Key"] == "gpuplan-run" and "RUN" not in tag["Value"] for tag in tags), tags
        if state["wrong"] == "half" and state["machines"]: done("InsufficientInstanceCapacity", 255)
        # The first machine is had, the others are not.
        if (state["machines"] or asked["MinCount"] > 1) and full(given("--region")): done("InsufficientInstanceCapacity", 255)
        up(["i-%d" % (len(state["machines"]) + i) for i in range(asked["MinCount"])])
        done("10.0.0.5")
    if verb == "describe-instances":
        done(len(alive()) if "length(" in given("--query") else " ".join(state["machines"]))
    if verb == "terminate-instances":
        refuse_teardown()
        for each in words[words.index("--instance-ids") + 1:]: state["machines"].remove(each)
        done()
    if verb == "wait": done()
    if words[:2] == ["s3", "cp"]:
        has_ended = state["ends_after"] is not None and state["asked"] >= state["ends_after"]
        done(exit_status()) if has_ended or not state["machines"] else done("", 1)
if name == "gcloud":
    if words[:3] == ["compute", "instances", "create"]:
        names = words[3:words.index("--zone")]
        half = state["wrong"] == "half" or full(given("--zone"))
        up(names[:2] if half else names)
        done("", 1 if half else 0)
    if words[:3] == ["compute", "instances", "list"]:
        done("\\n".join(alive() if "status=(" in " ".join(words) else state["machines"]))
    if words[:3] == ["compute", "instances", "delete"]:
        refuse_teardown()
        for each in words[3:words.index("--zone")]: state["machines"].remove(each)
        done()
    if words[:2] == ["storage", "cat"]: done(exit_status())
    if words[2] == "queued-resources":
        verb = words[3]
        if verb == "create": up([words[4]]); done("", 1 if state["wrong"] == "half" else 0)
        if verb == "describe": done("FAILED" if state["wrong"] == "slice" else "ACTIVE")
        if verb == "list": done("\\n".join("projects/p/queuedResources/" + each for each in state["machines"]))
        if verb == "delete": refuse_teardown(); state["machines"].remove(words[4]); done()
    if words[2] == "tpu-vm": done("", int(state["exit"] or 1) if state["ends_after"] is not None else 75)
if name == "az":
    if words[:2] == ["account", "show"]: done("s-1")
    if words[:2] == ["identity", "show"]: done("c-1")
    if words[:2] == ["group", "create"]: state["groups"].append(given("--name")); done()
    if words[:2] == ["group", "exists"]: done("true" if given("--name") in state["groups"] else "false")
    if words[:2] == ["group", "delete"]:
        refuse_teardown()
        state["groups"].remove(given("--name"))
        state["machines"] = []
        done()
    if words[:2] == ["vmss", "create"]:
        count = int(given("--instance-count"))
        half = state["wrong"] == "half" or full(given("--location"))
        up(["m-%d" % i for i in range(2 if half else count)])
        done("", 1 if half else 0)
    if words[:2] == ["vmss", "list-instances"]: done(len(alive()))
    if words[:3] == ["storage", "blob", "download"]: open(given("--file"), "w").write(exit_status()); done()
if name == "curl":
    assert "a-key-of-the-account" in sys.stdin.read()
    verb, path = given("--request"), words[-1].split("test.invalid")[1]
    body = json.loads(open(given("--data")[1:]).read()) if "--data" in words else {{}}
    if path == "/instance-types":
        regions = [] if state["wrong"] == "no capacity" else [{{"name": "us-east-1"}}]
        done(json.dumps({{"data": {{"gpu_8x_h100_sxm5": {{"regions_with_capacity_available": regions}}}}}}))
    if path == "/instances":
        # A machine of Lambda does not end by itself.
        over()
        rows = [{{"id": each, "name": each, "status": "active"}} for each in [*state["machines"], "of-another-run"]]
        done(json.dumps({{"data": rows}}))
    if path == "/instance-operations/launch":
        assert "docker run" in body["user_data"] and body["region_name"] == "us-east-1", body
        up([body["name"]])
        done("", 22 if state["wrong"] == "half" else 0)
    if path == "/instance-operations/terminate":
        refuse_teardown()
        for each in body["instance_ids"]: state["machines"].remove(each)
        done("{{}}")
    if verb == "POST":
        assert "run-on-node.sh" in body["env"]["GPUPLAN_START"] and body["env"]["GPUPLAN_RUN"] == body["name"], body
        assert body["gpu"] == {{"id": "NVIDIA H100 80GB HBM3", "count": 8}}, body
        up([body["name"]])
        done("", 22) if state["wrong"] == "half" else done(json.dumps({{"id": body["name"]}}))
    if verb == "DELETE": refuse_teardown(); state["machines"].remove(path.split("/")[-1]); done("{{}}")
    if path == "/v2/pods" and state["wrong"] == "asking" and state["asked"] < 3: done("no route to the cloud", 255)
    if path == "/v2/pods": done(json.dumps({{"pods": [{{"id": each, "name": each}} for each in state["machines"]]}}))
    done(json.dumps({{"status": "RUNNING"}})) if path.split("/")[-1] in alive() else done("not found", 22)
if name == "nebius":
    if words[:3] == ["vpc", "subnet", "list"]: done(json.dumps({{"items": [{{"metadata": {{"id": "vpcsubnet-1"}}}}]}}))
    if words[2] == "create":
        assert "docker run" in given("--cloud-init-user-data")
        assert json.loads(given("--network-interfaces"))[0]["subnet_id"] == "vpcsubnet-1"
        assert (given("--resources-platform"), given("--resources-preset")) == ("gpu-h200-sxm", "8gpu-128vcpu-1600gb")
        up([given("--name")])
        done("", 1 if state["wrong"] == "half" else 0)
    if words[2] == "list":
        # A machine that shut itself down is still there, stopped.
        stopped = over()
        status = {{"state": "STOPPED" if stopped else "RUNNING"}}
        rows = [{{"metadata": {{"id": each, "name": each}}, "status": status}} for each in state["machines"]]
        done(json.dumps({{"items": rows}} if rows else {{}}))
    if words[2] == "delete": refuse_teardown(); state["machines"].remove(given("--id")); done()
done("unknown: " + " ".join([name, *words]), 2)
"""
#: Waiting moves the clock. With a file `stay` the first wait lasts until a signal comes.
SLEEP = """#!/bin/bash
cd "{folder}" || exit 1
echo $(($(cat clock) + $1)) > clock
if [ -e stay ]; then echo > waiting; exec /bin/sleep 60; fi
"""
DATE = '#!/bin/bash\nif [ "$*" = +%s ]; then cat "{folder}/clock"; else exec /bin/date "$@"; fi\n'
TIMEOUT = '#!/bin/bash\nshift 2\nexec "$@"\n'
ACCOUNT = {
    "SECURITY_GROUP_ID": "sg-1",
    "INSTANCE_PROFILE": "trainer",
    "IDENTITY_ID": "/identities/trainer",
    "LAMBDA_API_KEY": "a-key-of-the-account",
    "RUNPOD_API_KEY": "a-key-of-the-account",
    "GPUPLAN_LAMBDA_ENDPOINT": "https://test.invalid",
    "GPUPLAN_RUNPOD_ENDPOINT": "https://test.invalid",
    "SSH_KEY_NAME": "my-key",
    "NEBIUS_PROJECT_ID": "project-1",
}


class Cloud:
    """The folder, and how a script is run in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        programs = folder / "bin"
        programs.mkdir()
        text = PROGRAM.format(python=sys.executable, folder=str(folder))
        stand_ins = dict.fromkeys(("aws", "gcloud", "az", "curl", "nebius"), text) | {
            "sleep": SLEEP.format(folder=folder),
            "date": DATE.format(folder=folder),
            "timeout": TIMEOUT,
            "python3": f'#!/bin/sh\nexec {sys.executable} -IS "$@"\n',
        }
        for name, program in stand_ins.items():
            (programs / name).write_text(program)
            (programs / name).chmod(0o755)
        (folder / "clock").write_text("1000000\n")
        (folder / "calls").write_text("")
        (folder / "credentials").write_text("RCLONE_S3_ACCESS_KEY_ID=an-id\n")
        account = ACCOUNT | {"CREDENTIALS_FILE": str(folder / "credentials")}
        self.environment = os.environ | account | {"PATH": f"{programs}:{os.environ['PATH']}"}

    def run(
        self, script: str, *, signalled: signal.Signals | None = None, words: Sequence[str] = (), **state: Any
    ) -> tuple[int, str]:
        """Exit status and messages of a script with these words; `signalled` once it waits for the run."""
        known = {
            "machines": [],
            "groups": [],
            "asked": 0,
            "most": 0,
            "ends_after": 3,
            "wrong": "",
            "exit": "0",
            "preempted": 0,
            "full": {},
        }
        known |= state
        (self.folder / "state").write_text(repr(known))
        (self.folder / "run.sh").write_text(script)
        if signalled is not None:
            (self.folder / "stay").write_text("")
        # `nohup` ignores hang-ups and a shell's background interrupts: bash would inherit that and could not trap them.
        heeded = partial(signal.signal, signalled, signal.SIG_DFL) if signalled is not None else None
        output_file = self.folder / "said"
        with output_file.open("w") as messages:
            process = subprocess.Popen(
                ["bash", "run.sh", *words],
                cwd=self.folder,
                env=self.environment,
                stdout=subprocess.DEVNULL,
                stderr=messages,
                start_new_session=True,
                preexec_fn=heeded,  # noqa: PLW1509 (nothing else runs in this process that the fork could meet half-way)
            )
        try:
            if signalled is not None:
                self._wait(process)
                (self.folder / "stay").unlink()
                process.send_signal(signalled)
            return process.wait(timeout=MOST_SECONDS), output_file.read_text()
        finally:
            # A wait that was broken off, or a script that does not end.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _wait(self, process: "subprocess.Popen[bytes]") -> None:
        until = time.monotonic() + 60
        while not (self.folder / "waiting").exists():
            assert process.poll() is None, (self.folder / "said").read_text()
            assert time.monotonic() < until
            time.sleep(0.01)

    @property
    def left(self) -> list[str]:
        """Machines and groups that are still there."""
        state = literal_eval((self.folder / "state").read_text())
        return [*state["machines"], *state["groups"]]

    @property
    def most(self) -> int:
        """How many machines there were at once."""
        return int(literal_eval((self.folder / "state").read_text())["most"])

    @property
    def calls(self) -> list[list[str]]:
        """Every call of a program of a cloud."""
        return [literal_eval(line) for line in (self.folder / "calls").read_text().splitlines()]
