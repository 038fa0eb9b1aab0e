"""A typical zone for use without local data: hazards by age, from public traces of V100 and K80 machines.

Fitted with `zone_availability.fit` on the fourteen single-node traces of Can't Be Late (NSDI 2024; AWS, October 2022 to
April 2023, 5-minute grid, equal weight per trace): up 57 % of the time, one preemption per 2.7 hours up. A policy solved
for it is modelled, not measured, in other zones and years; one fitted on traces of the user's own zones is better.
"""

from collections.abc import Sequence

import numpy as np

from gpuplan.planner.spot_policy.zone_availability import DEFAULT_EDGES_HOURS, ZoneChain

#: Per hour, by age class: the hazard of coming up for a zone that is down, and of going down for one that is up.
_RISES_PER_HOUR = (0.0952, 2.87, 1.72, 1.15, 0.691, 0.354, 0.23, 0.0665)
_FALLS_PER_HOUR = (1.47, 2.6, 1.28, 0.917, 0.496, 0.299, 0.17, 0.0747)

#: Squarings of the transition matrix of a very short part of a step, 2^-20: at most one event happens in it.
_SQUARINGS = 20


def typical_chain(step_hours: float, *, classes: int = len(_RISES_PER_HOUR)) -> ZoneChain:
    """The typical zone on a grid of `step_hours`, with neighbouring age classes merged down to `classes`."""
    whole = from_rates(_RISES_PER_HOUR, _FALLS_PER_HOUR, DEFAULT_EDGES_HOURS, step_hours)
    return whole if classes >= whole.classes else merged(whole, classes)


def from_rates(
    rises_per_hour: Sequence[float], falls_per_hour: Sequence[float], edges_hours: Sequence[float], step_hours: float
) -> ZoneChain:
    """The chain of these hazards, observed once per step; the mean time in a class is its width.

    exp(Q step) of the continuous chain, by squaring, so the share of time up is the same on every grid.
    """
    classes = len(edges_hours) + 1
    widths = np.diff((0.0, *edges_hours))
    rates = np.zeros((2 * classes, 2 * classes))
    for side, flips in ((0, rises_per_hour), (classes, falls_per_hour)):
        for i, rate in enumerate(flips):
            rates[side + i, classes - side] += rate
            if i + 1 < classes:
                rates[side + i, side + i + 1] += 1.0 / widths[i]
    rates -= np.diag(rates.sum(axis=1))
    moves = np.eye(2 * classes) + rates * (step_hours / 2**_SQUARINGS)
    for _ in range(_SQUARINGS):
        moves = moves @ moves
    return ZoneChain(
        step_hours=step_hours, edges_hours=tuple(edges_hours), moves=moves / moves.sum(axis=1, keepdims=True)
    )


def merged(chain: ZoneChain, classes: int) -> ZoneChain:
    """The chain with ages merged into `classes`, each transition weighted by its long-run frequency before merging.

    The classes are distributed evenly, youngest first.
    """
    groups = np.unique(np.linspace(0, chain.classes, classes + 1).round().astype(int))[1:-1]
    owner = np.searchsorted(groups, np.arange(chain.classes), side="right")
    owner = np.concatenate((owner, owner + len(groups) + 1))
    size = 2 * (len(groups) + 1)
    share, into = chain.stationary, np.zeros((len(owner), size))
    into[np.arange(len(owner)), owner] = 1.0
    weight = share @ into
    moves = (into * share[:, None]).T @ chain.moves @ into / np.maximum(weight, 1e-12)[:, None]
    edges = tuple(chain.edges_hours[group - 1] for group in groups)
    return ZoneChain(step_hours=chain.step_hours, edges_hours=edges, moves=moves)
