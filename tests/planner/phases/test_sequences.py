"""Sets of columns that are left aside since no plan on them is cheap enough in any place, and orders of phases."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from catalog.columns import columns_of
from catalog.embedded import embedded_snapshot
from catalog.offer import InstanceType, Offer
from planner.candidates.gather import Candidates, over
from planner.choice import cheapest
from planner.job import Constraints, Preset, TrainingJob
from planner.phases import search
from planner.phases.cheapest import limit_micros
from planner.phases.columns import PhaseColumns, phase_columns, ranks
from planner.phases.moves import moves
from planner.phases.search import search_phases
from planner.phases.sequences import in_order, too_dear_anywhere
from planner.phases.shares import Found, best_shares
from planner.phases.wider import wider
from planner.settings import PlannerSettings
from tests.planner.phases.cases import best_course, booked_case, found_for, rented_case
from tests.planner.small_catalogues import OBSERVED, START

Ints = NDArray[np.int64]

#: Sets that are drawn of each case, and what plans on them are held to: so many times the cost of the best.
MANY, FACTORS = 30, (1.0, 1.3, 3.0)
BETWEEN_REGIONS = TrainingJob(
    name="between regions",
    workload=Preset(model="llama-3-70b", tokens=8.1e9),
    start=START,
    deadline_hours=30.0,
    constraints=Constraints(providers=("aws",), max_nodes=8, max_phases=3),
)


def cheapest_with_moves(found: Candidates, columns: PhaseColumns, sets: Ints, most_micros: float) -> Found | None:
    return best_shares(columns, moves(columns), in_order(columns, ranks(found, columns), sets), most_micros)


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("seed", [8, 24, 65, 82, 150])
def test_a_set_that_is_too_dear_anywhere_has_no_cheaper_plan_on_offers_left_out_either(seed: int, count: int) -> None:
    found = found_for(*rented_case(seed))
    best = best_course(found)
    columns = phase_columns(found, found.shares)
    sets = np.random.default_rng(seed).permutation(list(combinations(range(len(columns)), count)))[:MANY]
    assert best is not None
    marked = []
    for factor in FACTORS:
        most = best.cost.expected * factor
        dear = np.concatenate([too_dear_anywhere(found, columns, each[None], np.zeros(1), most) for each in sets])
        assert cheapest_with_moves(found, columns, sets[dear], most) is None
        again = wider(found, columns, sets[dear], most / 1e6 + 1e-5, mu=0.0, ordered=False)
        assert again is None or cheapest_with_moves(found, again[0], again[1].sets, most) is None
        marked.append(int(dear.sum()))
    assert marked[0] > 0


def test_offers_beaten_by_one_column_of_a_set_may_stand_for_another_of_the_same_machines() -> None:
    # Checkpoints take hours to write here and a set-up none, so that two short phases on the steadier offer are in time
    # where one long run is not: neither phase can be on the other offer, which is cheap and taken away too often.
    machine = InstanceType(
        provider="gcp",
        name="one",
        accelerator="A10G",
        accelerator_count=Fraction(8),
        intranode_gbs=31.5,
        source="drawn",
    )
    offers = [
        Offer(
            provider="gcp",
            region=region,
            instance_type="one",
            price_kind="spot",
            usd_micros_per_hour=usd_micros,
            interruptions_per_hour=rate,
            observed_at=OBSERVED,
            source="drawn",
        )
        for region, usd_micros, rate in (
            ("europe-west4", 1_666_676, 0.8708),
            ("us-central1", 14_198_725, 0.41435757569),
        )
    ]
    job = TrainingJob(
        name="in time in two phases only",
        workload=Preset(model="llama-3-8b", tokens=232_050_836.16481078),
        start=START,
        deadline_hours=408.9,
        confidence=0.5,
        constraints=Constraints(price_kinds=("spot",), max_nodes=3),
    )
    slow = PlannerSettings(setup_hours=0.0, restart_hours=0.0, checkpoint_gbs=0.006065424364994137, move_gbs=100.0)
    found = found_for(job, columns_of("two", OBSERVED, [machine], offers), (), slow)
    assert over(found.table, job.deadline_hours, None).all()
    course = best_course(found)
    assert course is not None
    assert [each.choice.offer.region for each in course.phases] == ["us-central1"] * 2


def test_sets_with_windows_are_never_too_dear_anywhere() -> None:
    found = found_for(*booked_case(178))
    columns = phase_columns(found, found.shares)
    windows = np.flatnonzero(columns.windowed)
    sets = np.array([[one, other] for one in windows for other in np.flatnonzero(~columns.windowed)])
    assert len(sets)
    assert not too_dear_anywhere(found, columns, sets, np.zeros(len(sets)), 0.0).any()


@pytest.mark.parametrize("confidence", [0.3, 0.9999])
def test_nothing_is_too_dear_anywhere_where_hours_need_not_rise_with_preemption(confidence: float) -> None:
    job, offers, owned = rented_case(8)
    for sure, marked in ((0.9, True), (confidence, False)):
        found = found_for(replace(job, confidence=sure), offers, owned)
        columns = phase_columns(found, found.shares)
        assert too_dear_anywhere(found, columns, np.array([[0, 1]]), np.zeros(1), 0.0).all() == marked


def test_offers_left_out_are_looked_at_for_few_sets_of_three(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at = []

    def counted(found: Candidates, columns: PhaseColumns, sets: Ints, upper_usd: float, *, mu: float, ordered: bool):  # type: ignore[no-untyped-def]
        looked_at.append(sets.shape)
        return wider(found, columns, sets, upper_usd, mu=mu, ordered=ordered)

    monkeypatch.setattr(search, "wider", counted)
    snapshot = embedded_snapshot()
    offers = columns_of(snapshot.id, snapshot.observed_at, snapshot.instance_types, snapshot.offers)
    found = found_for(BETWEEN_REGIONS, offers, (), PlannerSettings())
    chosen = cheapest(found.table, over(found.table, BETWEEN_REGIONS.deadline_hours, None) == 0)
    searched = search_phases(found, limit_micros(found, chosen))
    assert searched.best is not None
    assert searched.left_usd == np.inf
    assert searched.sequences > 3
    assert sum(count for count, width in looked_at if width == 3) < searched.sequences / 10
