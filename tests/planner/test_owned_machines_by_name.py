"""Constraints may name the user's own machines, which no catalogue lists."""

from datetime import UTC, datetime
from fractions import Fraction

import pytest

from gpuplan.catalog.model.offer import InstanceType
from gpuplan.catalog.model.owned_machine import OwnedMachine
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.snapshots.embedded_snapshot import embedded_snapshot
from gpuplan.catalog.snapshots.offer_columns import columns_of
from gpuplan.planner.model.job import Constraints, Preset, TrainingJob
from gpuplan.planner.model.outcome import Planned
from gpuplan.planner.planning import plan
from gpuplan.providers.owned.owned_machines import read_inventory
from tests.planner.spot_settings import replaced_at_once

SNAPSHOT = embedded_snapshot()
COLUMNS = columns_of(SNAPSHOT.id, SNAPSHOT.observed_at, list(SNAPSHOT.instance_types), list(SNAPSHOT.offers))
RIG = OwnedMachine(
    instance_type=InstanceType(
        provider="local", name="rig-3090", accelerator="RTX-3090", accelerator_count=Fraction(1), source="inventory"
    ),
    region="lab",
    machines=1,
    usd_per_hour_full=0.12,
    power_watts=500,
    pue=1.0,
    usd_per_kwh=0.3,
)


def job(constraints: Constraints) -> TrainingJob:
    return TrainingJob(
        name="cnn",
        workload=Preset(model="resnet-50", samples=1e6),
        start=datetime(2026, 11, 21, tzinfo=UTC),
        constraints=constraints,
    )


@pytest.mark.parametrize("glob", ["rig-3090", "rig-*"])
def test_a_job_may_ask_for_one_of_the_owned_machines_by_name(glob: str) -> None:
    asked = job(Constraints(instance_types=(glob,)))
    outcome = plan(asked, COLUMNS, owned=(RIG,), settings=replaced_at_once(least_saving_of_a_move_percent=0.0))
    assert isinstance(outcome, Planned)
    assert outcome.phases[0].choice.instance_type.name == "rig-3090"


def test_a_job_runs_on_one_mig_slice_and_the_plan_says_what_it_is() -> None:
    given = {"name": "slice", "accelerator": "A100 80GB:3g.40gb", "machines": 4, "usd_per_hour": 0.2}
    owned = read_inventory({"machines": [given], "electricity_usd_per_kwh": 0.3})
    outcome = plan(job(Constraints(instance_types=("slice",))), COLUMNS, owned=owned, settings=replaced_at_once())
    assert isinstance(outcome, Planned)
    assert outcome.phases[0].choice.nodes == 1
    assert any("A100-80GB-SXM:3g.40gb is planned as 38.9% of the card" in note for note in outcome.assumptions)


def test_a_name_that_neither_the_catalogue_nor_the_inventory_has_is_refused() -> None:
    with pytest.raises(UnusableInput, match=r"'rig-4090' matches no instance type .* nearest: rig-3090"):
        plan(
            job(Constraints(instance_types=("rig-4090",))),
            COLUMNS,
            owned=(RIG,),
            settings=replaced_at_once(least_saving_of_a_move_percent=0.0),
        )
