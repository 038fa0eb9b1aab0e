"""What a plan says must be granted: nodes one by one, a slice as the one resource it is."""

from datetime import UTC, datetime

import pytest

from catalog.columns import columns_of
from catalog.embedded import embedded_snapshot
from planner.answer import Planned
from planner.job import Constraints, Preset, TrainingJob
from planner.plan import plan
from planner.settings import PlannerSettings

SNAPSHOT = embedded_snapshot()
COLUMNS = columns_of(SNAPSHOT.id, SNAPSHOT.observed_at, list(SNAPSHOT.instance_types), list(SNAPSHOT.offers))


@pytest.mark.parametrize(
    ("instance_type", "words"),
    [
        ("tpu-v6e-32", "1 x tpu-v6e-32 (8 hosts, 1440 vCPUs), 32 x TPU-v6e"),
        ("tpu-v6e-1", "1 x tpu-v6e-1 (44 vCPUs), 1 x TPU-v6e"),
        ("p4d.24xlarge", "1 x p4d.24xlarge (96 vCPUs), 8 x A100-40GB-SXM"),
    ],
)
def test_the_quota_is_of_what_is_asked_for_at_once(instance_type: str, words: str) -> None:
    job = TrainingJob(
        name="quota",
        workload=Preset(model="resnet-50", samples=1e6),
        start=datetime(2026, 11, 21, tzinfo=UTC),
        constraints=Constraints(instance_types=(instance_type,), price_kinds=("on_demand",), max_nodes=8),
    )
    outcome = plan(job, COLUMNS, settings=PlannerSettings())
    assert isinstance(outcome, Planned)
    assert any(warning.endswith(words) for warning in outcome.warnings)
