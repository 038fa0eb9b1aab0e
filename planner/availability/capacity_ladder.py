"""The capacity ladder: in which order to try choices that may be refused, so that the expected outcome is least.

Choices are tried one after the other, each for the same time; the first that is obtained is used. The last choice is waited
for. A choice i costs v_i, given that it is obtained. The model of refusals, for every family of accelerators in a region (a
group), independent of other groups:

    the group is fine, short of spot, or short of everything:        probabilities 1 - s, s - d, d
    given that, choice i is obtained independently with the chance   a_i if its kind is to be had, else 0

so the chance of i by itself is p_i = (1 - s) a_i for spot, (1 - d) a_i for others, and one refusal lowers the chance of
others in the group. Choices that are certain are obtained in every state. Waiting has no price of its own, but a step is
only allowed where its run, started after the tries before it, still meets the deadline with the job's confidence.

    minimise  sum_j P(first j - 1 refused, j obtained) v_j + P(all before the last refused) v_last

over sequences of distinct pools (a machine in a place under a price kind) with a given last choice. Solved by extending
sequences level by level, for all at once. A sequence is dropped if it cannot be better:

* Two neighbours a, b with v_a > v_b are swapped without loss where a may come later: whichever world it is, the swapped
  ladder takes the same or a cheaper choice. So only ascending sequences are extended, but for the deadline; of choices at
  one cost the likelier comes first, which shortens the wait.
* Refusals never raise the chance of another choice. So the saving left is at most P(all refused) x W_m, what m independent
  choices save (`relaxed_savings`).
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

#: A longer ladder has hardly a use: the plan is made again before its end.
MOST_STEPS = 5
#: Relative saving below which two ladders are equal: sums of doubles.
_EQUAL = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LadderChoices:
    """Choices that a ladder may have, one array element each.

    `value` is what is minimised, given that the choice is obtained. `last_position` is the latest step, from 1, at which
    it still meets the deadline. `pool` and `group` are numbers from 0. `state_chance` [n, 3] are the probabilities that the group
    is fine, short of spot, and short of everything; `obtained` [n, 3] the chance of the choice given each.
    """

    value: Floats
    last_position: Ints
    pool: Ints
    group: Ints
    state_chance: Floats
    obtained: Floats

    def __len__(self) -> int:
        """The number of choices."""
        return len(self.value)

    @property
    def chance(self) -> Floats:
        """The chance of each choice by itself: [n]."""
        return np.asarray((self.state_chance * self.obtained).sum(axis=1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """The order of choices, what following it is expected to come to, and per step the chance given earlier refusals."""

    order: tuple[int, ...]
    expected: float
    chance_when_tried: tuple[float, ...]
    nothing_obtained: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Level:
    """Sequences of equal length: members [m, j], probability that all are refused, saving so far, and what refusals say.

    `evidence` [m, groups, 3] is the likelihood of all refusals in each group, given the group's state. The first `fixed`
    members are given.
    """

    order: Ints
    refused: Floats
    saving: Floats
    evidence: Floats
    fixed: int


def least_ladder(
    choices: LadderChoices,
    last: int,
    *,
    first: int | None = None,
    most_steps: int = MOST_STEPS,
    to_beat: float = float("inf"),
) -> Ladder:
    """The best ladder of at most `most_steps` choices that ends with `last`, and begins with `first` if that is given.

    Where none is expected to cost less than `to_beat`, it need not be the best. Raises `ValueError` if `first` or `last` does not meet the deadline at its place.
    """
    before_last = min(most_steps, int(choices.last_position[last])) - 1
    if before_last < (0 if first in (None, last) else 1) or (first is not None and choices.last_position[first] < 1):
        raise ValueError("the first or the last choice of a ladder is too late")
    if first == last:
        return followed(choices, (last,))
    saving = choices.value[last] - choices.value
    usable = (saving > 0) & (choices.pool != choices.pool[last])
    bounds = relaxed_savings(choices.chance[usable], saving[usable], before_last)
    level = _start(choices)
    if first is not None:
        one = _further(level, choices, saving, np.array([0]), np.array([first]))
        level = replace(_extended(level, choices, one), fixed=1)
    rank = np.empty(len(choices), np.int64)
    rank[np.lexsort((np.arange(len(choices)), -choices.chance, choices.value))] = np.arange(len(choices))
    best, order = _greedy(level, choices, saving, usable, rank=rank, before_last=before_last)
    best = max(best, float(choices.value[last]) - to_beat)
    for position in range(level.order.shape[1] + 1, before_last + 1):
        row, item = np.nonzero(_may_follow(level, choices, usable, rank, position))
        if not len(row):
            break
        further = _further(level, choices, saving, row, item)
        top = int(np.argmax(further.saving))
        if further.saving[top] > best * (1 + _EQUAL):
            best, order = float(further.saving[top]), (*level.order[row[top]].tolist(), int(item[top]))
        hopeful = further.saving + further.refused * bounds[before_last - position] > best * (1 + _EQUAL)
        level = _extended(level, choices, further.taken(np.flatnonzero(hopeful)))
    return followed(choices, (*order, last))


def relaxed_savings(chance: Floats, saving: Floats, steps: int) -> list[float]:
    """W_0 ... W_steps: upper bounds of the expected saving of so many further steps among these choices.

    That of independent choices, each tried once and the one that saves most first: with choices sorted that way,
    W_m(j) = max over i >= j of p_i saving_i + (1 - p_i) W_{m-1}(i + 1).
    """
    order = np.argsort(-saving, kind="stable")
    chance, saving = chance[order], saving[order]
    left, bounds = np.zeros(len(order) + 1), [0.0]
    for _ in range(steps):
        left[:-1] = best_from_here(chance * saving + (1.0 - chance) * left[1:])
        bounds.append(float(left[0]))
    return bounds


def best_from_here(values: Floats) -> Floats:
    """The greatest of each value and all after it."""
    return np.asarray(np.maximum.accumulate(values[::-1])[::-1])


def followed(choices: LadderChoices, order: tuple[int, ...]) -> Ladder:
    """What following the choices in this order comes to; the last is waited for."""
    evidence: dict[int, Floats] = {}
    refused, expected, chances = 1.0, 0.0, []
    for item in order:
        group = int(choices.group[item])
        weight = choices.state_chance[item] * evidence.get(group, np.ones(3))
        total = weight.sum()
        chance = float((weight * choices.obtained[item]).sum() / total) if total > 0 else 0.0
        evidence[group] = evidence.get(group, np.ones(3)) * (1.0 - choices.obtained[item])
        takes = 1.0 if item == order[-1] else chance
        expected += refused * takes * float(choices.value[item])
        chances.append(chance)
        refused *= 1.0 - chance
    return Ladder(order=order, expected=expected, chance_when_tried=tuple(chances), nothing_obtained=refused)


def _start(choices: LadderChoices) -> _Level:
    return _Level(
        order=np.zeros((1, 0), np.int64),
        refused=np.ones(1),
        saving=np.zeros(1),
        evidence=np.ones((1, int(choices.group.max()) + 1, 3)),
        fixed=0,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Further:
    """Sequences of a level at `row`, each with one more choice `item`: the figures that tell which are worth keeping."""

    row: Ints
    item: Ints
    refused: Floats
    saving: Floats

    def taken(self, which: Ints) -> "_Further":
        """Some of them."""
        return _Further(
            row=self.row[which], item=self.item[which], refused=self.refused[which], saving=self.saving[which]
        )


def _further(level: _Level, choices: LadderChoices, saving: Floats, row: Ints, item: Ints) -> _Further:
    weight = choices.state_chance[item] * level.evidence[row, choices.group[item]]
    total = weight.sum(axis=1)
    chance = np.divide((weight * choices.obtained[item]).sum(axis=1), total, out=np.zeros(len(row)), where=total > 0)
    reached = level.refused[row]
    return _Further(
        row=row,
        item=item,
        refused=reached * (1.0 - chance),
        saving=level.saving[row] + reached * chance * saving[item],
    )


def _extended(level: _Level, choices: LadderChoices, further: _Further) -> _Level:
    """The level of these longer sequences."""
    row, item = further.row, further.item
    evidence = level.evidence[row]
    evidence[np.arange(len(row)), choices.group[item]] *= 1.0 - choices.obtained[item]
    return replace(
        level,
        order=np.concatenate((level.order[row], item[:, None]), axis=1),
        refused=further.refused,
        saving=further.saving,
        evidence=evidence,
    )


def _may_follow(level: _Level, choices: LadderChoices, usable: Flags, rank: Ints, position: int) -> Flags:
    """Which choices may come next at step `position` of each sequence: [m, n]."""
    fits = usable & (choices.last_position >= position)
    allowed = np.broadcast_to(fits, (len(level.order), len(choices))).copy()
    for earlier in level.order.T:
        allowed &= choices.pool[earlier][:, None] != choices.pool[None, :]
    return allowed & _ascending(level, choices, rank, position)


def _ascending(level: _Level, choices: LadderChoices, rank: Ints, position: int) -> Flags:
    """Which choices are worth trying after the last of each sequence; a forced first choice stays where it is.

    `rank` orders the choices by cost, of equal ones the likelier first.
    """
    if level.order.shape[1] == level.fixed:
        return np.ones((1, len(choices)), np.bool_)
    before = level.order[:, -1]
    late = choices.last_position[before] < position
    return np.asarray((rank[None, :] > rank[before][:, None]) | late[:, None])


def _greedy(
    level: _Level, choices: LadderChoices, saving: Floats, usable: Flags, *, rank: Ints, before_last: int
) -> tuple[float, tuple[int, ...]]:
    """A good ladder to begin with: always the choice that saves most at once."""
    for position in range(level.order.shape[1] + 1, before_last + 1):
        item = np.flatnonzero(_may_follow(level, choices, usable, rank, position)[0])
        if not len(item):
            break
        further = _further(level, choices, saving, np.zeros(len(item), np.int64), item)
        level = _extended(level, choices, further.taken(np.argmax(further.saving, keepdims=True)))
    return float(level.saving[0]), tuple(level.order[0].tolist())
