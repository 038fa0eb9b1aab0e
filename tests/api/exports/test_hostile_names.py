"""Whatever a job is called and a command contains: the files parse, the words come back, nothing is executed."""

import json
import shlex
import subprocess
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.api.exports.export_formats import FORMATS, exports
from gpuplan.api.exports.handover_reader import read_handover
from gpuplan.api.exports.launch_command import read_wishes
from gpuplan.api.exports.plan_handover import Wishes
from tests.api.exports.documents import Document, answer, phase

pytestmark = pytest.mark.slow(reason="runs whole scripts")

TRICKS = [
    "\n- x: y",
    "---",
    "...",
    "!!python/object/apply:os.system [id]",
    "&a *a",
    "%TAG",
    "# x",
    "': \"",
    "${x}",
    "%{x}",
]
TRICKS += [
    "$(id)",
    "`id`",
    "GPUPLAN_END",
    "\nGPUPLAN_END\nid\n",
    "=cmd|' /C calc'!A0",
    "../../x",
    "\x00",
    "\u2028",
    "\ud800",
]
ANY_NAME = st.one_of(st.text(max_size=60), st.lists(st.sampled_from(TRICKS), max_size=4).map("".join))
#: What a shell word may be; control characters are refused at the door.
ANY_WORD = st.text(st.characters(exclude_categories=("C", "Zl", "Zp")), min_size=1, max_size=30).filter(str.isprintable)
MACHINE = {"gcloud": "gcp", "az": "azure"}


def one(to: str, name: str, wishes: Wishes | None = None) -> str:
    # The interfaces of neoclouds start one machine, and those of Lambda and RunPod have no spot machines.
    row = phase(to, nodes=1) if to in ("lambda", "runpod", "nebius") else phase(MACHINE.get(to, "aws"), kind="spot")
    document: Document = answer(row, name=name)
    (made,) = exports(document, to=to, wishes=wishes)
    assert "/" not in made.file_name
    assert made.file_name.replace(".", "").replace("-", "").isalnum()
    made.text.encode()
    return made.text


@given(ANY_NAME)
@settings(max_examples=12, deadline=None)
def test_yaml_says_the_name_that_the_plan_says(name: str) -> None:
    job = read_handover(answer(name=name)).job
    assert yaml.safe_load(one("skypilot", name))["envs"]["GPUPLAN_JOB"] == job
    assert yaml.safe_load(one("dstack", name))["env"]["GPUPLAN_JOB"] == job
    for to in ("kubernetes", "jobset"):
        container = spec_of(list(yaml.safe_load_all(one(to, name)))[-1])["containers"][0]
        (value,) = [variable["value"] for variable in container["env"] if variable["name"] == "GPUPLAN_JOB"]
        assert value.replace("$$", "$") == job


def spec_of(document: Any) -> Any:
    if document["kind"] == "JobSet":
        return document["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    return document["spec"]["template"]["spec"]


@given(ANY_NAME)
@settings(max_examples=12, deadline=None)
def test_terraform_says_the_name_and_expands_none_of_it(name: str) -> None:
    job = read_handover(answer(name=name)).job
    script = json.loads(one("terraform", name))["resource"]["aws_instance"]["head"]["user_data"]
    assert shlex.quote(f"GPUPLAN_JOB={job}") in script.replace("$${", "${").replace("%%{", "%{")


@given(ANY_NAME)
@settings(max_examples=12, deadline=None)
def test_scripts_hold_the_name_as_one_word(name: str) -> None:
    job = read_handover(answer(name=name)).job
    (line,) = [
        splitline for splitline in one("slurm", name).splitlines() if splitline.startswith("export GPUPLAN_JOB=")
    ]
    assert shlex.split(line) == ["export", f"GPUPLAN_JOB={job}"]
    for to in ("aws-cli", "gcloud", "az"):
        assert f"\n  --env {shlex.quote(f'GPUPLAN_JOB={job}')} \\\n" in one(to, name)


@given(ANY_NAME)
@settings(max_examples=20, deadline=None)
def test_no_comment_runs_into_the_next_line(name: str) -> None:
    for to in FORMATS:
        if to not in ("focus", "json", "terraform"):
            lines = one(to, name).splitlines()
            (at,) = [i for i, line in enumerate(lines) if line.startswith("# Job: ")]
            assert lines[at + 1].startswith("# Prices: ")


@pytest.mark.parametrize("to", ["slurm", "aws-cli", "gcloud", "az", "lambda", "nebius", "runpod", "docker"])
def test_bash_reads_scripts_of_hostile_names(to: str) -> None:
    for trick in TRICKS:
        done = subprocess.run(["bash", "-n"], input=one(to, trick), capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


@given(st.lists(ANY_WORD, min_size=1, max_size=4))
@settings(max_examples=12, deadline=None)
def test_the_words_of_a_command_arrive_as_they_were_given(words: list[str]) -> None:
    wishes = read_wishes(command=shlex.join(["./run", *words]))
    end = ["--no-python", "./run", *words]
    task = shlex.split(yaml.safe_load(one("skypilot", "x", wishes))["run"].splitlines()[-1])
    assert task[-len(end) :] == end
    pod = spec_of(list(yaml.safe_load_all(one("kubernetes", "x", wishes)))[-1])["containers"][0]["command"]
    assert [word.replace("$$", "$") for word in pod[-len(end) :]] == end
    batch = shlex.split(one("slurm", "x", wishes).splitlines()[-1])
    assert shlex.split(batch[-1])[-len(end) :] == end
