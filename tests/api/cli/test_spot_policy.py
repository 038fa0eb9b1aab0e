"""`gpuplan run-policy` and `gpuplan simulate`, from files to exit codes."""

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpuplan.api.cli.main import main
from tests.api.spot_run import RUN


@pytest.fixture
def run(tmp_path: Path) -> Path:
    path = tmp_path / "run.json"
    path.write_text(json.dumps(RUN))
    return path


def write(path: Path, document: object) -> Path:
    path.write_text(json.dumps(document))
    return path


def a_trace(path: Path, seed: int, hours: int = 60) -> Path:
    draw, up, data = random.Random(seed), True, []
    for _ in range(hours * 4):
        up = up if draw.random() < 0.9 else not up
        data.append(int(up))
    return write(path, {"metadata": {"gap_seconds": 900}, "data": data})


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main([*arguments, "--json"]) == 0
    return dict(json.loads(capsys.readouterr().out))


def test_a_policy_says_what_it_is_for_and_a_saved_one_says_the_same(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy_file = tmp_path / "policy.gpp"
    solved = answer(capsys, "run-policy", str(run), "--save", str(policy_file))
    assert solved["deadline_hours"] == 6.0
    assert float(solved["expected_usd"]) < float(solved["on_demand_usd"]) == 42.5
    assert any("a: modelled as the typical zone" in assumption for assumption in solved["assumptions"])
    assert answer(capsys, "run-policy", str(policy_file)) == solved
    now = ("--time", "1h", "--work-left", "3h30min", "--up", "a,b", "--at", "a")
    assert answer(capsys, "run-policy", str(policy_file), *now) == answer(capsys, "run-policy", str(run), *now)


@pytest.mark.parametrize(
    ("now", "action", "place"),
    [
        (["--time", "0", "--work-left", "4h", "--up", "a", "--data-at", "a"], "start", "a"),
        (["--time", "0min", "--work-left", "4h", "--up", "a", "--since", "a=0min"], "start", "a"),
        (["--time", "1h", "--work-left", "3h30min", "--up", "a", "--at", "a", "--since", "a=5h"], "stay", "a"),
        (["--time", "1h45min", "--work-left", "4h", "--up", "a,b"], "switch to on-demand", "on-demand"),
        (["--time", "1h45min", "--work-left", "4h", "--at", "on-demand"], "stay", "on-demand"),
        (["--time", "30min", "--work-left", "4h"], "wait", None),
        (["--time", "2h", "--work-left", "2h30min", "--at", "a"], "wait", None),
    ],
)
def test_what_to_do_now_depends_on_what_is_up_and_how_late_it_is(
    now: list[str], action: str, place: str | None, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    decision = answer(capsys, "run-policy", str(run), *now)
    assert (decision["action"], decision["place"]) == (action, place)
    assert decision["reasons"] or action == "stay"
    if decision["expected_usd"] is not None:
        assert float(decision["expected_usd"]) <= float(decision["on_demand_usd"]) + 1e-6


def test_what_is_still_to_pay_at_the_start_is_what_the_policy_expects(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = {"name": "a", "usd_per_hour": 3, "mean_up": "3h", "mean_down": "1h"}
    run = write(tmp_path / "run.json", RUN | {"places": [place]})
    whole = float(answer(capsys, "run-policy", str(run))["expected_usd"])
    start = ("run-policy", str(run), "--time", "0", "--work-left", "4h")
    down, up = (float(answer(capsys, *start, "--up", zones)["expected_usd"]) for zones in ("", "a"))
    # Up three quarters of the time.
    assert whole == pytest.approx(0.25 * down + 0.75 * up, abs=1e-5)


def test_an_old_checkpoint_is_renewed_and_written_before_leaving(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write(tmp_path / "run.json", RUN | {"checkpoint_write": "1min", "checkpoint_every": "30min"})
    situation = ("run-policy", str(run), "--up", "a", "--at", "a", "--since", "a=5h")
    fresh = answer(capsys, *situation, "--time", "1h", "--work-left", "3h30min", "--checkpoint-age", "10min")
    old = answer(capsys, *situation, "--time", "1h", "--work-left", "3h30min", "--checkpoint-age", "40min")
    assert (fresh["action"], old["action"]) == ("stay", "checkpoint")
    unsaved = ("--time", "1h40min", "--work-left", "3h30min", "--saved-work-left", "4h")
    saving = answer(capsys, *situation, *unsaved, "--checkpoint-age", "20min")
    assert saving["action"] == "checkpoint"
    assert saving["reasons"][-1].endswith("write a checkpoint at once")
    late = ("--time", "2h", "--work-left", "3h30min", "--saved-work-left", "3h40min")
    leaving = answer(capsys, *situation, *late)
    assert (leaving["action"], leaving["checkpoint_first"]) == ("switch to on-demand", True)


def test_people_read_what_to_do_and_why(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run-policy", str(run), "--time", "1h", "--work-left", "3h30min", "--up", "a", "--at", "b"]) == 0
    shown = capsys.readouterr().out
    assert "b is gone: 3.5 h of work are left" in shown
    assert "on-demand can wait for" in shown
    assert main(["run-policy", str(run)]) == 0
    assert "kept always" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--time", "1h"], "work-left: is missing"),
        (["--time", "1h", "--work-left", "-3h"], "work_left: '-3h' is negative"),
        (["--time", "1h", "--work-left", "5h"], "work_left: 5 h are more than the 4 h of the run"),
        (["--time", "1h", "--work-left", "2h", "--saved-work-left", "1h"], "saved_work_left: 1 h left"),
        (["--time", "3h", "--work-left", "3h"], "the deadline cannot be met"),
        (["--time", "1h", "--work-left", "3h", "--up", "mars"], "up: 'mars' is not a place of this policy"),
        (["--time", "1h", "--work-left", "3h", "--at", "mars"], "at: 'mars' is not a place of this policy"),
        (["--time", "1h", "--work-left", "3h", "--since", "a"], "since: 'a' is not accepted; write PLACE=DURATION"),
        (["--time", "1h", "--work-left", "3h", "--since", "a=soon"], "since.a: 'soon' is not a duration"),
        (["--plan", "p"], "run: give either a run file or --plan ID"),
    ],
)
def test_a_situation_that_cannot_be_is_refused_by_option(
    arguments: list[str], message: str, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run-policy", str(run), *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"work": "-4h"}, "work: '-4h' is negative"),
        ({"deadline": "4h"}, "deadline: 4 h is too short even on-demand"),
        ({"places": []}, "places: "),
        ({"places": [RUN["places"][0]] * 2}, "places[1].name: 'a' is used twice"),
        ({"places": [{"name": "a", "usd_per_hour": -1}]}, "places[0].usd_per_hour: -1 is not accepted"),
        ({"places": [{"name": "a", "usd_per_hour": 5e-324}]}, "places[0].usd_per_hour: 5e-324 is not accepted"),
        ({"places": [{"name": "a", "usd_per_hour": 1, "mean_up": "1h"}]}, "places[0].mean_down: is missing"),
        ({"step": "1s", "deadline": "90d", "work": "80d"}, "step_hours: "),
        ({"hours": 3}, "hours: unknown key"),
    ],
)
def test_a_run_that_cannot_be_is_refused_by_field(
    change: dict[str, Any], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run-policy", str(write(tmp_path / "run.json", RUN | change))]) == 2
    assert message in capsys.readouterr().err


def test_a_damaged_policy_is_refused_and_nothing_in_it_is_executed(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy_file = tmp_path / "policy.gpp"
    assert main(["run-policy", str(run), "--save", str(policy_file)]) == 0
    whole = policy_file.read_bytes()
    for damaged in (whole[: len(whole) // 2], whole[:4] + b"x" * 100, whole.replace(b"gpuplan spot", b"gpuplan spit")):
        policy_file.write_bytes(damaged)
        if damaged == whole:
            continue
        capsys.readouterr()
        assert main(["run-policy", str(policy_file)]) == 2
        assert "policy: " in capsys.readouterr().err


@pytest.mark.parametrize(
    "change",
    [
        {"format": "gpuplan spot policy 0"},
        {"terms": None},
        {"terms": {"places": [{}]}},
        {"chains": []},
        {"chains": [{"step_hours": 0.25, "edges_hours": [], "moves": [[2, 0], [0, 1]]}] * 2},
        {"expected_usd": "much"},
        {"name": None, "assumptions": None},
    ],
)
def test_a_policy_with_a_header_of_its_own_making_is_refused(
    change: dict[str, Any], run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy_file = tmp_path / "policy.gpp"
    assert main(["run-policy", str(run), "--save", str(policy_file)]) == 0
    with np.load(policy_file) as held:
        header, actions = json.loads(str(held["header"])), held["actions"]
    with policy_file.open("wb") as file:
        np.savez_compressed(file, header=np.array(json.dumps(header | change)), actions=actions)
    capsys.readouterr()
    assert main(["run-policy", str(policy_file)]) == 2
    assert "holds no policy that can be used" in capsys.readouterr().err


@pytest.mark.parametrize("actions", [np.zeros((2, 2), np.int8), np.array(["x"]), np.full((25, 17, 9, 64), 7, np.int8)])
def test_a_table_that_does_not_fit_its_header_is_refused(
    actions: np.ndarray[Any, Any], run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy_file = tmp_path / "policy.gpp"
    assert main(["run-policy", str(run), "--save", str(policy_file)]) == 0
    with np.load(policy_file) as held:
        header = held["header"]
    with policy_file.open("wb") as file:
        np.savez_compressed(file, header=header, actions=actions)
    assert main(["run-policy", str(policy_file)]) == 2
    assert "its table does not fit its header" in capsys.readouterr().err


def test_a_replay_is_never_late_and_lies_between_on_demand_and_the_best(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write(tmp_path / "run.json", RUN | {"places": [{"name": "zone", "usd_per_hour": 3}]})
    one, two, other = (a_trace(tmp_path / f"{name}.json", seed) for seed, name in enumerate(("one", "two", "other")))
    arguments = ("simulate", str(run), "--traces", str(one), "--traces", str(two), "--starts", "60")
    replayed = answer(capsys, *arguments, "--fit", str(other))
    assert replayed["runs"] == 120
    rows = {rule["rule"]: rule for rule in replayed["rules"]}
    assert list(rows) == ["policy", "uniform progress", "greedy", "on-demand"]
    assert not any(row["late_runs"] for row in rows.values())
    assert 0 <= rows["policy"]["over_omniscient"] < rows["on-demand"]["over_omniscient"]
    assert rows["on-demand"]["mean_usd"] == "42.500000"
    assert replayed["policy"]["assumptions"][0] == "zone: fitted on 60 h of traces"
    assert answer(capsys, *arguments, "--fit", str(other)) == replayed
    assert main(list(arguments)) == 0
    assert "0 of 120" in capsys.readouterr().out


def test_several_places_are_replayed_together_by_name(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b, c = (a_trace(tmp_path / f"{name}.json", seed) for seed, name in enumerate("abc"))
    replayed = answer(capsys, "simulate", str(run), "--traces", str(a), "--traces", str(b), "--starts", "40")
    assert replayed["runs"] == 40
    assert main(["simulate", str(run), "--traces", str(a), "--traces", str(c)]) == 2
    assert "traces: no trace is named 'b' like the place; given are a, c" in capsys.readouterr().err
    renamed = ("simulate", str(run), "--traces", str(a), "--traces", f"b={c}", "--starts", "40")
    assert answer(capsys, *renamed)["traces"][1]["name"] == "b"


def test_traces_shorter_than_the_run_are_refused(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = (a_trace(tmp_path / f"{name}.json", 1, hours=3) for name in "ab")
    assert main(["simulate", str(run), "--traces", str(a), "--traces", str(b)]) == 2
    assert "traces: a covers 3 h, but a run may take 6 h" in capsys.readouterr().err
