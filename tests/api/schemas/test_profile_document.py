"""A counted module as a job document: read, filled in, written out, and refused by field."""

from datetime import UTC, datetime
from typing import Any

import pytest

from gpuplan.api.schemas.job import JobDocument, canonical, parse_job
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.job import Profile

NOW = datetime(2026, 11, 21, 9, tzinfo=UTC)
LEAST: dict[str, Any] = {
    "kind": "profile",
    "model": "train:make",
    "samples": "10M",
    "global_batch_samples": 256,
    "parameters": "25.6M",
    "flops_per_sample": 24.3e9,
    "bytes_per_sample": 480e6,
    "activation_bytes_per_sample": 43.7e6,
}


def read(workload: dict[str, Any]) -> Profile:
    profile = parse_job({"workload": workload}, now=NOW).workload
    assert isinstance(profile, Profile)
    return profile


def test_what_is_left_out_is_what_it_would_be_at_most() -> None:
    profile = read(LEAST)
    assert profile.trainable_parameters == profile.parameters == 25.6e6
    assert profile.fused_bytes_per_sample == profile.bytes_per_sample
    assert profile.full_activation_bytes_per_sample == profile.activation_bytes_per_sample
    assert (profile.sequential_steps, profile.optimizers, profile.notes) == (1, 1, ())


def test_a_stated_selective_size_bounds_the_full_one() -> None:
    assert read(LEAST | {"selective_activation_bytes_per_sample": 2e7}).full_activation_bytes_per_sample == 2e7


def test_it_is_written_out_as_it_is_read() -> None:
    job = parse_job({"workload": LEAST | {"notes": ["by hand"], "sequential_steps": "1k"}}, now=NOW)
    written = canonical(job)
    assert written["workload"]["notes"] == ["by hand"]
    assert parse_job(written, now=NOW).workload == job.workload


@pytest.mark.parametrize(
    ("change", "field", "message"),
    [
        ({"flops_per_samples": 1}, "flops_per_samples", "did you mean flops_per_sample?"),
        ({"flops_per_sample": -1}, "flops_per_sample", "negative"),
        ({"samples": 0}, "samples", "zero"),
        ({"sequential_steps": 0}, "sequential_steps", "whole number"),
        ({"notes": ["a\nb"]}, "notes[0]", "one printable line"),
        ({"notes": 7}, "notes", "write a list"),
        ({"notes": ["x"] * 201}, "notes", "too long"),
        ({"model": ""}, "model", "write a name"),
    ],
)
def test_a_bad_count_is_refused_by_name(change: dict[str, Any], field: str, message: str) -> None:
    with pytest.raises(UnusableInput) as refused:
        read(LEAST | change)
    assert refused.value.faults[0].field == f"workload.{field}"
    assert message in refused.value.faults[0].message


def test_the_schema_describes_every_count() -> None:
    properties = JobDocument.model_json_schema()["$defs"]["ProfileDocument"]["properties"]
    assert {name for name, described in properties.items() if not described.get("description") and "anyOf" not in described} <= {
        "kind", "model", "notes",
    }  # fmt: skip
