"""Machines that nobody can get answer by name with the reason."""

from datetime import date
from fnmatch import fnmatchcase

import pytest

from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.model.unavailable_machines import (
    retired_on,
    unavailable_machines,
    why_no_price,
    why_retired,
    why_unavailable,
)
from gpuplan.catalog.snapshots.embedded_snapshot import embedded_instance_types, embedded_snapshot

ROWS = unavailable_machines()


def test_every_row_has_a_source_dates_and_a_known_accelerator() -> None:
    for row in ROWS:
        assert row.source.startswith("https://"), row.name
        assert date.fromisoformat(row.as_of) > date(2026, 1, 1), row.name
        assert not row.since or date.fromisoformat(row.since) <= date.fromisoformat(row.as_of), row.name
        assert row.accelerator in accelerators() or not row.accelerator, row.name
        assert row.also == tuple(word.lower() for word in row.also), row.name


def test_every_retired_machine_of_the_catalogue_has_its_reason_and_no_other_machine_has_one() -> None:
    undated = {"Standard_ND40s_v2"}
    for machine in embedded_instance_types():
        reason = why_retired(machine.name)
        assert (reason is not None) is (machine.retired and machine.name not in undated), machine.name


def test_no_machine_with_an_embedded_price_is_said_to_have_none() -> None:
    priced = {(offer.provider, offer.instance_type) for offer in embedded_snapshot().offers}
    for row in ROWS:
        if row.status == "no_price":
            matching = {name for provider, name in priced if provider == row.provider and fnmatchcase(name, row.name)}
            assert matching == set(), row.name


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("p2.xlarge", "retired: a previous generation on Kepler K80"),
        ("p2*", "retired: a previous generation on Kepler K80"),
        ("G3", "retired: a previous generation on Maxwell M60"),
        ("n1-standard-8+1xK80", "retired on 2024-05-01: "),
        ("Standard_NC6", "retired on 2023-09-06: Azure ended the NC series"),
        ("nc6", "retired on 2023-09-06: Azure ended the NC series"),
        ("NVv3", "retired on 2026-09-30: Azure ended the NVv3 series"),
        ("Standard_NV12s_v3", "retired on 2026-09-30: Azure ended the NVv3 series"),
        ("eg1.medium", "retired on 2024-01-08: Amazon Elastic Graphics"),
        ("Elastic GPU", "retired on 2024-01-08: Amazon Elastic Graphics"),
        ("tpu7x-standard-4t", "no price is known: "),
        ("TPU v7", "no price is known: "),
        ("a4x-highgpu-4g", "no price is known: "),
        ("p6e-gb300.36xlarge", "no price is known: "),
        ("Standard_ND128isr_GB300_v6", "no price is known: "),
    ],
)
def test_a_name_a_glob_or_a_family_has_its_reason(text: str, reason: str) -> None:
    assert (why_unavailable(text) or "").startswith(reason)


@pytest.mark.parametrize(
    "text", ["p5.48xlarge", "p3.2xlarge", "g4dn.xlarge", "Standard_NC64as_T4_v3", "n1-standard-8+1xT4"]
)
def test_machines_that_can_be_had_have_none(text: str) -> None:
    assert why_unavailable(text) is None


def test_the_date_of_retirement_and_the_reason_of_an_accelerator() -> None:
    assert retired_on("azure", "Standard_NC6") == "2023-09-06"
    assert retired_on("aws", "p2.xlarge") == ""
    assert retired_on("aws", "Standard_NC6") == ""
    assert (why_no_price("TPU-v7") or "").startswith("no price is known")
    assert why_no_price("H100-80GB-SXM") is None
