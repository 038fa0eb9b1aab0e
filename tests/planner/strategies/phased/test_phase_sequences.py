"""Pairs of columns that are left aside since no plan on them is cheap enough in any place."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from gpuplan.catalog.model.offer import InstanceType, Offer
from gpuplan.catalog.snapshots.offer_columns import columns_of
from gpuplan.planner.candidates.candidate_set import Candidates, over
from gpuplan.planner.model.job import Constraints, Preset, TrainingJob
from gpuplan.planner.strategies.phased.dominated_offer_recheck import dominated_offers_recheck
from gpuplan.planner.strategies.phased.migration_costs import moves
from gpuplan.planner.strategies.phased.phase_columns import PhaseColumns, phase_columns, ranks
from gpuplan.planner.strategies.phased.phase_sequences import in_order, too_dear_anywhere
from gpuplan.planner.strategies.phased.work_shares import BestShares, best_shares
from tests.planner.small_catalogues import OBSERVED, START
from tests.planner.spot_settings import replaced_at_once
from tests.planner.strategies.phased.cases import best_schedule, booked_case, found_for, rented_case

Ints = NDArray[np.int64]

#: Pairs that are drawn of each case, and what plans on them are held to: so many times the cost of the best.
MOST_PAIRS, FACTORS = 30, (1.0, 1.3, 3.0)
BETWEEN_REGIONS = TrainingJob(
    name="between regions",
    workload=Preset(model="llama-3-70b", tokens=1.6e10),
    start=START,
    deadline_hours=30.0,
    constraints=Constraints(providers=("aws",), max_nodes=16),
)


def cheapest_with_moves(
    candidates: Candidates, columns: PhaseColumns, pairs: Ints, most_micros: float
) -> BestShares | None:
    return best_shares(columns, moves(columns), in_order(columns, ranks(candidates, columns), pairs), most_micros)


@pytest.mark.parametrize("seed", [8, 24, 65, 82, 150])
def test_a_pair_that_is_too_dear_anywhere_has_no_cheaper_plan_on_dominated_offers_either(seed: int) -> None:
    result = found_for(*rented_case(seed))
    best = best_schedule(result)
    columns = phase_columns(result, result.shares)
    pairs = np.random.default_rng(seed).permutation(list(combinations(range(len(columns)), 2)))[:MOST_PAIRS]
    assert best is not None
    marked = []
    for factor in FACTORS:
        most = best.cost.expected * factor
        dear = np.concatenate([too_dear_anywhere(result, columns, pair[None], np.zeros(1), most) for pair in pairs])
        assert cheapest_with_moves(result, columns, pairs[dear], most) is None
        again = dominated_offers_recheck(result, columns, pairs[dear], most / 1e6 + 1e-5, mu=0.0)
        assert again is None or cheapest_with_moves(result, again[0], again[1].pairs, most) is None
        marked.append(int(dear.sum()))
    assert marked[0] > 0


@pytest.mark.slow(reason="one long case")
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
        workload=Preset(model="llama-3-8b", tokens=295_000_000.0),
        start=START,
        deadline_hours=408.9,
        confidence=0.5,
        constraints=Constraints(price_kinds=("spot",), max_nodes=3),
    )
    slow = replaced_at_once(
        setup_hours=0.0,
        restart_hours=0.0,
        checkpoint_gbs=0.006065424364994137,
        move_gbs=100.0,
        least_saving_of_a_move_percent=0.0,
    )
    result = found_for(job, columns_of("two", OBSERVED, [machine], offers), (), slow)
    assert over(result.table, job.deadline_hours, None).all()
    schedule = best_schedule(result)
    assert schedule is not None
    assert [phase.choice.offer.region for phase in schedule.phases] == ["us-central1"] * 2


def test_pairs_with_windows_are_never_too_dear_anywhere() -> None:
    result = found_for(*booked_case(178))
    columns = phase_columns(result, result.shares)
    windows = np.flatnonzero(columns.windowed)
    pairs = np.array([[one, other] for one in windows for other in np.flatnonzero(~columns.windowed)])
    assert len(pairs)
    assert not too_dear_anywhere(result, columns, pairs, np.zeros(len(pairs)), 0.0).any()


@pytest.mark.parametrize("confidence", [0.3, 0.9999])
def test_nothing_is_too_dear_anywhere_where_hours_need_not_rise_with_preemption(confidence: float) -> None:
    job, offers, owned = rented_case(8)
    for sure, marked in ((0.9, True), (confidence, False)):
        result = found_for(replace(job, confidence=sure), offers, owned)
        columns = phase_columns(result, result.shares)
        assert too_dear_anywhere(result, columns, np.array([[0, 1]]), np.zeros(1), 0.0).all() == marked
