"""A policy beside the simple rules and the omniscient optimum, replayed over the same starts."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.spot.omniscient import omniscient_usd
from planner.spot.policy import Policy
from planner.spot.rules import Greedy, OnDemand, UniformProgress
from planner.spot.simulate import Replay, Rule, replay
from planner.spot.terms import SpotTerms

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

#: Runs replayed at once: bounds the memory whatever the number of starts.
_BATCH = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """How one rule fared: USD per run on average and at 95 %, over the omniscient cost (a share), late runs and hours."""

    rule: str
    mean_usd: float
    p95_usd: float
    over_omniscient: float
    late_runs: int
    worst_late_hours: float
    spot_hours: float
    on_demand_hours: float
    preemptions: float


def compare(terms: SpotTerms, up: Flags, policy: Policy) -> tuple[Compared, ...]:
    """The policy, then Uniform Progress, greedy and on-demand, over availability `up` [runs, steps, zones]."""
    batches = [up[i : i + _BATCH] for i in range(0, len(up), _BATCH)]
    best = np.concatenate([omniscient_usd(terms, each) for each in batches])
    makers = {"policy": None, "uniform progress": UniformProgress, "greedy": Greedy, "on-demand": OnDemand}
    found = []
    for name, maker in makers.items():
        results = [replay(terms, each, policy if maker is None else _rule(maker, terms)) for each in batches]
        found.append(_row(name, results, best))
    return tuple(found)


def _rule(maker: type[UniformProgress] | type[Greedy] | type[OnDemand], terms: SpotTerms) -> Rule:
    return maker(terms)


def _row(name: str, results: list[Replay], best: Floats) -> Compared:
    def all_of(field: str) -> Floats:
        return np.concatenate([getattr(each, field) for each in results]).astype(np.float64)

    usd, late = all_of("usd"), all_of("late_hours")
    return Compared(
        rule=name,
        mean_usd=float(usd.mean()),
        p95_usd=float(np.quantile(usd, 0.95)),
        over_omniscient=float(usd.sum() / best.sum() - 1.0),
        late_runs=int((late > 0).sum()),
        worst_late_hours=float(late.max()),
        spot_hours=float(all_of("spot_hours").mean()),
        on_demand_hours=float(all_of("on_demand_hours").mean()),
        preemptions=float(all_of("preemptions").mean()),
    )
