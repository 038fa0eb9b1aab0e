"""Jobs that may run on thousands of machines at once end in few sequences, not in pairs of all of them."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from gpuplan.catalog.model.owned_machine import OwnedMachine
from gpuplan.catalog.snapshots.embedded_snapshot import embedded_snapshot
from gpuplan.catalog.snapshots.offer_columns import columns_of
from gpuplan.planner.candidates.candidate_set import Candidates, over
from gpuplan.planner.candidates.configuration_choice import cheapest
from gpuplan.planner.model.job import Constraints, DataSource, Preset, Training, TrainingJob
from gpuplan.planner.model.outcome import NoPlan, Planned
from gpuplan.planner.planning import plan
from gpuplan.planner.strategies.phased import phase_bounds, phase_search, work_shares
from gpuplan.planner.strategies.phased.linear_underestimators import LinearUnderestimator
from gpuplan.planner.strategies.phased.phase_bounds import Shortlist
from gpuplan.planner.strategies.strategy_choice import limit_micros
from tests.planner.small_catalogues import START
from tests.planner.spot_settings import replaced_at_once
from tests.planner.strategies.phased.cases import found_for, rented_case
from tests.planner.strategies.phased.test_migration_costs import rig

#: So many columns may be left to be paired, and so many pairs to be compared.
FEW = 1_000
#: Ranges of shares that a sequence may be split into, on average: they took more than 1,000 before.
RANGES_EACH = 15

LARGE = TrainingJob(
    name="large",
    workload=Preset(model="llama-3-8b", tokens=3.6e8),
    start=START,
    deadline_hours=61.0,
    confidence=0.5,
    constraints=Constraints(max_nodes=4096),
)
BETWEEN_REGIONS = TrainingJob(
    name="between regions",
    workload=Preset(model="llama-3-70b", tokens=1.6e10),
    start=START,
    deadline_hours=30.0,
    constraints=Constraints(providers=("aws",), max_nodes=16),
)
JOBS = {
    "small beside the machines it may have": LARGE,
    "within a budget that is not felt": replace(
        LARGE, workload=Preset(model="mixtral-8x7b", tokens=3.2e8), deadline_hours=6.6, budget_usd=2.4e6
    ),
    "just too dear for its budget": replace(
        LARGE,
        workload=Preset(model="gpt3-175b", tokens=5.3e10),
        deadline_hours=815.0,
        budget_usd=22_400.0,
        confidence=0.99,
        data=DataSource(location="aws:us-east-1", dataset_gb=85_600.0),
    ),
    "late nine times in ten": replace(
        LARGE,
        workload=Preset(model="llama-3-8b", tokens=3e11),
        deadline_hours=300.0,
        confidence=0.1,
        constraints=Constraints(max_nodes=64),
    ),
    "late twice in three": replace(
        LARGE,
        workload=Preset(model="llama-3-8b", tokens=3e11),
        deadline_hours=250.0,
        confidence=0.33,
        constraints=Constraints(max_nodes=64),
    ),
}


@pytest.mark.slow(reason="5 cases")
@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
def test_machines_that_are_taken_away_often_are_ruled_out_before_they_are_paired(
    job: TrainingJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    def counting(find: Callable[..., Shortlist]) -> Callable[..., Shortlist]:
        def counting_pairs(linear_bounds: LinearUnderestimator, *given: float) -> Shortlist:
            assert len(linear_bounds) <= FEW
            listed = find(linear_bounds, *given)
            assert len(listed.pairs) <= FEW
            return listed

        return counting_pairs

    monkeypatch.setattr(phase_search, "pairs_below", counting(phase_bounds.pairs_below))
    result, limit = _searched(job)
    assert len(result.shares) > 2 * FEW
    assert phase_search.search_phases(result, limit).sequences <= FEW


def test_owned_machines_that_are_free_for_some_days_leave_few_pairs_where_no_deadline_does() -> None:
    tuned = TrainingJob(
        name="tuned",
        workload=Preset(model="llama-3-8b", tokens=3.7e10),
        training=Training(method="lora", rank=16),
        start=START,
        confidence=0.95,
        constraints=Constraints(price_kinds=("on_demand", "owned"), max_nodes=32),
    )
    free = ((44.8, 84.0), (137.6, 194.7), (210.7, 223.0))
    assert phase_search.search_phases(*_searched(tuned, rig(*free, accelerator="L4"))).sequences <= FEW


def test_shares_of_machines_that_are_taken_away_often_are_split_a_few_times_however_sure_hours_must_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ranges, split = 0, work_shares._split

    def counting(whole: work_shares._Ranges, into: int = work_shares._PARTS) -> list[work_shares._Ranges]:
        nonlocal ranges
        parts = split(whole, into)
        ranges += sum(len(part.which) for part in parts)
        return parts

    monkeypatch.setattr(work_shares, "_split", counting)
    sure = replace(
        LARGE,
        workload=Preset(model="llama-3-8b", tokens=1e12),
        deadline_hours=140.0,
        confidence=0.9999,
        constraints=Constraints(max_nodes=128),
    )
    searched = phase_search.search_phases(*_searched(sure))
    assert searched.best is not None
    assert 0 < ranges < RANGES_EACH * searched.sequences


def _searched(job: TrainingJob, *owned: OwnedMachine) -> tuple[Candidates, float]:
    """What the job may run on, and what a plan in phases must cost less than."""
    snapshot = embedded_snapshot()
    columns = columns_of(snapshot.id, snapshot.observed_at, snapshot.instance_types, snapshot.offers)
    result = found_for(job, columns, owned, replaced_at_once(least_saving_of_a_move_percent=0.0))
    chosen = cheapest(result.table, over(result.table, job.deadline_hours, job.budget_usd) == 0)
    return result, limit_micros(result, chosen)


def test_pairs_in_small_batches_give_the_plan_of_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    # In both orders they are no more sequences than ranges are looked at together.
    assert 2 * phase_search.PAIRS_TOGETHER <= work_shares._TOGETHER
    result, limit = _searched(BETWEEN_REGIONS)
    whole = phase_search.search_phases(result, limit)
    monkeypatch.setattr(phase_search, "PAIRS_TOGETHER", 4)
    small = phase_search.search_phases(result, limit)
    assert whole.best is not None
    assert small.best is not None
    assert small.best.plan.micros == whole.best.plan.micros
    assert small.sequences < whole.sequences


def test_a_shortlist_keeps_the_pairs_of_least_bounds_and_the_bound_of_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(phase_bounds, "MOST_PAIRS", 10)
    draw = np.random.default_rng(7)
    sets, usd = draw.integers(0, 50, (1_000, 2)), draw.uniform(1.0, 2.0, 1_000)
    listed = Shortlist()
    for some in np.split(np.arange(1_000), 100):
        listed.add(sets[some], usd[some])
    least = np.sort(np.argsort(usd)[:10])
    assert np.array_equal(listed.pairs, sets[least])
    assert np.array_equal(listed.usd, usd[least])
    assert listed.left_usd == np.sort(usd)[10]


def test_a_search_with_more_pairs_than_are_kept_states_a_gap_that_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    result, limit = _searched(BETWEEN_REGIONS)
    whole = phase_search.search_phases(result, limit)
    assert whole.best is not None
    assert whole.left_usd == np.inf
    monkeypatch.setattr(phase_bounds, "MOST_PAIRS", 1)
    cut = phase_search.search_phases(result, limit)
    assert cut.best is not None
    assert cut.left_usd <= whole.best.plan.micros / 1e6 < cut.best.plan.micros / 1e6
    assert cut.sequences < whole.sequences


def test_pairs_beyond_those_that_are_looked_at_again_cost_no_less_than_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    result, limit = _searched(BETWEEN_REGIONS)
    monkeypatch.setattr(phase_search, "MOST_AGAIN", 0)
    cut = phase_search.search_phases(result, limit)
    assert cut.best is not None
    assert cut.left_usd < cut.best.plan.micros / 1e6


def test_a_job_without_a_plan_says_that_not_every_pair_was_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    job, columns, _ = rented_case(37)
    # One configuration costs 630 USD, two phases 392.
    job = replace(job, budget_usd=500.0)
    assert isinstance(plan(job, columns, settings=replaced_at_once(least_saving_of_a_move_percent=0.0)), Planned)
    monkeypatch.setattr(phase_bounds, "MOST_PAIRS", 0)
    refused = plan(job, columns, settings=replaced_at_once(least_saving_of_a_move_percent=0.0))
    assert isinstance(refused, NoPlan)
    assert any(warning.startswith("not proven: ") for warning in refused.warnings)
    assert not any(
        "not proven" in warning
        for warning in plan(
            replace(job, budget_usd=1.0), columns, settings=replaced_at_once(least_saving_of_a_move_percent=0.0)
        ).warnings
    )
