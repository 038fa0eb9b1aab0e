"""A policy compared with simple rules and the omniscient optimum, replayed over the same starts."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.spot_policy.omniscient_optimum import omniscient_usd
from gpuplan.planner.spot_policy.run_parameters import SpotTerms
from gpuplan.planner.spot_policy.simple_rules import Greedy, OnDemand, UniformProgress
from gpuplan.planner.spot_policy.solved_policy import Policy
from gpuplan.planner.spot_policy.trace_replay import Replay, Rule, replay

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

#: Runs replayed at once: limits the memory at any number of starts.
_BATCH = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """The result of one rule: USD per run (mean, 95 %), excess over the omniscient cost (a share), late runs and hours."""

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
    best = np.concatenate([omniscient_usd(terms, batch) for batch in batches])
    makers = {"policy": None, "uniform progress": UniformProgress, "greedy": Greedy, "on-demand": OnDemand}
    rows = []
    for name, maker in makers.items():
        results = [replay(terms, batch, policy if maker is None else _rule(maker, terms)) for batch in batches]
        rows.append(_row(name, results, best))
    return tuple(rows)


def _rule(maker: type[UniformProgress] | type[Greedy] | type[OnDemand], terms: SpotTerms) -> Rule:
    return maker(terms)


def _row(name: str, results: list[Replay], best: Floats) -> Compared:
    def all_of(field: str) -> Floats:
        return np.concatenate([getattr(result, field) for result in results]).astype(np.float64)

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
