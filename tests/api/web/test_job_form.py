"""The form and the job document: one into the other and back, and each fault at its field."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.api.schemas.job import canonical, parse_job
from gpuplan.api.web.examples import JOBS
from gpuplan.api.web.job_fields import FIELDS, PARTS
from gpuplan.api.web.job_form import document_of, field_of, filled, with_faults
from gpuplan.catalog.parsing.structured_text import read_document
from gpuplan.catalog.runtime.errors import Fault, UnusableInput

NOW = datetime(2026, 11, 22, tzinfo=UTC)


def jobs() -> st.SearchStrategy[dict[str, Any]]:
    """Job documents, of which the form can say some and a file all."""
    sizes = st.sampled_from(["300B", 200e6, "1.5T", 123456789])
    workload = st.one_of(
        st.fixed_dictionaries(
            {"kind": st.just("preset"), "model": st.just("llama-3-8b"), "tokens": sizes},
            optional={"sequence_length": st.integers(128, 8192), "global_batch_tokens": st.just("4M")},
        ),
        st.fixed_dictionaries(
            {"kind": st.just("explicit"), "total_flops": st.just(1e21), "memory_gib": st.integers(1, 500)}
        ),
    )
    constraints = st.fixed_dictionaries(
        {},
        optional={
            "providers": st.lists(st.sampled_from(["aws", "gcp", "azure", "local"]), unique=True),
            "geography": st.lists(st.sampled_from(["us", "eu", "asia"]), unique=True),
            "accelerators": st.lists(st.sampled_from(["H100", "A100 80GB", "L4"]), unique=True),
            "price_kinds": st.lists(st.sampled_from(["on_demand", "spot", "reserved_1y"]), unique=True),
            "max_nodes": st.integers(1, 256),
            "max_phases": st.integers(1, 2),
        },
    )
    return st.fixed_dictionaries(
        {"workload": workload},
        optional={
            "name": st.sampled_from(["a", "my job", "ünïcode"]),
            "deadline": st.sampled_from(["7d", 36.5, "2026-12-01T09:00Z"]),
            "budget_usd": st.sampled_from([100, "250k"]),
            "confidence": st.sampled_from([0.5, "95%"]),
            "objective": st.sampled_from(["cost", "time", "carbon"]),
            "start": st.just("2026-11-30T00:00Z"),
            "constraints": constraints,
            "data": st.just({"location": "aws:us-east-1", "dataset_gb": 12.5, "checkpoints": "s3://my-bucket/a"}),
            "training": st.just({"method": "lora", "rank": 8}),
        },
    )


@settings(deadline=None, max_examples=60)
@given(jobs())
def test_a_job_shown_for_change_and_sent_unchanged_is_the_same_job(document: dict[str, Any]) -> None:
    asked = canonical(parse_job(document, now=NOW))
    for given_ in (document, asked):
        shown = filled(given_, now=NOW)
        again = document_of(shown.typed) if shown.typed else read_document(shown.pasted, name="job.yaml")
        assert canonical(parse_job(again, now=NOW)) == asked


@pytest.mark.parametrize("name", JOBS)
def test_an_example_is_a_job_that_the_form_can_say(name: str) -> None:
    shown = filled(JOBS[name]["job"], now=NOW)
    assert shown.typed
    parse_job(document_of(shown.typed), now=NOW)


def test_a_model_by_name_and_by_dimensions_is_refused_at_the_model() -> None:
    with pytest.raises(UnusableInput) as refused:
        document_of({"model": ["llama-3-8b"], "layers": ["32"]})
    field = field_of(refused.value.faults[0])
    assert field is not None
    assert field.name == "model"


def test_an_empty_form_asks_for_a_model() -> None:
    with pytest.raises(UnusableInput) as refused:
        parse_job(document_of({}), now=NOW)
    shown = with_faults(refused.value.faults, {})
    assert "model" in shown.errors


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (("deadline",), "deadline"),
        (("constraints", "accelerators", 1), "accelerators"),
        (("workload", "tokens"), "tokens"),
        (("workload", "kind"), None),
        (("constraints", "vendors"), None),
        ((), None),
    ],
)
def test_a_fault_is_shown_at_the_field_that_it_points_to(path: tuple[str | int, ...], name: str | None) -> None:
    fault = Fault(path, "is wrong")
    field = field_of(fault)
    assert (field.name if field else None) == name
    shown = with_faults([fault], {"deadline": ["7d"]})
    assert shown.summary[0][0] == (name or "")
    assert "is wrong" in shown.summary[0][1]
    assert shown.typed == {"deadline": ["7d"]}


def test_every_field_has_a_name_of_its_own_and_a_select_begins_with_what_is_usual() -> None:
    names = [field.name for field in FIELDS]
    assert len(names) == len(set(names))
    usual = canonical(parse_job(JOBS["resnet-50"]["job"], now=NOW))
    for field in FIELDS:
        if field.kind == "select" and field.path[0] == "training" and not field.about.optional:
            expected = {"method": "full", "stage": "sft", "precision": "auto", "optimizer": "adamw"}[field.name]
            assert next(iter(field.choices)) == expected == usual["training"][field.name]
    assert [part.folded for part in PARTS].count(False) == 3
