"""Scripts ask for the places of a plan's capacity ladder in order, and leave nothing behind in any of them."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gpuplan.api.exports.export_formats import one_export
from gpuplan.api.exports.launch_command import read_wishes
from tests.api.exports.cloud import Cloud
from tests.api.exports.documents import answer, ladder, phase
from tests.api.exports.test_by_real_tools import MEANT

pytestmark = pytest.mark.slow(reason="runs whole scripts")

COUNT = 4
#: Format, machine, checkpoints, the plan's own place and the next one as the cloud's tool calls them, and the next choice.
FORMATS = [
    ("aws-cli", "aws", "s3://my-bucket/a", "us-east-1", "us-west-2", {"region": "us-west-2", "zone": ""}),
    (
        "gcloud",
        "gcp",
        "gs://my-bucket/a",
        "us-central1-a",
        "us-east4-b",
        {"region": "us-east4", "zone": "us-east4-b", "price_kind": "on_demand"},
    ),
    ("az", "azure", "abfs://runs@account1.dfs.core.windows.net/a", "eastus", "westus3", {"region": "westus3"}),
]
each_format = pytest.mark.parametrize(("to", "machine", "place", "first", "second", "choice"), FORMATS)
#: Verbs that ask a cloud for machines, and the option that names the place.
CREATION = {"aws": ("run-instances", "--region"), "gcloud": ("create", "--zone"), "az": ("create", "--location")}


@pytest.fixture
def cloud(tmp_path: Path) -> Cloud:
    made = Cloud(tmp_path)
    made.environment["SECURITY_GROUP_ID_US_WEST_2"] = "sg-2"
    return made


#: When the last choice is due, the clock of the tests some minutes before, and the hours of the last choice beside 10 of spot.
DUE, BEFORE = "2026-11-21T08:00:00Z", 1_795_248_000 - 200
LAST = {"region": "us-east4", "zone": "us-east4-b", "price_kind": "on_demand", "hours": 8.0}


def script(
    to: str,
    machine: str,
    place: str,
    *choices: dict[str, Any],
    kind: str = "spot",
    nodes: int = COUNT,
    due: str | None = None,
) -> str:
    """The script of a plan whose ladder has these next choices of its machine, each asked for a minute."""
    first = phase(machine, kind=kind, nodes=nodes)
    document = answer(first, checkpoints=False)
    rows = [first | {"usd_per_node_hour": "20.00"} | choice for choice in choices]
    document["plan"]["capacity_ladder"] = ladder(*rows, try_minutes=1.0)
    if due is not None:
        document["plan"]["capacity_ladder"]["last_choice_by"] = due
        document["plan"]["settings"] = {"setup_hours": 0.25}
    return one_export(document, to=to, wishes=read_wishes(command="python train.py", checkpoints=place)).text


def asked(cloud: Cloud) -> list[str]:
    """The places at which machines were asked for, in order, each once in a row."""
    places: list[str] = []
    for program, *words in cloud.calls:
        verb, option = CREATION[program]
        if verb in words[:3] and option in words and words[:2] != ["group", "create"]:
            place = words[words.index(option) + 1]
            places += [] if places[-1:] == [place] else [place]
    return places


@each_format
def test_a_full_place_is_asked_again_and_then_the_next_one(
    cloud: Cloud, to: str, machine: str, place: str, first: str, second: str, choice: dict[str, Any]
) -> None:
    text = script(to, machine, place, choice)
    status, output = cloud.run(text, full={first: 99})
    assert (status, cloud.most, cloud.left) == (0, COUNT, []), output
    assert asked(cloud) == [first, second]
    assert output.count("not obtained, spot in") == 2
    assert "Tried in order, each for 1 min" in text
    # The price of the place that was obtained: 4 machines at 20 USD.
    assert "USD_PER_HOUR=80.00" in text


def test_a_place_that_frees_up_in_time_is_taken(cloud: Cloud) -> None:
    to, machine, place, first, _, choice = FORMATS[2]
    status, output = cloud.run(script(to, machine, place, choice), full={first: 1})
    assert (status, cloud.most, cloud.left) == (0, COUNT, []), output
    assert asked(cloud) == [first]
    assert "has finished" in output


def test_no_place_at_all_leaves_nothing(cloud: Cloud) -> None:
    to, machine, place, first, second, choice = FORMATS[1]
    status, output = cloud.run(script(to, machine, place, choice), full={first: 99, second: 99})
    assert (status, cloud.left) == (69, [])
    assert cloud.most < COUNT
    assert asked(cloud) == [first, second]
    assert f"no place gave {COUNT} machines" in output


def test_a_teardown_between_places_that_fails_goes_no_further(cloud: Cloud) -> None:
    to, machine, place, first, _, choice = FORMATS[0]
    status, output = cloud.run(script(to, machine, place, choice), full={first: 99}, wrong="teardown")
    assert status == 70
    assert asked(cloud) == [first]
    assert "TEARDOWN FAILED" in output


def test_a_signal_between_two_attempts_ends_the_script(cloud: Cloud) -> None:
    to, machine, place, first, _, choice = FORMATS[1]
    status, _ = cloud.run(script(to, machine, place, choice), full={first: 99}, signalled=signal.SIGTERM)
    assert (status, cloud.left, asked(cloud)) == (143, [], [first])


def test_a_region_without_a_security_group_is_left_out_at_once(cloud: Cloud) -> None:
    to, machine, place, first, _, choice = FORMATS[0]
    del cloud.environment["SECURITY_GROUP_ID_US_WEST_2"]
    status, output = cloud.run(script(to, machine, place, choice), full={first: 99})
    assert (status, cloud.left, asked(cloud)) == (69, [], [first])
    assert "us-west-2 is left out: name SECURITY_GROUP_ID_US_WEST_2" in output


def test_a_region_of_google_without_a_named_zone_is_left_out_at_once(cloud: Cloud) -> None:
    to, machine, place, first, *_ = FORMATS[1]
    region = {"region": "us-east4", "zone": ""}
    status, output = cloud.run(script(to, machine, place, region), full={first: 99})
    assert (status, asked(cloud)) == (69, [first])
    assert "us-east4 is left out: name ZONE_US_EAST4" in output


def test_a_single_machine_of_aws_needs_no_security_group_elsewhere(cloud: Cloud) -> None:
    to, machine, place, first, second, choice = FORMATS[0]
    for name in ("SECURITY_GROUP_ID", "SECURITY_GROUP_ID_US_WEST_2"):
        del cloud.environment[name]
    status, output = cloud.run(script(to, machine, place, choice, nodes=1), full={first: 0})
    assert (status, cloud.left, asked(cloud)) == (0, [], [first]), output
    assert second not in asked(cloud)


def test_shellcheck_finds_nothing(tmp_path: Path) -> None:
    paths = []
    for to, machine, place, *_, choice in FORMATS:
        for nodes in (1, COUNT):
            paths.append(tmp_path / f"{to}-{nodes}.sh")
            paths[-1].write_text(script(to, machine, place, choice, nodes=nodes), encoding="utf-8")
    tool = Path(sys.executable).with_name("shellcheck")
    words: list[str | Path] = [tool, "--shell=bash", f"--exclude={MEANT}", *paths]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_on_demand_machines_are_never_replaced_by_spot(cloud: Cloud) -> None:
    to, machine, place, _, _, choice = FORMATS[2]
    assert "obtain" not in script(to, machine, place, choice | {"price_kind": "spot"}, kind="on_demand")


def test_other_machines_of_the_ladder_are_not_tried(cloud: Cloud) -> None:
    to, machine, place, _, _, choice = FORMATS[0]
    plain = script(to, machine, place)
    assert script(to, machine, place, choice | {"nodes": 8}, choice | {"instance_type": "p4d.24xlarge"}) == plain


def test_all_but_the_last_choice_are_asked_for_again_until_it_is_due(cloud: Cloud) -> None:
    """Three places: the first two in turn, then the last alone, while its time has come."""
    (cloud.folder / "clock").write_text(f"{BEFORE}\n")
    second = {"region": "us-west1", "zone": "us-west1-b"}
    text = script("gcloud", "gcp", "gs://my-bucket/a", second, LAST, due=DUE)
    status, output = cloud.run(text, full={"us-central1-a": 99, "us-west1-b": 99})
    assert (status, cloud.most, cloud.left) == (0, COUNT, []), output
    *in_turn, last = asked(cloud)
    assert last == "us-east4-b"
    assert in_turn == ["us-central1-a", "us-west1-b"] * (len(in_turn) // 2)
    assert len(in_turn) == 4
    assert "again in turn until 2026-11-21T08:00:00Z" in text


def test_a_place_that_frees_up_on_a_later_round_is_taken(cloud: Cloud) -> None:
    (cloud.folder / "clock").write_text(f"{BEFORE}\n")
    text = script("gcloud", "gcp", "gs://my-bucket/a", LAST, due=DUE)
    status, output = cloud.run(text, full={"us-central1-a": 3})
    assert (status, cloud.left, asked(cloud)) == (0, [], ["us-central1-a"]), output


def test_the_last_choice_is_asked_for_at_once_where_it_is_due(cloud: Cloud) -> None:
    (cloud.folder / "clock").write_text(f"{BEFORE + 700}\n")
    status, _ = cloud.run(script("gcloud", "gcp", "gs://my-bucket/a", LAST, due=DUE))
    assert (status, asked(cloud)) == (0, ["us-east4-b"])


def test_a_script_without_the_last_choice_ends_when_that_is_due(cloud: Cloud) -> None:
    (cloud.folder / "clock").write_text(f"{BEFORE}\n")
    other = LAST | {"instance_type": "a3-megagpu-8g"}
    text = script("gcloud", "gcp", "gs://my-bucket/a", other, due=DUE)
    status, output = cloud.run(text, full={"us-central1-a": 99})
    assert (status, cloud.left, asked(cloud)) == (69, [], ["us-central1-a"])
    assert "it is time for the last choice" in output
    assert int((cloud.folder / "clock").read_text()) >= BEFORE + 200
    assert "the ladder's last choice has other machines" in text


@each_format
def test_after_a_preemption_the_first_place_is_asked_again(
    cloud: Cloud, to: str, machine: str, place: str, first: str, second: str, choice: dict[str, Any]
) -> None:
    status, output = cloud.run(script(to, machine, place, choice), preempted=1)
    assert (status, cloud.most, cloud.left) == (0, COUNT, []), output
    assert output.count("the machines were taken back") == 1
    assert output.count(f"asking for {COUNT} machines") == 2
    assert asked(cloud) == [first]
    assert "has finished" in output


def test_a_run_that_fails_is_not_started_again(cloud: Cloud) -> None:
    to, machine, place, *_, choice = FORMATS[2]
    status, output = cloud.run(script(to, machine, place, choice), exit="1")
    assert (status, cloud.left) == (1, [])
    assert "taken back" not in output


def test_machines_on_demand_are_not_started_again(cloud: Cloud) -> None:
    to, machine, place, first, second, choice = FORMATS[1]
    status, output = cloud.run(script(to, machine, place, choice), full={first: 99}, preempted=1)
    assert (status, cloud.left, asked(cloud)) == (143, [], [first, second])
    assert "has failed with status 143" in output


def test_preemptions_end_with_the_run_limit(cloud: Cloud) -> None:
    """The time on machines counts over all starts, so the stated highest cost holds."""
    to, machine, place, *_, choice = FORMATS[1]
    cloud.environment["GPUPLAN_RAN_SECONDS"] = "100000000"
    status, output = cloud.run(script(to, machine, place, choice), preempted=9)
    assert (status, cloud.left) == (75, [])
    assert "the run limit has passed" in output


def test_work_that_was_kept_moves_the_last_choice(cloud: Cloud) -> None:
    """What was done on spot is counted in hours of the last choice, which the script hands to its next start."""
    text = script("gcloud", "gcp", "gs://my-bucket/a", LAST, due=DUE)
    hours = float(phase("gcp", kind="spot", nodes=COUNT)["hours"])
    assert f"KEPT_PERCENT={int(100 * 8.0 / hours)}" in text
    cloud.environment["GPUPLAN_KEPT_SECONDS"] = "3600"
    (cloud.folder / "clock").write_text(f"{BEFORE + 700}\n")
    status, _ = cloud.run(text)
    assert (status, asked(cloud)) == (0, ["us-central1-a"])
