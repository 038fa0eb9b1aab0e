"""Scripts that start machines end them on every way out: each is run to its end in a cloud that counts machines."""

import signal
from pathlib import Path

import pytest

from gpuplan.api.exports.export_formats import one_export
from gpuplan.api.exports.launch_command import read_wishes
from tests.api.exports.cloud import Cloud
from tests.api.exports.documents import answer, in_phases, phase

pytestmark = pytest.mark.slow(reason="runs whole scripts, with signals")

NODES = 3
#: So many that their numbers have one digit and two.
ELEVEN = 11
#: Format, machine, place of the checkpoints, and how many machines (a slice is one).
FORMATS = [
    ("aws-cli", "aws", "s3://my-bucket/a", NODES),
    ("gcloud", "gcp", "gs://my-bucket/a", NODES),
    ("az", "azure", "abfs://runs@account1.dfs.core.windows.net/a", NODES),
    ("gcloud", "gcp-tpu", "gs://my-bucket/a", 1),
]
WATCHED = FORMATS[:3]
#: Scripts of one machine.
NEOCLOUDS = [
    ("lambda", "lambda", "s3://my-bucket/a", 1),
    ("runpod", "runpod", "s3://my-bucket/a", 1),
    ("nebius", "nebius", "s3://my-bucket/a", 1),
]
FORMATS += NEOCLOUDS
each_format = pytest.mark.parametrize(("to", "machine", "place", "count"), FORMATS)
each_watched = pytest.mark.parametrize(("to", "machine", "place", "count"), WATCHED)
#: What all scripts of neoclouds share is tried with one of them.
each_shared = pytest.mark.parametrize(("to", "machine", "place", "count"), [*FORMATS[:4], NEOCLOUDS[0]])
each_patient = pytest.mark.parametrize(("to", "machine", "place", "count"), [*WATCHED, NEOCLOUDS[1]])
SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]


@pytest.fixture
def cloud(tmp_path: Path) -> Cloud:
    return Cloud(tmp_path)


def script(to: str, machine: str, place: str | None, nodes: int = NODES) -> str:
    wishes = read_wishes(command="python train.py", checkpoints=place)
    nodes = 1 if (to, machine) in {(name, name) for name, *_ in NEOCLOUDS} else nodes
    return one_export(answer(phase(machine, nodes=nodes), checkpoints=False), to=to, wishes=wishes).text


@each_format
def test_when_the_run_succeeds(cloud: Cloud, to: str, machine: str, place: str, count: int) -> None:
    status, output = cloud.run(script(to, machine, place, ELEVEN))
    assert (cloud.most, cloud.left) == (ELEVEN if count == NODES else count, [])
    assert not any("a-key-of-the-account" in word for call in cloud.calls for word in call)
    if machine != "gcp-tpu":
        assert (status, "has finished" in output) == (0, True)


@each_format
def test_when_the_run_fails(cloud: Cloud, to: str, machine: str, place: str, count: int) -> None:
    status, output = cloud.run(script(to, machine, place), exit="3")
    assert (status, cloud.most, cloud.left) == (3, count, []), output
    assert f"To go on from the newest checkpoint in {place}: bash run.sh" in output


@pytest.mark.slow(reason="long cases")
@pytest.mark.parametrize(
    ("to", "machine", "place", "count", "number", "expected"),
    [(*row, *SIGNALS[0]) for row in WATCHED + NEOCLOUDS] + [(*WATCHED[0], *pair) for pair in SIGNALS[1:]],
)
def test_on_a_signal(
    cloud: Cloud, to: str, machine: str, place: str, count: int, number: signal.Signals, expected: int
) -> None:
    status, output = cloud.run(script(to, machine, place), signalled=number, ends_after=None)
    assert (status, cloud.most, cloud.left) == (expected, count, [])
    assert "To go on from the newest checkpoint" in output


@each_format
def test_when_creation_fails_half_way(cloud: Cloud, to: str, machine: str, place: str, count: int) -> None:
    status, _ = cloud.run(script(to, machine, place), wrong="half")
    assert status != 0
    assert 0 < cloud.most <= min(count, 2)
    assert cloud.left == []


@each_shared
def test_when_the_run_limit_is_reached(cloud: Cloud, to: str, machine: str, place: str, count: int) -> None:
    status, _ = cloud.run(soon_over(script(to, machine, place)), ends_after=None)
    assert (status, cloud.most, cloud.left) == (75, count, [])


def soon_over(text: str) -> str:
    """The script with the least limit; ten minutes later it looks no more."""
    assert "LIMIT_SECONDS=540000\n" in text
    return text.replace("LIMIT_SECONDS=540000\n", "LIMIT_SECONDS=0\n")


@pytest.mark.slow(reason="long cases")
@each_watched
def test_when_some_machines_end_and_others_hang(cloud: Cloud, to: str, machine: str, place: str, count: int) -> None:
    status, output = cloud.run(script(to, machine, place), ends_after=None, wrong="hangs")
    assert (status, cloud.most, cloud.left) == (1, count, [])
    assert f"only 1 of {count} machines are left, and they do not end" in output


@each_patient
def test_a_cloud_that_does_not_answer_for_a_while_ends_nothing(
    cloud: Cloud, to: str, machine: str, place: str, count: int
) -> None:
    status, output = cloud.run(script(to, machine, place), wrong="asking", ends_after=5)
    assert (status, cloud.most, cloud.left) == (0, count, [])
    assert "cannot ask which machines run; asking again in a minute" in output


@each_shared
def test_a_teardown_that_fails_is_said_loudly_with_the_command(
    cloud: Cloud, to: str, machine: str, place: str, count: int
) -> None:
    status, output = cloud.run(soon_over(script(to, machine, place)), ends_after=None, wrong="teardown")
    assert status == 70
    assert "TEARDOWN FAILED: machines of llama-3-8b-012345-1-1000000 may still run, at" in output
    by_name = dict.fromkeys(("lambda", "runpod", "nebius"), "bash run.sh --end llama-3-8b-012345-1-1000000")
    commands = by_name | {"aws-cli": "aws ec2 terminate-instances", "az": "az group delete"}
    command = commands.get(to, "gcloud compute")
    assert any(command in line for line in output.partition("TEARDOWN FAILED")[2].splitlines())


@each_format
def test_the_placeholder_starts_nothing(cloud: Cloud, to: str, machine: str, place: str, count: int) -> None:
    status, output = cloud.run(script(to, machine, None))
    assert (status, cloud.calls) == (78, [])
    assert "there is no checkpoint location, so nothing is started: give the job data.checkpoints" in output


@pytest.mark.parametrize(("to", "machine", "place", "count"), NEOCLOUDS[:1])
def test_a_run_whose_script_was_killed_is_ended_by_its_name(
    cloud: Cloud, to: str, machine: str, place: str, count: int
) -> None:
    text = script(to, machine, place)
    cloud.run(text, machines=["some-run"], ends_after=None, words=["--end", "some-run"])
    assert cloud.left == []
    assert not any("launch" in word or "create" in word or word == "POST" for call in cloud.calls for word in call[:5])


def test_a_type_without_capacity_starts_nothing(cloud: Cloud) -> None:
    status, output = cloud.run(script("lambda", "lambda", "s3://my-bucket/a"), wrong="no capacity")
    assert (status, cloud.most, cloud.left) == (1, 0, [])
    assert "no region has capacity for gpu_8x_h100_sxm5 now" in output


def test_a_slice_that_is_never_had_is_not_waited_for(cloud: Cloud) -> None:
    status, output = cloud.run(script("gcloud", "gcp-tpu", "gs://my-bucket/a"), wrong="slice")
    assert (status, cloud.left) == (1, [])
    assert "the slice is FAILED" in output


def test_nothing_of_another_run_is_ended(cloud: Cloud) -> None:
    cloud.run(script("aws-cli", "aws", "s3://my-bucket/a"))
    asked = [words for words in cloud.calls if words[2] == "describe-instances"]
    assert asked
    assert all("Name=tag:gpuplan-run,Values=llama-3-8b-012345-1-1000000" in words for words in asked)


def test_a_standby_ends_its_machines_too(cloud: Cloud) -> None:
    wishes = read_wishes(command="python train.py", checkpoints="gs://my-bucket/a")
    text = one_export(in_phases(), to="gcloud", phase=3, wishes=wishes).text
    assert "STANDBY: do not start this now" in text
    status, _ = cloud.run(text)
    assert (status, cloud.most, cloud.left) == (0, 2, [])
