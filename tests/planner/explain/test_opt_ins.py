"""Why nothing will do where the only machines are those that a job must opt in to: that is told beside the ways out."""

from datetime import UTC, datetime

import pytest

from gpuplan.catalog.snapshots.embedded_snapshot import embedded_snapshot
from gpuplan.catalog.snapshots.offer_columns import columns_of
from gpuplan.planner.model.job import Constraints, Preset, TrainingJob
from gpuplan.planner.model.outcome import NoPlan, Planned
from gpuplan.planner.planning import plan
from tests.planner.spot_settings import replaced_at_once

SNAPSHOT = embedded_snapshot()
COLUMNS = columns_of(SNAPSHOT.id, SNAPSHOT.observed_at, list(SNAPSHOT.instance_types), list(SNAPSHOT.offers))
GOV = ("us-gov-west-1",)


def job(**constraints: object) -> TrainingJob:
    return TrainingJob(
        name="opt-in",
        workload=Preset(model="llama-3-8b", tokens=1e9),
        start=datetime(2026, 11, 21, tzinfo=UTC),
        constraints=Constraints(max_phases=1, **constraints),  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("constraints", [{"regions": GOV}, {"partitions": ("china",), "geography": ("us",)}])
def test_offers_that_wait_for_an_opt_in_are_told_where_nothing_will_do(constraints: dict[str, object]) -> None:
    outcome = plan(job(**constraints), COLUMNS, settings=replaced_at_once(least_saving_of_a_move_percent=0.0))
    assert isinstance(outcome, NoPlan)
    [warning_text] = [warning for warning in outcome.warnings if warning.startswith("relaxations leave out")]
    left = outcome.rejected["another partition (opt in with constraints.partitions)"]
    assert f"{left:,} offers: another partition (opt in with constraints.partitions)" in warning_text


def test_the_opt_in_that_is_told_is_one_that_helps() -> None:
    outcome = plan(
        job(regions=GOV, partitions=("gov",)), COLUMNS, settings=replaced_at_once(least_saving_of_a_move_percent=0.0)
    )
    assert isinstance(outcome, Planned)


def test_nothing_is_told_where_no_offer_waits_for_an_opt_in() -> None:
    outcome = plan(
        job(instance_types=("p5.48xlarge",), geography=("africa",)),
        COLUMNS,
        settings=replaced_at_once(least_saving_of_a_move_percent=0.0),
    )
    assert isinstance(outcome, NoPlan)
    assert not [warning for warning in outcome.warnings if warning.startswith("relaxations leave out")]
