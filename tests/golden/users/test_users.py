"""What users hold of the version that was recorded is read, and its figures are right: a database, plans, a policy."""

import json
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.golden.comparison import differences, recorded_part
from tests.golden.interfaces import Interfaces, open_interfaces

FOLDER = Path(__file__).parent
EARLIER: dict[str, Any] = json.loads((FOLDER / "held.json").read_text(encoding="utf-8"))
STRATEGIES = sorted(EARLIER["plans"])
#: Checks of a plan that no estimate decides.
NOT_OF_ESTIMATES = {"identity", "snapshot", "prices", "memory", "cost", "carbon", "completeness"}


def plan_file(strategy: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads((FOLDER / f"plan-{strategy}.json").read_text(encoding="utf-8"))
    return answer


@pytest.fixture(scope="module")
def interfaces(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Interfaces]:
    """gpuplan on the database that users hold."""
    folder = tmp_path_factory.mktemp("users")
    (folder / "gpuplan.sqlite3").write_bytes(lzma.decompress((FOLDER / "gpuplan.sqlite3.xz").read_bytes()))
    with open_interfaces(folder) as open_ones:
        assert open_ones.cli(["db", "upgrade"], {}).code == 0
        yield open_ones


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_stored_plan_is_shown_with_the_figures_that_it_was_given_with(strategy: str, interfaces: Interfaces) -> None:
    shown = interfaces.cli(["show", EARLIER["plans"][strategy], "--json"], {})
    assert shown.code == 0
    assert not list(differences(recorded_part(plan_file(strategy)), recorded_part(shown.answer)))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_plan_file_is_read_and_its_estimates_named_as_those_of_another_release(
    strategy: str, interfaces: Interfaces
) -> None:
    ended = interfaces.cli(["verify", "plan.json", "--json"], {"plan.json": plan_file(strategy)})
    assert (ended.code, ended.answer["outcome"]) == (4, "not_verified")
    wrong = ended.answer["verification"]["wrong"]
    assert (wrong[0]["check"], wrong[0]["why"]) == ("estimates", "not the estimate of this release for this machine")
    assert not NOT_OF_ESTIMATES & {finding["check"] for finding in wrong}


@pytest.mark.parametrize("strategy", ["single", "behind", "three-phases", "two-phases"])
def test_the_job_of_a_plan_file_is_planned_by_new_estimates(strategy: str, interfaces: Interfaces) -> None:
    assert interfaces.cli(["actuals", "--forget", "all"], {}).code == 0
    plan = plan_file(strategy)["plan"]
    again = interfaces.cli(["plan", "job.json", "--json"], {"job.json": plan["job"]})
    assert (again.code, again.answer["outcome"]) == (0, "planned")
    assert plan.keys() - {"fallback"} <= again.answer["plan"].keys()
    assert plan["phases"][0].keys() <= again.answer["plan"]["phases"][0].keys()
    verified = interfaces.cli(["verify", "plan.json", "--json"], {"plan.json": again.answer})
    assert (verified.code, verified.answer["outcome"]) == (0, "verified")
    why = interfaces.cli(["why", "job.json", "--json"], {"job.json": plan["job"]}).answer["why"]
    # Where the plan's first choice is dearer than another that is harder to obtain, the question is about the other.
    ladder = again.answer["plan"]["capacity_ladder"]
    changing = ladder.get("changing_machines", again.answer["plan"])
    planned = ladder.get("cheapest_if_obtained", {"cost_usd": changing["cost_usd"]["expected"]})["cost_usd"]
    assert why["plan"]["cost_usd"] == planned


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_plan_file_is_exported(strategy: str, interfaces: Interfaces) -> None:
    answer = plan_file(strategy)
    ended = interfaces.cli(["export", "plan.json", "--to", "json"], {"plan.json": answer})
    assert ended.code == 0
    exported = json.dumps(ended.answer)
    assert all(phase["instance_type"] in exported for phase in answer["plan"]["phases"])


def test_a_job_under_way_by_a_stored_plan_is_planned_again(interfaces: Interfaces) -> None:
    when = ["--done", "40%", "--spent", "20", "--now", "2026-11-20T02:00Z"]
    ended = interfaces.cli(["replan", "--plan", EARLIER["plans"]["single"], *when, "--json"], {})
    assert ended.code == 0
    replan = ended.answer["replan"]
    assert (replan["left"]["share"], replan["running"]["spent_usd"]) == (0.6, "20.00")


def test_a_stored_plan_with_a_standby_is_run_by_a_policy(interfaces: Interfaces) -> None:
    ended = interfaces.cli(["run-policy", "--plan", EARLIER["plans"]["standby"], "--json"], {})
    _, standby = plan_file("standby")["plan"]["phases"]
    assert ended.answer["work_hours"] == standby["hours_with_goodput"]
    assert ended.answer["as_planned"]["switch_probability"] == standby["probability"]


def test_a_saved_policy_advises_as_it_did(interfaces: Interfaces) -> None:
    now = ["--time", "1h", "--work-left", "3h30min", "--up", "a", "--at", "a"]
    ended = interfaces.cli(["run-policy", str(FOLDER / "policy.gpp"), *now, "--json"], {})
    assert not list(differences(recorded_part(EARLIER["advice"]), recorded_part(ended.answer)))


def test_a_stored_key_watch_and_share_are_there(interfaces: Interfaces) -> None:
    [key] = interfaces.cli(["keys", "list", "--json"], {}).answer["keys"]
    assert {name: key[name] for name in ("id", "name", "scope", "state")} == {
        name: EARLIER["key"][name] for name in ("id", "name", "scope", "state")
    }
    watch = interfaces.http("GET", f"/v1/watches/{EARLIER['watch']['id']}", None).answer
    before = EARLIER["watch"]["last_told"]
    assert watch["last_told"] == before | {"at": before["at"].replace("+00:00", "Z")}
    [share] = interfaces.http("GET", "/v1/shares", None).answer["shares"]
    assert (share["id"], share["object_id"]) == (EARLIER["share"]["id"], EARLIER["plans"]["single"])


def test_a_reported_run_is_there_with_its_figures(tmp_path: Path) -> None:
    (tmp_path / "gpuplan.sqlite3").write_bytes(lzma.decompress((FOLDER / "gpuplan.sqlite3.xz").read_bytes()))
    with open_interfaces(tmp_path) as interfaces:
        [actual] = interfaces.http("GET", "/v1/actuals", None).answer["actuals"]
    assert actual["id"] == EARLIER["actuals"]["id"]
    assert actual["figures"] == EARLIER["actuals"]["figures"]
