"""A capacity ladder beside its first choice alone and the cheapest machines on demand, replayed over the same starts."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.spot_policy.availability_traces import Trace
from gpuplan.planner.spot_policy.ladder_rules import LADDER_RULES, FirstOnly, LadderTerms, Watched
from gpuplan.planner.spot_policy.trace_replay import Replay, replay

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

_LATE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceUse:
    """Share of the runs that obtained a place first, mean hours until they did, and mean hours of all runs there."""

    share_first: float
    mean_wait_hours: float | None
    mean_hours: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderOutcome:
    """The result of one rule: USD per run (mean, 95 %), excess over the best choice in hindsight
    (None if that is free), and late runs.

    `mean_hours` go from the start to the end. `uses` has one element per place of the terms, then on-demand.
    """

    rule: str
    mean_usd: float
    p95_usd: float
    over_hindsight: float | None
    late_runs: int
    worst_late_hours: float
    mean_hours: float
    preemptions: float
    uses: tuple[PlaceUse, ...]


def together(
    traces: Sequence[Trace | None], *, nodes: Sequence[int], step_hours: float, hours: float, most: int
) -> Flags:
    """Windows of `hours` that start together in all traces: [starts, steps, traces]; None is always up.

    A window starts every hour; if these are more than `most`, so many of them, evenly. No start is left if the
    shortest trace is shorter than a window.
    """
    watched = [None if t is None else t.up(count, step_hours) for t, count in zip(traces, nodes, strict=True)]
    lengths = [len(up) for up in watched if up is not None]
    steps, every = math.ceil(hours / step_hours - 1e-9), max(1, round(1 / step_hours))
    hourly = range(0, max(min(lengths, default=0) - steps + 1, 0), every)
    begins = [hourly[i] for i in np.linspace(0, len(hourly) - 1, min(most, len(hourly))).astype(int)]
    always = np.ones(steps, np.bool_)
    windows = [np.stack([always if up is None else up[at : at + steps] for up in watched], axis=1) for at in begins]
    return np.stack(windows) if windows else np.zeros((0, steps, len(watched)), np.bool_)


def compare_ladder(terms: LadderTerms, up: Flags) -> tuple[LadderOutcome, ...]:
    """All rules over availability `up` [runs, steps, places]; on-demand is not refused in hindsight."""
    alone = [
        replay(terms.run, up, FirstOnly(replace(terms, order=(place,), refused=0.0))).usd
        for place in dict.fromkeys((*terms.order, len(terms.run.places)))
    ]
    best = np.min(alone, axis=0)
    outcomes = []
    for name, rule in LADDER_RULES.items():
        watched = Watched(rule(terms))
        outcomes.append(_outcome(name, replay(terms.run, up, watched), watched, best))
    return tuple(outcomes)


def _outcome(name: str, done: Replay, watched: Watched, best: Floats) -> LadderOutcome:
    late = done.late_hours > _LATE
    return LadderOutcome(
        rule=name,
        mean_usd=float(done.usd.mean()),
        p95_usd=float(np.quantile(done.usd, 0.95)),
        over_hindsight=float(done.usd.sum() / best.sum() - 1.0) if best.sum() > 0 else None,
        late_runs=int(late.sum()),
        worst_late_hours=float(done.late_hours.max()),
        mean_hours=float((watched.live_hours + done.late_hours).mean()),
        preemptions=float(done.preemptions.mean()),
        uses=tuple(_use(watched, place) for place in range(watched.place_hours.shape[1])),
    )


def _use(watched: Watched, place: int) -> PlaceUse:
    first = watched.first == place
    return PlaceUse(
        share_first=float(first.mean()),
        mean_wait_hours=float(watched.first_hours[first].mean()) if first.any() else None,
        mean_hours=float(watched.place_hours[:, place].mean()),
    )
