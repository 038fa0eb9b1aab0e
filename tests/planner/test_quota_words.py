"""What a plan says must be granted: nodes one by one, a slice as the one resource it is."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from gpuplan.api.schemas.job import parse_job
from gpuplan.catalog.snapshots.embedded_snapshot import embedded_snapshot
from gpuplan.catalog.snapshots.offer_columns import columns_of
from gpuplan.planner.model.job import Constraints, Preset, TrainingJob
from gpuplan.planner.model.outcome import Planned
from gpuplan.planner.planning import plan
from tests.planner.spot_settings import replaced_at_once

SNAPSHOT = embedded_snapshot()
COLUMNS = columns_of(SNAPSHOT.id, SNAPSHOT.observed_at, list(SNAPSHOT.instance_types), list(SNAPSHOT.offers))

NOW = datetime(2026, 11, 21, tzinfo=UTC)
#: A job that on one type of machine begins on four nodes and ends on three.
EXAMPLE = Path(__file__).parents[2] / "examples/llama-3-8b.yaml"


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
        start=NOW,
        constraints=Constraints(instance_types=(instance_type,), price_kinds=("on_demand",), max_nodes=8),
    )
    outcome = plan(job, COLUMNS, settings=replaced_at_once(least_saving_of_a_move_percent=0.0))
    assert isinstance(outcome, Planned)
    assert any(warning.endswith(words) for warning in outcome.warnings)


def test_a_run_that_changes_size_needs_one_quota_for_the_most_nodes_it_has_at_once() -> None:
    job = parse_job(yaml.safe_load(EXAMPLE.read_text(encoding="utf-8")), now=NOW)
    job = replace(job, constraints=replace(job.constraints, instance_types=("p6-b200.48xlarge",)))
    outcome = plan(job, COLUMNS, settings=replaced_at_once(least_saving_of_a_move_percent=0.0))
    assert isinstance(outcome, Planned)
    machines = [(phase.choice.instance_type.name, phase.choice.nodes) for phase in outcome.phases]
    assert machines == [("p6-b200.48xlarge", 3), ("p6-b200.48xlarge", 2)]
    quotas = [warning for warning in outcome.warnings if warning.startswith("quota")]
    assert quotas == ["quota needed in aws us-east-1: 3 x p6-b200.48xlarge (576 vCPUs), 24 x B200-SXM"]
    preempted = [assumption for assumption in outcome.assumptions if "preemptions per node-hour" in assumption]
    assert [reason.split(",")[0] for reason in preempted] == ["on 3 x p6-b200.48xlarge", "on 2 x p6-b200.48xlarge"]
