"""A job field is declared once, in `planner/model`, and appears in every interface."""

import re
from datetime import UTC, datetime
from typing import Any

import pytest

from docs.field_tables import DOCUMENTS, with_tables
from gpuplan.api.schemas.job import parse_job
from gpuplan.api.schemas.job_fields import PARTS, WrittenField, declared_fields, job_fields
from gpuplan.api.schemas.key_value_words import WORDS, example_of, job_of_words
from gpuplan.api.slack.plan_form import form
from gpuplan.api.web.job_fields import FIELDS
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.job import SOFTWARE, Explicit, Preset, Profile, Transformer
from gpuplan.planner.performance.software_stacks import STACKS
from tests.openapi_document import openapi_document

NOW = datetime(2026, 11, 21, tzinfo=UTC)
EVERY_FIELD = pytest.mark.parametrize("field", job_fields(), ids=lambda field: f"{field.part.__name__}.{field.name}")


@pytest.fixture(scope="module")
def openapi() -> dict[str, Any]:
    schemas: dict[str, Any] = openapi_document()["components"]["schemas"]
    return schemas


@pytest.fixture(scope="module")
def tables() -> dict[str, str]:
    """The documented table of each document."""
    return {document.__name__: with_tables(f"<!-- fields of {document.__name__} -->") for document in DOCUMENTS}


def document_name(field: WrittenField) -> str:
    names = {"TrainingJob": "JobDocument", "DataSource": "DataDocument"}
    return names.get(field.part.__name__, f"{field.part.__name__}Document")


def test_every_field_of_a_part_has_metadata_but_what_is_noted_of_its_defaults() -> None:
    for _, part in PARTS:
        names = {declared.name for declared, _ in declared_fields(part).values()}
        assert set(part.__dataclass_fields__) - names <= {"assumptions", "batch_is_default", "amount_is_measured"}  # type: ignore[attr-defined]


@EVERY_FIELD
def test_a_field_is_in_the_openapi_document(field: WrittenField, openapi: dict[str, Any]) -> None:
    assert field.name in openapi[document_name(field)]["properties"]


@EVERY_FIELD
def test_a_field_is_in_the_documented_table_with_its_meaning(field: WrittenField, tables: dict[str, str]) -> None:
    [row] = [line for line in tables[document_name(field)].splitlines() if line.startswith(f"| `{field.name}` |")]
    assert row.endswith(f"| {field.about.help} |")
    assert field.about.help


@EVERY_FIELD
def test_a_field_with_a_group_is_in_the_form_of_the_page(field: WrittenField) -> None:
    assert (field in FIELDS) == (field.about.group is not None)


@EVERY_FIELD
def test_a_field_of_a_job_with_a_preset_is_a_word_whose_example_is_read(field: WrittenField) -> None:
    if field.part in {Transformer, Explicit, Profile} or field.path == ("workload", "model"):
        return
    name = "regions" if field.name == "geography" else field.name
    [word] = [word for word, known in WORDS.items() if known.name == name]
    needed = (
        [] if word in {"tokens", "samples"} else ["samples=1M"] if word == "global_batch_samples" else ["tokens=3B"]
    )
    adapters = ["method=lora"] if word in {"rank", "adapters_on"} else []
    model = "resnet-50" if word in {"samples", "image_size", "global_batch_samples"} else "llama-3-8b"
    spoken = example_of(WORDS[word]).replace('"', "")
    job = parse_job(job_of_words([model, *needed, *adapters, spoken]), now=NOW)
    assert isinstance(job.workload, Preset)
    value = spoken.partition("=")[2]
    for same in (name, ".".join(WORDS[word].path)):
        by_name = job_of_words([f"model={model}", *needed, *adapters, f"{same}={value}"])
        assert by_name == job_of_words([model, *needed, *adapters, spoken])


@pytest.mark.parametrize("word", ["on_demand", "on-demand", "On-Demand"])
def test_a_price_kind_by_itself_is_read_with_either_dash(word: str) -> None:
    job = parse_job(job_of_words(["llama-3-8b", word, "spot", "tokens=1B"]), now=NOW)
    assert job.constraints.price_kinds == ("on_demand", "spot")


def test_the_form_of_slack_has_the_fields_that_ask_for_it() -> None:
    shown = {block["block_id"] for block in form({})["blocks"]} - {"model", "amount"}
    assert shown == {word for word, field in WORDS.items() if field.about.in_modal}


def test_every_class_of_software_that_a_job_may_name_has_its_constants() -> None:
    assert set(SOFTWARE) == set(STACKS)


@pytest.mark.parametrize(
    ("words", "run", "rest"),
    [
        (
            "20 h on 8 x A100 like=llama-2-7b by=1d",
            {"hours": "20 h", "on": "8 x A100", "like": "llama-2-7b"},
            {"deadline": "1d"},
        ),
        (
            "2d on 8xH100-80GB-SXM llama-3-8b nvidia",
            {"hours": "2d", "on": "8xH100-80GB-SXM", "like": "llama-3-8b"},
            None,
        ),
        ("1.5 hours on 8 A100 cnn", {"hours": "1.5 hours", "on": "8 A100", "like": "cnn"}, {}),
    ],
)
def test_words_may_begin_with_a_run_as_people_state_it(
    words: str, run: dict[str, str], rest: dict[str, object] | None
) -> None:
    made = job_of_words(words.split())
    assert made.pop("workload") == {"kind": "measured", **run}
    assert made.pop("name") == f"a run like {run['like']}"
    assert made == ({"constraints": {"vendors": ["nvidia"]}} if rest is None else rest)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("20 h on 8 x A100", "like: is missing; say which model the run trained"),
        ("20 h on 8 x A100 like=llama-2-7b like=gpt2", "'llama-2-7b' follows"),
    ],
)
def test_a_run_in_words_that_lacks_or_repeats_its_model_is_refused(words: str, message: str) -> None:
    with pytest.raises(UnusableInput, match=re.escape(message)):
        job_of_words(words.split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("tokens=3B model=", "model: is missing; name a model first"),
        ("llama-3-8b model=gpt2", "'gpt2' follows the model"),
        ("llama-3-8b nodes=1 constraints.max_nodes=2", "nodes: is given twice"),
    ],
)
def test_a_model_or_field_that_is_given_twice_or_empty_is_refused(words: str, message: str) -> None:
    with pytest.raises(UnusableInput, match=re.escape(message)):
        job_of_words(words.split())


def test_tokens_beside_a_run_are_refused_rather_than_left_out() -> None:
    made = job_of_words(["20", "h", "on", "8", "x", "A100", "tokens=3B", "like=llama-2-7b"])
    with pytest.raises(UnusableInput, match="tokens"):
        parse_job(made, now=NOW)
