"""Uniform Progress against its description and its published figures (Wu et al., Can't Be Late, NSDI 2024)."""

import json
from pathlib import Path

import numpy as np
import pytest

from gpuplan.api.schemas.availability_trace_files import parse_traces
from gpuplan.planner.spot_policy.availability_traces import windows
from gpuplan.planner.spot_policy.run_parameters import Place, SpotTerms
from gpuplan.planner.spot_policy.simple_rules import Greedy, UniformProgress
from gpuplan.planner.spot_policy.trace_replay import WAITING, RunState, replay

SPOT, DEMAND = 0, 1
#: Table 3: 48 h of work in 60 h, a changeover of 0.2 h, zones of October 2022: hours of progress on spot.
PUBLISHED_SPOT_HOURS = {"greedy": 17.2, "uniform progress": 22.9}


def terms(*, step: float = 1 / 30) -> SpotTerms:
    return SpotTerms(
        work_hours=48.0,
        deadline_hours=60.0,
        step_hours=step,
        changeover_hours=0.2,
        on_demand_usd_per_hour=1.0,
        places=(Place(name="zone", usd_per_hour=1 / 3),),
    )


def seen(*, passed: float, done: float, place: int, up: bool) -> RunState:
    work = np.array([48.0 - done])
    return RunState(
        left_hours=60.0 - passed,
        work_hours=work,
        saved_work_hours=work,
        place=np.array([place]),
        home=np.array([DEMAND]),
        to_go_hours=np.zeros(1),
        up=np.array([[up]]),
        age_hours=np.zeros((1, 1)),
        age_known=np.zeros((1, 1), np.bool_),
    )


@pytest.mark.parametrize(
    ("state", "goes_to"),
    [
        # The line from start to deadline passes 24 h of work at 30 h.
        pytest.param({"done": 30.0, "place": WAITING, "up": True}, SPOT, id="spot is taken whenever it is up"),
        pytest.param({"done": 20.0, "place": DEMAND, "up": True}, SPOT, id="even from on-demand and behind the line"),
        pytest.param({"done": 23.9, "place": WAITING, "up": False}, DEMAND, id="idle and behind: on-demand"),
        pytest.param({"done": 24.1, "place": WAITING, "up": False}, WAITING, id="idle and ahead: wait"),
        # Two changeovers later the line stands at 0.8 (30 + 0.4) = 24.32 h.
        pytest.param({"done": 24.2, "place": DEMAND, "up": False}, DEMAND, id="on-demand is kept past the line"),
        pytest.param({"done": 24.4, "place": DEMAND, "up": False}, WAITING, id="until ahead by two changeovers"),
    ],
)
def test_it_does_what_is_described(state: dict[str, float | int | bool], goes_to: int) -> None:
    now = seen(passed=30.0, done=float(state["done"]), place=int(state["place"]), up=bool(state["up"]))
    assert UniformProgress(terms()).decide(now)[0] == goes_to


def test_the_standby_rule_overrules_it() -> None:
    # 12.2 h are left, 12 h of work and a changeover are all that fits.
    now = seen(passed=47.8, done=36.0, place=WAITING, up=False)
    assert UniformProgress(terms()).decide(now)[0] == DEMAND


@pytest.mark.shared_data
def test_it_gains_over_greedy_what_was_published(shared_data: Path) -> None:
    # Six of the eight published zones are public, so the hours themselves differ; what the rule gains does not.
    paths = sorted((shared_data / "spot" / "cant_be_late_traces").glob("*10-26-2022*.json"))
    traces = [parse_traces(json.loads(path.read_text()), name=path.stem)[0] for path in paths]
    asked = terms()
    up = np.concatenate(
        [
            windows([trace], nodes=1, step_hours=asked.step_hours, hours=60.0, starts=20, seed=number)
            for number, trace in enumerate(traces)
        ]
    )
    greedy, line = (replay(asked, up, rule) for rule in (Greedy(asked), UniformProgress(asked)))
    assert not greedy.late_hours.any()
    assert not line.late_hours.any()
    gained = float((line.spot_work_hours - greedy.spot_work_hours).mean())
    published = PUBLISHED_SPOT_HOURS["uniform progress"] - PUBLISHED_SPOT_HOURS["greedy"]
    assert gained == pytest.approx(published, abs=1.5)
