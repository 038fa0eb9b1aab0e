"""A policy compared with simple rules and the omniscient optimum, replayed over the same starts.

The least cost with perfect foresight of all availability: a dynamic programme per run.

State: steps left, work left in steps, and either nothing running with the data at l, or place l running. Going to a place
adds its changeover to the work at once. With the future known, no start pays that does not outlast its changeover, so this
equals counting the changeover down (checked against full enumeration). Exact where changeovers and speeds are whole
steps; otherwise both are rounded in the run's favour, and the result is a lower bound.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.spot_policy.run_parameters import SpotTerms
from gpuplan.planner.spot_policy.simple_rules import Greedy, OnDemand, UniformProgress
from gpuplan.planner.spot_policy.solved_policy import Policy
from gpuplan.planner.spot_policy.trace_replay import Replay, Rule, replay

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


_BARRED = 1e15


def omniscient_usd(terms: SpotTerms, up: Flags) -> Floats:
    """Least USD per run for availability `up` [runs, steps, zones]; checkpoints are free and nothing is lost."""
    runs, steps, zones = up.shape
    places, step = zones + 1, terms.step_hours
    shift = [[math.floor(terms.moving_hours(i, j) / step + 1e-9) for j in range(places)] for i in range(places)]
    least_work = max(math.floor(terms.work_hours / step + 1e-9), 1)
    size = least_work + max(max(row) for row in shift) + 1
    usd = [*(place.usd_per_hour * step for place in terms.places), terms.on_demand_usd_per_hour * step]
    # A faster place does more than one step of work: rounded up, in the run's favour.
    does = [*(math.ceil(place.speed - 1e-9) for place in terms.places), 1]
    homes = 1 if terms.moves_free else places
    horizon = min(steps, math.ceil(terms.deadline_hours / step - 1e-9))
    idle = np.full((homes, runs, size), _BARRED)
    idle[:, :, 0] = 0.0
    runs_at = np.full((places, runs, size), _BARRED)
    runs_at[:, :, 0] = 0.0
    at = np.arange(size)
    everyone = np.ones((runs, 1), np.bool_)
    for t in range(horizon - 1, -1, -1):
        usable = np.hstack((up[:, t], everyone))
        idle_now = idle.copy()
        stays = np.empty_like(runs_at)
        for k in range(places):
            stays[k] = usd[k] + runs_at[k][:, np.maximum(at - does[k], 0)]
            stays[k][~usable[:, k]] = _BARRED
            for home in range(homes):
                needed = at + shift[home][k]
                begun = np.where(needed < size, stays[k][:, np.minimum(needed, size - 1)], _BARRED)
                idle_now[home] = np.minimum(idle_now[home], terms.moving_usd(home, k) + begun)
        idle_now[:, :, 0] = 0.0
        for k in range(places):
            runs_at[k] = np.minimum(stays[k], idle_now[k if homes > 1 else 0])
            runs_at[k][:, 0] = 0.0
        idle = idle_now
    return np.asarray(idle[homes - 1][:, least_work])


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
