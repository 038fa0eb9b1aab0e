"""The bound of what is left out of a ladder's set, against every sequence of a small set and its worth by worlds."""

import random
from dataclasses import dataclass
from itertools import product
from typing import cast

import numpy as np
import pytest

from gpuplan.planner.availability.ladder_candidates import LadderSet, left_out_bounds
from gpuplan.planner.candidates.configurations import Configurations


@dataclass(frozen=True)
class One:
    """A choice of the small set: whether it is left out, and whether it stands for others like it."""

    chance: float
    saving: float
    left_out: bool = False
    several: bool = False


def saved(sequence: tuple[One, ...]) -> float:
    """The mean saving of trying these in turn: over every combination of answers."""
    total = 0.0
    for answers in product((True, False), repeat=len(sequence)):
        weight = 1.0
        for one, yes in zip(sequence, answers, strict=True):
            weight *= one.chance if yes else 1 - one.chance
        total += weight * next((one.saving for one, yes in zip(sequence, answers, strict=True) if yes), 0.0)
    return total


def most_saved(choices: list[One], steps: int) -> float:
    """The most that a sequence with at least one choice left out saves."""
    best = 0.0
    for size in range(1, steps + 1):
        for sequence in product(choices, repeat=size):
            repeated = {one for one in sequence if sequence.count(one) > 1}
            if any(one.left_out for one in sequence) and all(one.several for one in repeated):
                best = max(best, saved(sequence))
    return best


def set_of(choices: list[One]) -> LadderSet:
    inside, outside = ([one for one in choices if one.left_out == left_out] for left_out in (False, True))
    return LadderSet(
        table=cast(Configurations, None),  # the bound needs no machines
        rows=np.arange(len(inside)),
        chance=np.array([one.chance for one in inside]),
        saving=np.array([one.saving for one in inside]),
        left_out_chance=np.array([one.chance for one in outside]),
        left_out_saving=np.array([one.saving for one in outside]),
        stands_for_others=np.array([one.several for one in outside], np.bool_),
    )


@pytest.mark.parametrize("seed", range(30))
def test_the_bound_is_what_the_best_sequence_with_a_choice_left_out_saves(seed: int) -> None:
    draw = random.Random(seed)
    choices = [
        One(draw.choice((0.1, 0.5, 0.9)), draw.uniform(1.0, 9.0), left_out, left_out and draw.random() < 0.5)
        for left_out in (False, False, *(draw.random() < 0.5 for _ in range(3)))
    ]
    bounds = left_out_bounds(set_of(choices), 3)
    assert bounds == pytest.approx([most_saved(choices, steps) for steps in range(4)], rel=1e-12)


def test_nothing_left_out_can_save_nothing() -> None:
    assert left_out_bounds(set_of([One(0.5, 4.0), One(0.9, 2.0)]), 4) == [0.0] * 5
