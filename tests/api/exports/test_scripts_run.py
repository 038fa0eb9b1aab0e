"""Scripts are run, with programs in place of the clouds' that write down how they were called and answer as those do."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from gpuplan.api.exports.export_formats import one_export
from gpuplan.api.exports.launch_command import read_wishes
from tests.api.exports.documents import answer, phase

pytestmark = pytest.mark.slow(reason="runs whole scripts")

NAME = "it's; $(touch HACKED) `touch HACKED` ${x}"
COMMAND = """python train.py --note 'a "b" $(touch HACKED)' '$HOME' '*'"""
SCRIPT = ["train.py", "--note", 'a "b" $(touch HACKED)', "$HOME", "*"]

#: What a stand-in prints, by what its arguments hold.
ANSWERS = {
    "get-parameter": "ami-0123456789abcdef0",
    "describe-subnets": "subnet-1",
    "describe-instance-types": "2",
    "Instances[0].PrivateIpAddress": "10.0.0.5",
    "value(state.state)": "ACTIVE",
    "hostnames": "node-a\nnode-b",
    "length(": "0",
    "exit-0": "0",
    "show": "subscription-1",
    "exists": "false",
    "clientId": "client-1",
    "ami-launch-index": "1",
    "-I": "10.0.0.5 172.17.0.1",
}
PLACES = {"gcp": "gs://my-bucket/a", "azure": "abfs://runs@account1.dfs.core.windows.net/a"}
#: What comes from the user's account.
ACCOUNT = {"SECURITY_GROUP_ID": "sg-1", "INSTANCE_PROFILE": "trainer", "IDENTITY_ID": "/identities/trainer"}
STAND_IN = """#!{python} -IS
import json, os, pathlib, sys
words = sys.argv[1:]
paths = [word.removeprefix("file://").removeprefix("startup-script=") for word in words]
files = [pathlib.Path(path).read_text() for path in paths if path.startswith("/") and pathlib.Path(path).is_file()]
call = {{"program": pathlib.Path(sys.argv[0]).name, "words": words, "files": files, "env": dict(os.environ)}}
with open({log!r}, "a") as log:
    log.write(json.dumps(call) + "\\n")
if "--file" in words:
    pathlib.Path(words[words.index("--file") + 1]).write_text("0")
    sys.exit()
for key, said in {answers!r}.items():
    if any(key in word for word in words):
        print(said)
        break
"""


#: Those of the clouds and Slurm, and what would end this machine or let a test wait.
PROGRAMS = (
    *("aws", "gcloud", "az", "docker", "curl", "hostname", "srun", "scontrol", "torchrun"),
    *("shutdown", "rclone", "sudo", "python"),
)
#: Minutes pass at once; hours last until whoever waits is ended.
SLEEP = '#!/bin/bash\nif [ "$1" -gt 1000 ]; then exec /bin/sleep 60; fi\n'


class Call(NamedTuple):
    """How a program was called."""

    program: str
    words: list[str]
    files: list[str]
    env: dict[str, str]


class Shell:
    """Bash in a folder of its own, where only stand-ins have the clouds' names."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "calls"
        stand_ins = folder / "bin"
        stand_ins.mkdir()
        text = STAND_IN.format(python=sys.executable, log=str(self.log), answers=ANSWERS)
        for name in PROGRAMS:
            (stand_ins / name).write_text(text)
            (stand_ins / name).chmod(0o755)
        (stand_ins / "sleep").write_text(SLEEP)
        (stand_ins / "sleep").chmod(0o755)
        self.environment = os.environ | {"PATH": f"{stand_ins}:{os.environ['PATH']}", "x": "HACKED"}

    def run(self, script: str, **variables: str) -> list[Call]:
        """The calls of a script that ends well and touches nothing."""
        self.log.write_text("")
        done = subprocess.run(
            ["bash"],
            input=script,
            env=self.environment | ACCOUNT | variables,
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        assert not (self.folder / "HACKED").exists()
        return [Call(**json.loads(line)) for line in self.log.read_text().splitlines()]


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def script(to: str, machine: str, *, nodes: int = 3, kind: str = "spot") -> str:
    document = answer(phase(machine, nodes=nodes, kind=kind), name=NAME)
    return one_export(
        document, to=to, wishes=read_wishes(command=COMMAND, checkpoints=PLACES.get(machine.partition("-")[0]))
    ).text


def started(shell: Shell, boot: str, rank: int, address: str, **variables: str) -> None:
    """What a machine starts with: one container, whose launcher knows its rank, the first node and the layout."""
    (run,) = [call for call in shell.run(boot, **variables) if call.program == "docker" and call.words[0] == "run"]
    values = [word for option, word in zip(run.words, run.words[1:], strict=False) if option == "--env"]
    assert f"GPUPLAN_JOB={NAME}" in values
    assert "GPUPLAN_TENSOR_PARALLEL=2" in values
    assert "GPUPLAN_CHECKPOINT_SECONDS=900" in values
    line = run.words[run.words.index("torchrun") :]
    assert line == [
        *f"torchrun --nnodes 3 --node-rank {rank} --master-addr {address} --master-port 29500".split(),
        *["--nproc-per-node", "8"],
        *SCRIPT,
    ]


def given(call: Call, option: str) -> str:
    return call.words[call.words.index(option) + 1]


def test_on_aws_the_first_node_starts_and_then_the_others_with_its_address(shell: Shell) -> None:
    calls = shell.run(script("aws-cli", "aws"))
    head, workers = [call for call in calls if call.words[:2] == ["ec2", "run-instances"]]
    for call, count in ((head, 1), (workers, 2)):
        asked = json.loads(given(call, "--cli-input-json"))
        assert (asked["MinCount"], asked["MaxCount"], asked["InstanceType"]) == (count, count, "p5.48xlarge")
        assert given(call, "--image-id") == "ami-0123456789abcdef0"
        cards = call.words[call.words.index("--network-interfaces") + 1 :][:2]
        assert cards == [
            f"NetworkCardIndex={i},DeviceIndex={i},InterfaceType=efa,SubnetId=subnet-1,Groups=sg-1" for i in (0, 1)
        ]
    started(shell, head.files[0], 0, "10.0.0.5")
    started(shell, workers.files[0], 2, "10.0.0.5")


def test_on_aws_several_nodes_need_a_security_group(shell: Shell) -> None:
    done = subprocess.run(
        ["bash"],
        input=script("aws-cli", "aws"),
        env=shell.environment | {"INSTANCE_PROFILE": "trainer"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "SECURITY_GROUP_ID: name a security group whose members may reach each other" in done.stderr
    assert not shell.log.exists()


def test_on_google_cloud_all_nodes_start_at_once_and_know_themselves_by_name(shell: Shell) -> None:
    calls = shell.run(script("gcloud", "gcp"))
    (create,) = [call for call in calls if call.words[:3] == ["compute", "instances", "create"]]
    names = create.words[3:6]
    assert [name.rpartition("-")[2] for name in names] == ["0", "1", "2"]
    assert given(create, "--zone") == "us-central1-a"
    for rank, name in enumerate(names):
        started(shell, create.files[0], rank, names[0], HOSTNAME=name)
        started(shell, create.files[0], rank, names[0], HOSTNAME=f"{name}.us-central1-a.c.project-1.internal")


def test_on_azure_a_scale_set_starts_and_its_host_names_say_the_rank(shell: Shell) -> None:
    calls = shell.run(script("az", "azure"))
    (create,) = [call for call in calls if call.words[:2] == ["vmss", "create"]]
    first = given(create, "--computer-name-prefix")
    for rank in (0, 2):
        started(shell, create.files[0], rank, f"{first}000000", HOSTNAME=f"{first}00000{rank}")


def test_a_tpu_slice_is_waited_for_and_runs_the_command_on_all_hosts(shell: Shell) -> None:
    calls = shell.run(script("gcloud", "gcp-tpu"))
    assert [call.words[3] for call in calls if call.words[:2] == ["compute", "tpus"]] == [
        "create",
        "describe",
        "ssh",
        "list",
    ]
    remote_command = given(next(call for call in calls if "ssh" in call.words), "--command")
    on_host = shell.run(remote_command.replace("python train.py", "torchrun train.py"))
    (inside,) = [call for call in on_host if call.program == "torchrun"]
    assert inside.words == SCRIPT
    assert inside.env["GPUPLAN_JOB"] == NAME
    (limit,) = [call for call in on_host if call.program == "sudo"]
    assert limit.words[:2] == ["systemd-run", "--on-active=540300"]
    assert limit.words[2:7] == ["gcloud", "compute", "tpus", "queued-resources", "delete"]


def test_slurm_starts_one_launcher_on_every_node(shell: Shell) -> None:
    calls = shell.run(script("slurm", "aws"), SLURM_JOB_NODELIST="node-[a-b]", SLURM_JOB_ID="7")
    (run,) = [call for call in calls if call.program == "srun"]
    assert run.words[:2] == ["bash", "-c"]
    known = {key: run.env[key] for key in run.env if key == "HEAD" or key.startswith("GPUPLAN") or key == "RUN_ON_NODE"}
    inside = launched(shell.run(run.words[2], SLURM_NODEID="1", **known))
    expected = "--nnodes 3 --node-rank 1 --master-addr node-a --master-port 29500 --nproc-per-node 8"
    assert inside.words == [*expected.split(), *SCRIPT]
    assert (run.env["GPUPLAN_JOB"], run.env["GPUPLAN_RUN"]) == (NAME, "slurm-7")
    (alone,) = [call for call in shell.run(script("slurm", "aws", nodes=1), SLURM_JOB_ID="7") if call.program == "srun"]
    assert alone.words[3:] == ["gpuplan", "torchrun", "--standalone", "--nproc-per-node", "8", *SCRIPT]


def launched(calls: list[Call]) -> Call:
    """How the launcher was called."""
    (torchrun,) = [call for call in calls if call.program == "torchrun"]
    return torchrun


def test_skypilot_and_dstack_start_one_launcher_on_every_node(shell: Shell) -> None:
    expected = "--nnodes 3 --node-rank 1 --master-addr 10.0.0.5 --master-port 29500 --nproc-per-node 8"
    task = yaml.safe_load(script("skypilot", "aws"))
    place = {"HOME": str(shell.folder)}
    ranked = {
        "SKYPILOT_NODE_IPS": "10.0.0.5\n10.0.0.6\n10.0.0.7",
        "SKYPILOT_NODE_RANK": "1",
        "SKYPILOT_TASK_ID": "sky-1",
    }
    line = launched(shell.run(task["run"], **place, **ranked, **task["envs"]))
    assert line.words == [*expected.split(), *SCRIPT]
    task = yaml.safe_load(script("dstack", "aws"))
    ranked = {"DSTACK_MASTER_NODE_IP": "10.0.0.5", "DSTACK_NODE_RANK": "1", "DSTACK_RUN_ID": "run-1"}
    line = launched(shell.run(task["commands"][0], **place, **ranked, **task["env"]))
    assert line.words == [*expected.split(), *SCRIPT]


def test_terraform_starts_machines_that_do_the_same(shell: Shell) -> None:
    aws = _resources("aws")["aws_instance"]
    assert _resources("aws")["aws_launch_template"]["node"]["instance_initiated_shutdown_behavior"] == "terminate"
    started(shell, _rendered(aws["head"]["user_data"]), 0, "10.0.0.5")
    worker = aws["worker"]["user_data"].replace("${count.index + 1}", "2")
    started(shell, _rendered(worker.replace("${aws_instance.head.private_ip}", "10.0.0.5")), 2, "10.0.0.5")
    node = _resources("gcp")["google_compute_instance"]["node"]
    name = node["name"].replace("${count.index}", "1")
    started(shell, _rendered(node["metadata_startup_script"]), 1, name[:-1] + "0", HOSTNAME=name)


def _resources(machine: str) -> Any:
    return json.loads(script("terraform", machine))["resource"]


def _rendered(text: str) -> str:
    """What Terraform makes of a literal; nothing that it would expand may be left."""
    left = text.replace("$${", "\0").replace("%%{", "\1")
    assert "${" not in left
    assert "%{" not in left
    return left.replace("\0", "${").replace("\1", "%{")


def test_the_words_of_the_command_are_what_a_shell_reads() -> None:
    assert shlex.split(COMMAND) == ["python", *SCRIPT]
