"""What bounds leave out is in no plan that they were asked for: against plans drawn over all columns and shares."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations, product

import numpy as np
import pytest
from numpy.typing import NDArray

from catalog.columns import Columns
from catalog.owned import OwnedMachine
from planner.candidates.gather import over
from planner.choice import cheapest
from planner.job import TrainingJob
from planner.phases.bounds import fast, hour_price, pairs_below, triples_below, worthwhile
from planner.phases.cheapest import limit_micros
from planner.phases.columns import PhaseColumns, every_column
from planner.phases.lines import every_line
from planner.phases.moves import moves
from planner.phases.price import Priced, priced
from planner.phases.search import NOTHING_TO_SEARCH, search_phases
from planner.phases.sequence_lines import sequence_lines, within_lines
from planner.phases.shares import _usd_from
from planner.phases.straight import STEPS
from planner.phases.whatever_the_hours import least_usd
from tests.planner.phases.cases import booked_case, found_for, rented_case

Ints = NDArray[np.int64]
Case = Callable[[int], tuple[TrainingJob, Columns, tuple[OwnedMachine, ...]]]
SEEDS = [(case, seed) for case in (rented_case, booked_case) for seed in range(10)]
DRAWN = 400


@dataclass(frozen=True)
class Drawn:
    """Plans of so many phases on random columns with random shares."""

    columns: PhaseColumns
    sequences: Ints
    steps: Ints
    plans: Priced

    def below(self, micros: float) -> NDArray[np.bool_]:
        in_time = self.plans.hours <= self.columns.deadline_hours
        return np.asarray(in_time & (self.plans.micros < micros))

    @property
    def middling(self) -> float:
        """What half of the plans in time cost less than; nan if none is."""
        return float(np.median(self.plans.micros[self.below(np.inf)])) if self.below(np.inf).any() else np.nan


def drawn(case: Case, seed: int, phases: int) -> Drawn | None:
    found = found_for(*case(seed))
    if len(found.shares) < phases:
        return None
    columns, draw = every_column(found), np.random.default_rng(seed)
    sequences = np.array([draw.choice(len(columns), phases, replace=False) for _ in range(DRAWN)])
    cuts = np.sort(draw.integers(1, STEPS, (DRAWN, phases - 1)), axis=1)
    steps = np.diff(np.concatenate((np.zeros((DRAWN, 1)), cuts, np.full((DRAWN, 1), STEPS)), axis=1), axis=1)
    kept = (steps > 0).all(axis=1) & (columns.kin[sequences] == columns.kin[sequences[:, :1]]).all(axis=1)
    kept &= (steps <= columns.most_steps[sequences]).all(axis=1)
    sequences, steps = sequences[kept], steps[kept].astype(np.int64)
    plans = priced(columns, moves(columns), sequences, steps)
    return Drawn(columns=columns, sequences=sequences, steps=steps, plans=plans)


@pytest.mark.parametrize(("case", "seed"), SEEDS)
@pytest.mark.parametrize("phases", [2, 3])
def test_no_plan_below_a_limit_has_shares_beyond_the_ends_that_lines_leave(case: Case, seed: int, phases: int) -> None:
    some = drawn(case, seed, phases)
    if some is None or not some.below(np.inf).any():
        return
    lines = sequence_lines(some.columns, moves(some.columns), some.sequences)
    whole = np.ones_like(some.steps), np.full_like(some.steps, STEPS)
    low, high = within_lines(lines, *whole, some.middling)
    inside = ((low <= some.steps) & (some.steps <= high)).all(axis=1)
    assert inside[some.below(some.middling)].all()
    assert (low > 1).any() or (high < STEPS).any()


@pytest.mark.parametrize(("case", "seed"), SEEDS)
@pytest.mark.parametrize("phases", [2, 3])
def test_no_plan_below_a_limit_uses_a_column_that_is_not_worthwhile(case: Case, seed: int, phases: int) -> None:
    some = drawn(case, seed, phases)
    if some is None or not some.below(np.inf).any():
        return
    usd, lines = some.middling / 1e6, some.columns.lines
    per_hour = usd / lines.deadline_hours
    prices = per_hour * np.array([0.0, 0.1, 0.5, 1.0, 2.0])
    used = np.unique(some.sequences[some.below(some.middling)])
    for each in (lines, lines.early):
        assert worthwhile(each, prices, usd + 1e-5, phases=phases)[used].all()


@pytest.mark.parametrize("case", [rented_case, booked_case])
def test_no_plan_costs_less_than_its_phases_with_less_of_the_work_and_the_lines_from_there(case: Case) -> None:
    known = 0
    for phases, seed in product((2, 3), range(20)):
        some = drawn(case, seed, phases)
        if some is None:
            continue
        low = np.maximum(some.steps * np.random.default_rng(seed).random(some.steps.shape), 1).astype(np.int64)
        lines = sequence_lines(some.columns, moves(some.columns), some.sequences)
        floor = priced(some.columns, moves(some.columns), some.sequences, low, at_least=True)
        usd = _usd_from(some.columns, lines, some.sequences, floor, low)
        usd += (lines.slope_usd * (some.steps - low) / STEPS).sum(axis=1)
        assert (usd <= some.plans.micros / 1e6 * (1 + 1e-12)).all()
        known += int(np.isfinite(usd).sum())
    assert known > DRAWN


@pytest.mark.parametrize(("case", "seed"), SEEDS)
def test_the_price_of_an_hour_is_the_slope_of_the_hull_at_the_deadline(case: Case, seed: int) -> None:
    found = found_for(*case(seed))
    if not len(found.shares):
        return
    lines = every_line(found).lines
    hours, usd = lines.fixed_hours + lines.slope_hours, lines.fixed_usd + lines.slope_usd + lines.data_usd
    mu = hour_price(lines)
    if mu is None:
        assert hours.min() > lines.deadline_hours
        return
    # The least cost of a mix of two that takes as long as there is time, found by trying all.
    mixes = list(usd[hours <= lines.deadline_hours])
    for i, j in combinations(range(len(lines)), 2):
        (slow, fast_one) = (i, j) if hours[i] > hours[j] else (j, i)
        if hours[fast_one] <= lines.deadline_hours < hours[slow]:
            share = (lines.deadline_hours - hours[fast_one]) / (hours[slow] - hours[fast_one])
            mixes.append(usd[fast_one] + share * (usd[slow] - usd[fast_one]))
    assert (usd + mu * hours).min() - mu * lines.deadline_hours == pytest.approx(min(mixes), rel=1e-9)


@pytest.mark.parametrize("case", [rented_case, booked_case])
def test_no_plan_in_time_or_late_costs_less_than_what_is_told_whatever_the_hours(case: Case) -> None:
    near = []
    for phases, seed in product((2, 3), range(20)):
        some = drawn(case, seed, phases)
        if some is None or not len(some.plans.micros):
            continue
        least = least_usd(some.columns.lined, phases)
        assert (least <= some.plans.micros / 1e6 * (1 + 1e-12) + phases * 1e-6).all()
        near.append(least > 0.5 * float(some.plans.micros.min()) / 1e6)
    assert sum(near) > 1


@pytest.mark.parametrize("case", [rented_case, booked_case])
def test_where_nothing_is_searched_no_pair_and_no_triple_lies_below_the_limit(case: Case) -> None:
    ended = 0
    for seed in range(60):
        found = found_for(*case(seed))
        job = found.question.job
        limit = limit_micros(found, cheapest(found.table, over(found.table, job.deadline_hours, job.budget_usd) == 0))
        if len(found.shares) < 2 or search_phases(found, limit) is not NOTHING_TO_SEARCH:
            continue
        lines = every_line(found).lines
        mu = hour_price(lines)
        if mu is None:
            continue
        ended += bool(fast(lines).any())
        for listed in (pairs_below(lines, limit / 1e6), triples_below(lines, mu, limit / 1e6)):
            sets = listed.sets
            assert not len(sets[(lines.most_steps[sets] > 0).all(axis=1)])
    assert ended > 5


def test_without_a_deadline_windows_leave_a_machine_the_share_that_they_have_room_for() -> None:
    capped = 0
    for seed in range(20):
        job, offers, owned = booked_case(seed)
        columns = every_column(found_for(replace(job, deadline_hours=None), offers, owned))
        some = np.flatnonzero(columns.windowed & (columns.caps < 1.0))
        beyond = np.floor(columns.caps[some] * STEPS).astype(np.int64) + 2
        assert np.isinf(priced(columns, moves(columns), some[:, None], beyond[:, None]).hours).all()
        capped += len(some)
    assert capped > 2
