"""What bounds leave out is in no plan that they were asked for: against plans drawn over all columns and shares."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from gpuplan.catalog.model.owned_machine import OwnedMachine
from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.planner.candidates.candidate_set import over
from gpuplan.planner.candidates.configuration_choice import cheapest
from gpuplan.planner.model.job import TrainingJob
from gpuplan.planner.strategies.phased.linear_bounds import lined
from gpuplan.planner.strategies.phased.linear_underestimators import STEPS
from gpuplan.planner.strategies.phased.migration_costs import moves
from gpuplan.planner.strategies.phased.phase_bounds import fast, hour_price, pair_usd, pairs_below, worthwhile
from gpuplan.planner.strategies.phased.phase_columns import PhaseColumns, phase_columns
from gpuplan.planner.strategies.phased.phase_pricing import Priced, priced
from gpuplan.planner.strategies.phased.phase_search import NOTHING_TO_SEARCH, search_phases
from gpuplan.planner.strategies.phased.sequence_linear_bounds import least_usd
from gpuplan.planner.strategies.strategy_choice import limit_micros
from tests.planner.strategies.phased.cases import booked_case, found_for, rented_case

Ints = NDArray[np.int64]
Case = Callable[[int], tuple[TrainingJob, Columns, tuple[OwnedMachine, ...]]]
SEEDS = [(case, seed) for case in (rented_case, booked_case) for seed in range(10)]
DRAWN = 400


@dataclass(frozen=True)
class Drawn:
    """Plans of two phases on random columns with random shares."""

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


def drawn(case: Case, seed: int) -> Drawn | None:
    result = found_for(*case(seed))
    if len(result.shares) < 2:
        return None
    columns, draw = phase_columns(result, result.shares), np.random.default_rng(seed)
    sequences = np.array([draw.choice(len(columns), 2, replace=False) for _ in range(DRAWN)])
    first = draw.integers(1, STEPS, DRAWN)
    steps = np.stack((first, STEPS - first), axis=1)
    allowed = (columns.migration_class[sequences] == columns.migration_class[sequences[:, :1]]).all(axis=1)
    allowed &= (steps <= columns.most_steps[sequences]).all(axis=1)
    sequences, steps = sequences[allowed], steps[allowed]
    plans = priced(columns, moves(columns), sequences, steps)
    return Drawn(columns=columns, sequences=sequences, steps=steps, plans=plans)


@pytest.mark.slow(reason="40 cases")
@pytest.mark.parametrize(("case", "seed"), SEEDS)
def test_no_plan_below_a_limit_uses_a_column_that_is_not_worthwhile(case: Case, seed: int) -> None:
    some = drawn(case, seed)
    if some is None or not some.below(np.inf).any():
        return
    usd, linear_bounds = some.middling / 1e6, some.columns.linear_bounds
    per_hour = usd / linear_bounds.deadline_hours
    prices = per_hour * np.array([0.0, 0.1, 0.5, 1.0, 2.0])
    used = np.unique(some.sequences[some.below(some.middling)])
    for bounds in (linear_bounds, linear_bounds.early):
        assert worthwhile(bounds, prices, usd + 1e-5)[used].all()


@pytest.mark.parametrize(("case", "seed"), SEEDS)
def test_the_price_of_an_hour_is_the_slope_of_the_hull_at_the_deadline(case: Case, seed: int) -> None:
    result = found_for(*case(seed))
    if not len(result.shares):
        return
    linear_bounds = lined(result, result.shares).linear_bounds
    hours, usd = (
        linear_bounds.fixed_hours + linear_bounds.slope_hours,
        linear_bounds.fixed_usd + linear_bounds.slope_usd + linear_bounds.data_usd,
    )
    mu = hour_price(linear_bounds)
    if mu is None:
        assert hours.min() > linear_bounds.deadline_hours
        return
    # The least cost of a mix of two that takes as long as there is time, found by trying all.
    mixes = list(usd[hours <= linear_bounds.deadline_hours])
    for i, j in combinations(range(len(linear_bounds)), 2):
        (slow, fast_one) = (i, j) if hours[i] > hours[j] else (j, i)
        if hours[fast_one] <= linear_bounds.deadline_hours < hours[slow]:
            share = (linear_bounds.deadline_hours - hours[fast_one]) / (hours[slow] - hours[fast_one])
            mixes.append(usd[fast_one] + share * (usd[slow] - usd[fast_one]))
    assert (usd + mu * hours).min() - mu * linear_bounds.deadline_hours == pytest.approx(min(mixes), rel=1e-9)


@pytest.mark.slow(reason="2 cases")
@pytest.mark.parametrize("case", [rented_case, booked_case])
def test_no_plan_in_time_or_late_costs_less_than_its_deadline_free_bound(case: Case) -> None:
    near = []
    for seed in range(20):
        some = drawn(case, seed)
        if some is None or not len(some.plans.micros):
            continue
        least = least_usd(some.columns.lined)
        assert (least <= some.plans.micros / 1e6 * (1 + 1e-12) + 2e-6).all()
        near.append(least > 0.5 * float(some.plans.micros.min()) / 1e6)
    assert sum(near) > 1


@pytest.mark.parametrize("case", [rented_case, booked_case])
def test_where_nothing_is_searched_no_pair_lies_below_the_limit(case: Case) -> None:
    ended = 0
    for seed in range(60):
        result = found_for(*case(seed))
        job = result.question.job
        limit = limit_micros(
            result, cheapest(result.table, over(result.table, job.deadline_hours, job.budget_usd) == 0)
        )
        if len(result.shares) < 2 or search_phases(result, limit) is not NOTHING_TO_SEARCH:
            continue
        linear_bounds = lined(result, result.shares).linear_bounds
        mu = hour_price(linear_bounds)
        if mu is None:
            continue
        ended += bool(fast(linear_bounds).any())
        pairs = pairs_below(linear_bounds, limit / 1e6).pairs
        assert not len(pairs[(linear_bounds.most_steps[pairs] > 0).all(axis=1)])
    assert ended > 5


def test_without_a_deadline_windows_leave_a_machine_the_share_that_they_have_room_for() -> None:
    capped = 0
    for seed in range(20):
        job, offers, owned = booked_case(seed)
        result = found_for(replace(job, deadline_hours=None), offers, owned)
        columns = phase_columns(result, result.shares)
        some = np.flatnonzero(columns.windowed & (columns.caps < 1.0))
        beyond = np.floor(columns.caps[some] * STEPS).astype(np.int64) + 2
        assert np.isinf(priced(columns, moves(columns), some[:, None], beyond[:, None]).hours).all()
        capped += len(some)
    assert capped > 2


@pytest.mark.parametrize("seed", range(20))
def test_the_pairs_that_are_found_are_all_whose_bound_is_below_the_limit(seed: int) -> None:
    result = found_for(*rented_case(seed))
    linear_bounds = phase_columns(result, result.shares).linear_bounds
    one, other = np.array(list(combinations(range(len(linear_bounds)), 2)), np.int64).reshape(-1, 2).T
    quick = fast(linear_bounds)
    usd = np.where(
        (quick[one] | quick[other]) & (linear_bounds.migration_class[one] == linear_bounds.migration_class[other]),
        pair_usd(linear_bounds, one, other),
        np.inf,
    )
    bounded = np.sort(usd[np.isfinite(usd)])
    # A pair told the other way round may differ by rounding.
    for limit in (*(bounded[:: max(len(bounded) // 5, 1)] * (1 + 1e-9)), np.inf):
        listed = pairs_below(linear_bounds, float(limit))
        expected = {frozenset(pair) for pair in np.stack((one, other), axis=1)[usd < limit].tolist()}
        assert {frozenset(pair) for pair in listed.pairs.tolist()} == expected
        assert len(listed.pairs) == len(expected)
