"""The policy on public availability traces: fitted on one campaign, judged on another."""

import json
from pathlib import Path

import numpy as np
import pytest

from gpuplan.api.schemas.availability_trace_files import parse_traces
from gpuplan.planner.spot_policy.availability_traces import Trace, windows
from gpuplan.planner.spot_policy.policy_comparison import omniscient_usd
from gpuplan.planner.spot_policy.run_parameters import Place, SpotTerms
from gpuplan.planner.spot_policy.simple_rules import Greedy, OnDemand, UniformProgress
from gpuplan.planner.spot_policy.solved_policy import make_policy
from gpuplan.planner.spot_policy.trace_replay import Rule, replay
from gpuplan.planner.spot_policy.zone_availability import edges_for, fit

STEP = 1 / 12


def campaign(folder: Path, day: str) -> list[Trace]:
    paths = sorted((folder / "spot" / "cant_be_late_traces").glob(f"*{day}*.json"))
    return [parse_traces(json.loads(path.read_text()), name=path.stem)[0] for path in paths]


@pytest.mark.shared_data
@pytest.mark.parametrize(("slack", "changeover"), [(1.15, STEP), (1.5, 0.25)])
def test_the_policy_beats_simple_rules_on_zones_it_has_never_seen(
    slack: float, changeover: float, shared_data: Path
) -> None:
    learned, judged = campaign(shared_data, "10-26-2022"), campaign(shared_data, "02-15-2023")
    terms = SpotTerms(
        work_hours=24.0,
        deadline_hours=24.0 * slack,
        step_hours=STEP,
        changeover_hours=changeover,
        on_demand_usd_per_hour=1.0,
        places=(Place(name="zone", usd_per_hour=0.3),),
    )
    policy = make_policy(terms, [fit([trace.up(1, STEP) for trace in learned], STEP, edges_for(1, STEP))])
    up = np.concatenate(
        [
            windows([trace], nodes=1, step_hours=STEP, hours=terms.deadline_hours, starts=10, seed=seed)
            for seed, trace in enumerate(judged)
        ]
    )
    best = omniscient_usd(terms, up).mean()
    paid: dict[str, float] = {}
    rules: dict[str, Rule] = {"policy": policy, "greedy": Greedy(terms), "line": UniformProgress(terms)}
    for name, rule in (rules | {"on-demand": OnDemand(terms)}).items():
        got = replay(terms, up, rule)
        assert not got.late_hours.any()
        paid[name] = float(got.usd.mean())
    assert best <= paid["policy"] < min(paid["greedy"], paid["line"]) < paid["on-demand"]
    assert paid["policy"] / best < 1.1
