from datetime import UTC, datetime
from pathlib import Path

import pytest

from gpuplan.api.schemas.job import canonical, parse_job
from gpuplan.catalog.parsing.structured_text import read_document
from gpuplan.planner.workload import work_of
from gpuplan.providers.owned.owned_machines import offers_of, read_inventory

EXAMPLES = Path(__file__).parents[3] / "examples"
JOBS = sorted(path for path in EXAMPLES.glob("*.yaml") if path.name != "inventory.yaml")
NOW = datetime(2026, 11, 21, 9, tzinfo=UTC)


def test_there_are_examples_from_a_small_network_to_a_very_large_one() -> None:
    names = {path.stem for path in JOBS}
    assert len(names) >= 8
    assert {"mnist-cnn", "gpt3-175b"} <= names


@pytest.mark.parametrize("path", JOBS, ids=lambda path: path.stem)
def test_an_example_is_a_job_whose_work_can_be_counted(path: Path) -> None:
    job = parse_job(read_document(path.read_bytes(), name=path.name), now=NOW)
    work = work_of(job.workload, job.training)
    assert work.total_flops > 1e13
    assert parse_job(canonical(job), now=NOW).workload == job.workload


def test_the_example_inventory_gives_an_offer_for_each_machine() -> None:
    path = EXAMPLES / "inventory.yaml"
    machines = read_inventory(read_document(path.read_bytes(), name=path.name))
    offers = offers_of(machines, observed_at=NOW)
    assert [offer.instance_type for offer in offers] == [machine.instance_type.name for machine in machines]
    assert {offer.price_kind for offer in offers} == {"owned"}
