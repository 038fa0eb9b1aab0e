"""Whatever is done to a valid job document, the answer is a job or `UnusableInput`."""

import copy
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.api.schemas.estimate_request import parse_estimate_request
from gpuplan.api.schemas.job import canonical, parse_job
from gpuplan.catalog.parsing.structured_text import read_document
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.job import TrainingJob
from gpuplan.providers.owned.owned_machines import read_inventory

NOW = datetime(2026, 11, 21, 9, tzinfo=UTC)
EXAMPLES = Path(__file__).parents[3] / "examples"
JOBS = [
    read_document(path.read_bytes(), name=path.name)
    for path in sorted(EXAMPLES.glob("*.yaml"))
    if path.name != "inventory.yaml"
]
INVENTORY = read_document((EXAMPLES / "inventory.yaml").read_bytes(), name="inventory.yaml")
ON = {"accelerator": "H100", "gpus": 64, "gpus_per_node": 8, "layout": {"tensor": 2, "pipeline": 4, "zero_stage": 1}}
ODD: list[Any] = [
    None, True, False, 0, -1, 1, 3, 7, 1.5, 1e40, -1e-300, float("nan"), float("inf"), 10**400, 2**63,
    "", " ", "x", "7d", "P7D", "2026-12-01", "2026-12-01T00:00Z", "1e9", "4k", "\x00", "é" * 300, "NaN", "-5", "none",
    [], [None], [[]], ["x"] * 300, {}, {"kind": "preset"}, {"": {}}, {"a": {"b": [1]}},
]  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of every value in a document but the document itself."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    paths = []
    for key, inner in members:
        paths += [(*path, key), *places(inner, (*path, key))]
    return paths


def mutated(document: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """The document with one to three of its places replaced, dropped, renamed or doubled."""
    document = copy.deepcopy(document)
    for _ in range(chance.randint(1, 3)):
        *path, key = chance.choice(places(document) or [("x",)])
        holder: Any = document
        for part in path:
            holder = holder[part]
        how = chance.random()
        if how < 0.6:
            holder[key] = copy.deepcopy(chance.choice(ODD))
        elif how < 0.75 and key in (holder if isinstance(holder, dict) else range(len(holder))):
            del holder[key]
        elif isinstance(holder, dict):
            holder[chance.choice(["x", "kind", f"{key}s", "🙂", "deadline", "layers"])] = holder.get(key)
    return document


def test_two_thousand_mutated_jobs_give_a_job_or_unusable_input() -> None:
    chance = random.Random(2)
    jobs = 0
    for _ in range(2000):
        document = mutated(chance.choice(JOBS), chance)
        try:
            job = parse_job(document, now=NOW)
        except UnusableInput as refused:
            jobs += 0 if str(refused) and "\n" not in str(refused) else -10_000
            continue
        jobs += isinstance(job, TrainingJob)
        written = canonical(job)
        assert canonical(parse_job(written, now=NOW)) == written
    assert 100 < jobs < 1900


def test_mutated_estimate_requests_and_inventories_give_an_answer_or_unusable_input() -> None:
    chance = random.Random(3)
    answered = 0
    for _ in range(500):
        request = mutated({"job": chance.choice(JOBS), "on": ON}, chance)
        inventory = mutated(INVENTORY, chance)
        try:
            answered += len(parse_estimate_request(request, now=NOW)) > 0
            answered += len(read_inventory(inventory)) > 0
        except UnusableInput:
            continue
    assert answered > 20


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=10,
)


@given(
    st.dictionaries(st.sampled_from(["name", "workload", "training", "deadline", "data", "constraints"]), json_values)
)
@settings(max_examples=80, deadline=None)
def test_any_values_under_the_known_keys_give_a_job_or_unusable_input(document: dict[str, Any]) -> None:
    try:
        answer: object = parse_job(document, now=NOW)
    except UnusableInput as refused:
        answer = refused
    assert isinstance(answer, TrainingJob | UnusableInput)


def test_text_with_flipped_characters_gives_a_job_or_unusable_input() -> None:
    chance = random.Random(4)
    read = 0
    for _ in range(300):
        text = list(yaml.safe_dump(chance.choice(JOBS)))
        for _ in range(chance.randint(1, 2)):
            text[chance.randrange(len(text))] = chance.choice("\n\t :-{}[]#&*!|>'\"%@`,?0aeé\x07")
        try:
            parse_job(read_document("".join(text), name="job.yaml"), now=NOW)
        except UnusableInput:
            continue
        read += 1
    assert read > 10
