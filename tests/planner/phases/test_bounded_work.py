"""Jobs that may run on thousands of machines at once end in few sequences, not in pairs and triples of all of them."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from catalog.columns import columns_of
from catalog.embedded import embedded_snapshot
from catalog.owned import OwnedMachine
from planner.answer import Infeasible, Planned
from planner.candidates.gather import Candidates, over
from planner.choice import cheapest
from planner.job import Constraints, DataSource, Preset, Training, TrainingJob
from planner.phases import bounds, search, shares
from planner.phases.bounds import Shortlist
from planner.phases.cheapest import limit_micros
from planner.phases.lines import every_line
from planner.phases.sequences import lots
from planner.phases.straight import Straight
from planner.plan import plan
from planner.settings import PlannerSettings
from tests.planner.phases.cases import found_for, rented_case
from tests.planner.phases.test_moves import rig
from tests.planner.phases.test_sequences import BETWEEN_REGIONS
from tests.planner.small_catalogues import START

Ints = NDArray[np.int64]

#: So many columns may be left to be paired, and so many pairs and triples to be compared.
FEW = 1_000
#: Boxes of shares that a sequence may be cut into, on average: they took more than 1,000 before.
BOXES_EACH = 3

LARGE = TrainingJob(
    name="large",
    workload=Preset(model="llama-3-8b", tokens=3.6e8),
    start=START,
    deadline_hours=61.0,
    confidence=0.5,
    constraints=Constraints(max_nodes=4096, max_phases=3),
)
JOBS = {
    "small beside the machines it may have": LARGE,
    "within a budget that is not felt": replace(
        LARGE, workload=Preset(model="mixtral-8x7b", tokens=3.2e8), deadline_hours=6.6, budget_usd=2.4e6
    ),
    "too dear for its budget": replace(
        LARGE,
        workload=Preset(model="llama-3-8b", tokens=1e10),
        deadline_hours=5040.0,
        budget_usd=174.0,
        confidence=0.9999,
        data=DataSource(provider="aws", region="us-east-1", dataset_gb=690.0),
    ),
    "just too dear for its budget": replace(
        LARGE,
        workload=Preset(model="gpt3-175b", tokens=5.3e10),
        deadline_hours=815.0,
        budget_usd=22_400.0,
        confidence=0.99,
        data=DataSource(provider="aws", region="us-east-1", dataset_gb=85_600.0),
    ),
    "late nine times in ten": replace(
        LARGE,
        workload=Preset(model="llama-3-8b", tokens=3e11),
        deadline_hours=300.0,
        confidence=0.1,
        constraints=Constraints(max_nodes=64, max_phases=3),
    ),
    "late twice in three": replace(
        LARGE,
        workload=Preset(model="llama-3-8b", tokens=3e11),
        deadline_hours=250.0,
        confidence=0.33,
        constraints=Constraints(max_nodes=64, max_phases=3),
    ),
}


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
def test_machines_that_are_taken_away_often_are_ruled_out_before_they_are_paired(
    job: TrainingJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    def counted(find: Callable[..., Shortlist]) -> Callable[..., Shortlist]:
        def found(lines: Straight, *given: float) -> Shortlist:
            assert len(lines) <= FEW
            listed = find(lines, *given)
            assert len(listed.sets) <= FEW
            return listed

        return found

    for name in ("pairs_below", "triples_below"):
        monkeypatch.setattr(search, name, counted(getattr(search, name)))
    found, limit = _searched(job)
    assert len(found.shares) > 2 * FEW
    assert search.search_phases(found, limit).sequences <= FEW


def test_own_machines_that_are_free_for_some_days_leave_few_sets_where_no_deadline_does() -> None:
    tuned = TrainingJob(
        name="tuned",
        workload=Preset(model="llama-3-8b", tokens=3.7e10),
        training=Training(method="lora", rank=16),
        start=START,
        confidence=0.95,
        constraints=Constraints(price_kinds=("on_demand", "owned"), max_nodes=32, max_phases=3),
    )
    free = ((44.8, 84.0), (137.6, 194.7), (210.7, 223.0))
    assert search.search_phases(*_searched(tuned, rig(*free, accelerator="L4"))).sequences <= FEW


def test_shares_of_machines_that_are_taken_away_often_are_cut_a_few_times_however_sure_hours_must_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    boxes, tightened = 0, shares._tightened

    def counted(low: Ints, high: Ints) -> tuple[Ints, Ints, NDArray[np.bool_]]:
        nonlocal boxes
        boxes += len(low)
        return tightened(low, high)

    monkeypatch.setattr(shares, "_tightened", counted)
    sure = replace(
        LARGE,
        workload=Preset(model="mixtral-8x7b", tokens=1.17e12),
        deadline_hours=198.0,
        confidence=0.9999,
        constraints=Constraints(max_nodes=128, max_phases=3),
    )
    searched = search.search_phases(*_searched(sure))
    assert searched.best is not None
    assert 0 < boxes < BOXES_EACH * searched.sequences


def _searched(job: TrainingJob, *owned: OwnedMachine) -> tuple[Candidates, float]:
    """What the job may run on, and what a plan in phases must cost less than."""
    snapshot = embedded_snapshot()
    columns = columns_of(snapshot.id, snapshot.observed_at, snapshot.instance_types, snapshot.offers)
    found = found_for(job, columns, owned, PlannerSettings())
    chosen = cheapest(found.table, over(found.table, job.deadline_hours, job.budget_usd) == 0)
    return found, limit_micros(found, chosen)


def test_lots_grow_to_what_memory_allows_and_no_further() -> None:
    order = np.arange(20_000)
    found = list(lots(order))
    assert [len(lot) for lot in found[:4]] == [256, 1_024, 2_048, 2_048]
    # In six orders each they are no more sequences than boxes are looked at together.
    assert 6 * max(len(lot) for lot in found) <= shares._TOGETHER
    assert np.array_equal(np.concatenate(found), order)


def test_a_shortlist_keeps_the_sets_of_least_bounds_and_the_bound_of_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bounds, "MOST_SETS", 10)
    draw = np.random.default_rng(7)
    sets, usd = draw.integers(0, 50, (1_000, 2)), draw.uniform(1.0, 2.0, 1_000)
    listed = Shortlist(2)
    for some in np.split(np.arange(1_000), 100):
        listed.add(sets[some], usd[some])
    least = np.sort(np.argsort(usd)[:10])
    assert np.array_equal(listed.sets, sets[least])
    assert np.array_equal(listed.usd, usd[least])
    assert listed.left_usd == np.sort(usd)[10]


def test_a_search_with_more_sets_than_are_kept_states_a_gap_that_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    found, limit = _searched(BETWEEN_REGIONS)
    whole = search.search_phases(found, limit)
    assert whole.best is not None
    assert whole.left_usd == np.inf
    monkeypatch.setattr(bounds, "MOST_SETS", 1)
    cut = search.search_phases(found, limit)
    assert cut.best is not None
    assert cut.left_usd <= whole.best.found.micros / 1e6 < cut.best.found.micros / 1e6
    assert cut.sequences < whole.sequences


def test_triples_beyond_those_that_are_bounded_cost_no_less_than_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MOST_SETS", 10**6)
    found, limit = _searched(BETWEEN_REGIONS)
    every = every_line(found)
    mu = bounds.hour_price(every.lines)
    assert mu is not None
    whole = bounds.triples_below(every.lines, mu, limit / 1e6)
    assert whole.left_usd == np.inf
    monkeypatch.setattr(bounds, "MOST_TRIPLES", 1)
    monkeypatch.setattr(bounds, "_TRIPLES_TOGETHER", 1_000)
    some = bounds.triples_below(every.lines, mu, limit / 1e6)
    kept = {tuple(each) for each in some.sets.tolist()}
    dropped = np.array([tuple(each) not in kept for each in whole.sets.tolist()])
    assert 0 < len(kept) < len(whole.sets)
    assert some.left_usd <= whole.usd[dropped].min() * (1 + 1e-9)


def test_sets_beyond_those_that_are_looked_at_again_cost_no_less_than_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    found, limit = _searched(BETWEEN_REGIONS)
    monkeypatch.setattr(search, "MOST_AGAIN", 0)
    cut = search.search_phases(found, limit)
    assert cut.best is not None
    assert cut.left_usd < cut.best.found.micros / 1e6


def test_a_job_without_a_plan_says_that_not_every_set_was_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    job, columns, _ = rented_case(37)
    # One configuration costs 630 USD, two phases 392.
    job = replace(job, budget_usd=500.0)
    assert isinstance(plan(job, columns, settings=PlannerSettings()), Planned)
    monkeypatch.setattr(bounds, "MOST_SETS", 0)
    refused = plan(job, columns, settings=PlannerSettings())
    assert isinstance(refused, Infeasible)
    assert any(said.startswith("not proven: ") for said in refused.warnings)
    assert not any(
        "not proven" in said
        for said in plan(replace(job, budget_usd=1.0), columns, settings=PlannerSettings()).warnings
    )
