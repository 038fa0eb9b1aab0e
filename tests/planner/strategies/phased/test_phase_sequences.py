"""Two phases on the same machines in the same place."""

from fractions import Fraction

import pytest

from gpuplan.catalog.model.offer import InstanceType, Offer
from gpuplan.catalog.snapshots.offer_columns import columns_of
from gpuplan.planner.candidates.candidate_set import over
from gpuplan.planner.model.job import Constraints, Preset, TrainingJob
from tests.planner.small_catalogues import OBSERVED, START
from tests.planner.spot_settings import replaced_at_once
from tests.planner.strategies.phased.cases import best_schedule, found_for


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
