"""How long a zone stays up or down: a semi-Markov chain whose hazard depends on the age of the present state.

A zone is up or down, and in either state it has an age class (`edges_hours`: ages up to the first edge, up to the
second, ..., beyond the last). Per step of the grid it flips with the hazard of its class (then it is in the other
state's first class), else it may grow into the next class, else it stays. With no edges this is the two-state
Markov chain. Young states are the least stable: in public V100 traces the hazard falls tenfold with age.

A typical zone for use without local data: hazards by age, from public traces of V100 and K80 machines.

Fitted with `zone_availability.fit` on the fourteen single-node traces of Can't Be Late (NSDI 2024; AWS, October 2022 to
April 2023, 5-minute grid, equal weight per trace): up 57 % of the time, one preemption per 2.7 hours up. A policy solved
for it is modelled, not measured, in other zones and years; one fitted on traces of the user's own zones is better.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]

#: Ages in hours at which a zone passes into the next class; between 5 minutes and a working day.
DEFAULT_EDGES_HOURS = (1 / 12, 1 / 6, 1 / 3, 2 / 3, 4 / 3, 3.0, 25 / 3)
#: Fewer classes for several zones, whose joint states are the product: 16, 64 and 64 joint states, then 2 per zone.
_EDGES_OF_SEVERAL_HOURS = {1: DEFAULT_EDGES_HOURS, 2: (1 / 3, 3.0, 12.0), 3: (1 / 3,)}
#: A zone without an observed flip counts as flipping once in the time observed, and at least with this hazard.
_LEAST_HAZARD = 1e-5


def edges_for(zones: int, step_hours: float) -> tuple[float, ...]:
    """The edges of age classes for the chains of so many zones together; none finer than the grid."""
    edges = _EDGES_OF_SEVERAL_HOURS.get(zones, ())
    return tuple(age for age in edges if age >= step_hours - 1e-9)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ZoneChain:
    """States 0..K-1 are down by age class, K..2K-1 up by age class, K = classes; `moves` is [2K, 2K], per step."""

    step_hours: float
    edges_hours: tuple[float, ...]
    moves: Floats

    @property
    def classes(self) -> int:
        """Age classes of either state."""
        return len(self.edges_hours) + 1

    @property
    def up(self) -> Flags:
        """Which states are up: [2K]."""
        return np.arange(2 * self.classes) >= self.classes

    @property
    def stationary(self) -> Floats:
        """The long-run share of time in each state: [2K]."""
        size = len(self.moves)
        system = np.vstack((self.moves.T - np.eye(size), np.ones(size)))
        share = np.linalg.lstsq(system, np.concatenate((np.zeros(size), [1.0])), rcond=None)[0]
        return np.asarray(np.maximum(share, 0.0) / np.maximum(share, 0.0).sum())

    @property
    def availability(self) -> float:
        """The share of time that the zone is up."""
        return float(self.stationary[self.classes :].sum())

    @property
    def preemptions_per_up_hour(self) -> float:
        """Flips from up to down per hour that the zone is up."""
        share = self.stationary[self.classes :]
        falling = self.moves[self.classes :, : self.classes].sum(axis=1)
        return float(share @ falling / max(share.sum(), 1e-12) / self.step_hours)

    def state(self, up: Flags, age_hours: Floats, known: Flags) -> Ints:
        """The state of zones that have been as they are for `age_hours`, or for at least that where not `known`.

        An unknown age gets the likeliest class, but none younger than was observed.
        """
        grown = np.searchsorted(np.asarray(self.edges_hours) + 1e-9, age_hours, side="left")
        share = self.stationary
        likely = np.where(up, np.argmax(share[self.classes :]), np.argmax(share[: self.classes]))
        return np.where(up, self.classes, 0) + np.where(known, grown, np.maximum(grown, likely))


def fit(histories: Sequence[Flags], step_hours: float, edges_hours: Sequence[float]) -> ZoneChain:
    """The chain of zones like those of `histories` (up or down per step), each history with the same weight.

    The hazard of a class is shrunk to that of the class before it with the weight of one flip, so that rarely observed
    classes borrow from their neighbours.
    """
    classes = len(edges_hours) + 1
    counts = np.zeros((2 * classes, 2 * classes))
    length = max(len(history) for history in histories)
    for history in histories:
        counts += _transition_counts(history, step_hours, edges_hours) * (length / max(len(history) - 1, 1))
    moves = np.zeros_like(counts)
    for side in (0, classes):
        other = classes - side
        seen = counts[side : side + classes]
        hazard = max((seen[:, other].sum() + 0.5) / (seen.sum() + 1.0), _LEAST_HAZARD)
        for i in range(classes):
            at, total = side + i, seen[i].sum()
            hazard = (seen[i, other] + 1.0) / (total + 1.0 / hazard)
            grows = 0.0
            if i + 1 < classes:
                stayed = total - seen[i, other]
                width = edges_hours[i] - (edges_hours[i - 1] if i else 0.0)
                grows = seen[i, at + 1] / stayed if stayed > 0 else min(1.0, step_hours / width)
                moves[at, at + 1] = (1.0 - hazard) * grows
            moves[at, other] = hazard
            moves[at, at] = (1.0 - hazard) * (1.0 - grows)
    return ZoneChain(step_hours=step_hours, edges_hours=tuple(edges_hours), moves=moves)


def two_state(*, mean_up_hours: float, mean_down_hours: float, step_hours: float) -> ZoneChain:
    """The memoryless zone with these mean durations, observed once per step, for use without a history."""
    falls, rises = 1.0 / mean_up_hours, 1.0 / mean_down_hours
    mixed = -np.expm1(-(falls + rises) * step_hours) / (falls + rises)
    falls, rises = falls * mixed, rises * mixed
    moves = np.array([[1.0 - rises, rises], [falls, 1.0 - falls]])
    return ZoneChain(step_hours=step_hours, edges_hours=(), moves=moves)


def ages(history: Flags) -> Ints:
    """For how many steps, this one included, the zone has kept its state: [steps]."""
    at = np.arange(len(history))
    flips = np.concatenate(([True], history[1:] != history[:-1]))
    return np.asarray(at - np.maximum.accumulate(np.where(flips, at, 0)) + 1)


def _transition_counts(history: Flags, step_hours: float, edges_hours: Sequence[float]) -> Floats:
    """How often each state followed each other state: [2K, 2K]."""
    classes = len(edges_hours) + 1
    grown = np.searchsorted(np.asarray(edges_hours) + 1e-9, ages(history) * step_hours, side="left")
    states = np.where(history, classes, 0) + grown
    pairs = states[:-1] * (2 * classes) + states[1:]
    return np.bincount(pairs, minlength=4 * classes**2).reshape(2 * classes, -1).astype(np.float64)


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
