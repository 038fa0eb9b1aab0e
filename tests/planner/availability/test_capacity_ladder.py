"""The capacity ladder against a brute force that walks through worlds and shares no code with it."""

import random
from itertools import permutations, product

import numpy as np
import pytest

from gpuplan.planner.availability.capacity_ladder import LadderChoices, followed, least_ladder, relaxed_savings

#: (cost, latest position, pool, group, is spot, chance within a group that is not short), and (spot short, all short).
Item = tuple[float, int, int, int, bool, float]
Shortage = tuple[float, float]


def choices_of(items: list[Item], shortages: list[Shortage]) -> LadderChoices:
    """The arrays of these items."""
    states = np.array([(1 - s, s - d, d) for s, d in (shortages[item[3]] for item in items)])
    return LadderChoices(
        value=np.array([item[0] for item in items]),
        last_position=np.array([item[1] for item in items]),
        pool=np.array([item[2] for item in items]),
        group=np.array([item[3] for item in items]),
        state_chance=states,
        obtained=np.array([(item[5], 0.0 if item[4] else item[5], 0.0) for item in items]),
    )


def expected_over_worlds(items: list[Item], shortages: list[Shortage], order: tuple[int, ...]) -> float:
    """Expected cost by walking through every state of every group and every answer of every choice but the last."""
    groups = sorted({items[i][3] for i in order})
    total = 0.0
    for states in product(range(3), repeat=len(groups)):
        at = dict(zip(groups, states, strict=True))
        world = 1.0
        for group, state in at.items():
            s, d = shortages[group]
            world *= (1 - s, s - d, d)[state]
        for answers in product((True, False), repeat=len(order) - 1):
            chance = world
            for i, obtained in zip(order, answers, strict=False):
                _, _, _, group, is_spot, q = items[i]
                can = at[group] == 0 or (at[group] == 1 and not is_spot)
                p = q if can else 0.0
                chance *= p if obtained else 1 - p
            used = next((i for i, obtained in zip(order, answers, strict=False) if obtained), order[-1])
            total += chance * items[used][0]
    return total


def brute_force(items: list[Item], shortages: list[Shortage], last: int, first: int | None, steps: int) -> float:
    """The least expected cost over all orders of distinct pools that are in time."""
    best = float("inf")
    others = [i for i in range(len(items)) if i != last]
    for size in range(steps):
        for before in permutations(others, size):
            order = (*before, last)
            if first is not None and order[0] != first:
                continue
            if len({items[i][2] for i in order}) < len(order):
                continue
            if any(items[i][1] < position for position, i in enumerate(order, 1)):
                continue
            best = min(best, expected_over_worlds(items, shortages, order))
    return best


def drawn(draw: random.Random) -> tuple[list[Item], list[Shortage]]:
    """A small set; its last item is reached from every step."""
    groups = draw.randint(1, 3)
    shortages = [(s, s * draw.random()) for s in (draw.uniform(0.0, 0.6) for _ in range(groups))]
    count = draw.randint(2, 5)
    items: list[Item] = [
        (
            float(draw.randint(5, 14)),
            draw.choice((1, 2, 3, 9)),
            draw.randrange(count),
            draw.randrange(groups),
            draw.random() < 0.6,
            draw.choice((0.05, 0.3, 0.6, 0.9)),
        )
        for _ in range(count)
    ]
    return [*items, (15.0, 9, 99, draw.randrange(groups), False, 0.99)], shortages


@pytest.mark.parametrize("seed", range(60))
def test_no_order_of_choices_is_cheaper_than_the_ladder(seed: int) -> None:
    """Free and with a fixed first choice, over every permutation and every world."""
    items, shortages = drawn(random.Random(seed))
    choices, last = choices_of(items, shortages), len(items) - 1
    for steps in (2, 4):
        ladder = least_ladder(choices, last, most_steps=steps)
        assert ladder.expected == pytest.approx(brute_force(items, shortages, last, None, steps), rel=1e-12)
        assert expected_over_worlds(items, shortages, ladder.order) == pytest.approx(ladder.expected, rel=1e-12)
        if items[0][2] != items[last][2]:
            forced = least_ladder(choices, last, first=0, most_steps=steps)
            assert forced.order[0] == 0
            assert forced.expected == pytest.approx(brute_force(items, shortages, last, 0, steps), rel=1e-12)


@pytest.mark.parametrize("seed", range(60))
def test_a_tighter_choice_of_places_never_makes_a_ladder_cheaper(seed: int) -> None:
    """The law of tightening: without one of the choices, or with less time, the expected cost is the same or higher."""
    items, shortages = drawn(random.Random(1000 + seed))
    last = len(items) - 1
    whole = least_ladder(choices_of(items, shortages), last).expected
    for without in range(last):
        fewer = [item for i, item in enumerate(items) if i != without]
        assert least_ladder(choices_of(fewer, shortages), last - 1).expected >= whole * (1 - 1e-12)
    sooner: list[Item] = [(v, max(0, t - 1), *rest) for v, t, *rest in items]  # type: ignore[misc]
    assert least_ladder(choices_of(sooner, shortages), last).expected >= whole * (1 - 1e-12)


def test_a_refusal_lowers_the_chance_of_others_in_the_family_and_region_only() -> None:
    """Spot refused says more about spot than about on-demand, and nothing about another region."""
    items: list[Item] = [
        (1, 9, 0, 0, True, 0.8),
        (2, 9, 1, 0, True, 0.8),
        (3, 9, 2, 0, False, 0.9),
        (2, 9, 3, 1, True, 0.8),
    ]
    choices = choices_of(items, [(0.4, 0.1), (0.4, 0.1)])
    alone = choices.chance
    after_spot = [followed(choices, (0, i)).chance_when_tried[1] for i in (1, 2, 3)]
    assert after_spot[0] < 0.7 * alone[1]
    assert 0.8 * alone[2] < after_spot[1] < alone[2]
    assert after_spot[2] == pytest.approx(alone[3])


def test_a_slow_cheap_choice_is_tried_first_where_the_deadline_allows_it_only_there() -> None:
    """The dearer of two comes first if it can be in time nowhere else."""
    items: list[Item] = [(5, 9, 0, 0, True, 0.5), (6, 1, 1, 1, True, 0.5), (10, 9, 2, 2, False, 1.0)]
    ladder = least_ladder(choices_of(items, [(0.0, 0.0)] * 3), 2)
    assert ladder.order == (1, 0, 2)


@pytest.mark.parametrize("seed", range(40))
def test_the_bound_of_a_relaxed_ladder_is_never_above_the_ladder(seed: int) -> None:
    """Savings with independent chances bound those with shared shortages."""
    items, shortages = drawn(random.Random(2000 + seed))
    choices, last = choices_of(items, shortages), len(items) - 1
    most = relaxed_savings(choices.chance[:last], choices.value[last] - choices.value[:last], 4)[4]
    assert choices.value[last] - most <= least_ladder(choices, last).expected * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(40))
def test_a_choice_that_another_number_of_nodes_beats_is_of_no_use(seed: int) -> None:
    """As dear or dearer, as likely or less, as late or sooner, in the same place: no ladder needs it."""
    draw = random.Random(3000 + seed)
    items, shortages = drawn(draw)
    better = draw.choice(items[:-1])
    value, late, pool, group, is_spot, chance = better
    useless: Item = (
        value + draw.choice((0, 1, 3)),
        draw.randint(1, late),
        pool,
        group,
        is_spot,
        chance * draw.random(),
    )
    with_it = least_ladder(choices_of([useless, *items], shortages), len(items)).expected
    without = brute_force(items, shortages, len(items) - 1, None, 5)
    assert with_it == pytest.approx(without, rel=1e-12)


def test_a_last_choice_that_is_too_late_is_refused() -> None:
    """Nothing is assumed about a ladder that cannot end in time."""
    items: list[Item] = [(5, 9, 0, 0, True, 0.5), (10, 0, 2, 0, False, 1.0)]
    with pytest.raises(ValueError, match="too late"):
        least_ladder(choices_of(items, [(0.1, 0.0)]), 1)
