"""Anything at all handed in as a plan: a clear refusal at a field, or a verification; never a crash, never a wait."""

import copy
import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from gpuplan.api.schemas.saved_answer import parse_answer
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.planner.verify import standby_replay
from gpuplan.planner.verify.verification import verified
from tests.planner.small_catalogues import random_job
from tests.planner.verify import test_phases as phases
from tests.planner.verify.answers import Document, Path, answer_of, part_of, small_columns

COLUMNS = small_columns(random.Random(1), types=1, offers=8)
ANSWERS = [
    *((answer_of(random_job(random.Random(seed)), COLUMNS), COLUMNS) for seed in (1, 2, 3, 4)),
    (phases.MOVES, phases.COLUMNS),
    (phases.WITH_STANDBY, phases.SPOT_COLUMNS),
]

JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
JUNK = JSON | st.sampled_from(["1e400", "-1.00", 10**400, -1, 0, 1e308, [], {}, "plan", "\x00", "NaN", float("nan")])


def branches(value: Any, path: Path = ()) -> list[Path]:
    """The path of everything in a document."""
    paths = [path] if path else []
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for part, item in inner:
        paths += branches(item, (*path, part))
    return paths


def judge(document: Document, columns: Columns) -> None:
    """Verified or refused; every refusal names a field in one line."""
    refused = None
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(standby_replay, "RUNS", 20)
            verified(parse_answer(document), columns)
    except UnusableInput as error:
        refused = error
    assert refused is None or all(fault.path and "\n" not in str(fault) for fault in refused.faults)


def test_the_catalogue_has_answers_of_both_kinds() -> None:
    assert {part_of(answer) for answer, _ in ANSWERS} == {"plan", "infeasible"}


@given(JSON)
def test_any_document_is_refused_at_a_field(value: Any) -> None:
    for document in (
        {"outcome": value},
        {"outcome": "planned", "plan": value},
        {"outcome": "infeasible", "infeasible": value},
    ):
        with pytest.raises(UnusableInput):
            parse_answer(document)


@pytest.mark.slow(reason="one long case")
@hypothesis_settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_plan_with_anything_anywhere_never_crashes(data: st.DataObject) -> None:
    printed, columns = data.draw(st.sampled_from(ANSWERS))
    answer = copy.deepcopy(printed)
    body = answer[part_of(answer)]
    path = data.draw(st.sampled_from(branches(body)))
    parent = body
    for part in path[:-1]:
        parent = parent[part]
    if data.draw(st.booleans()) and isinstance(parent, dict):
        del parent[path[-1]]
    else:
        parent[path[-1]] = data.draw(JUNK)
    judge(answer, columns)


@pytest.mark.parametrize("name", ["id", "job", "snapshot_id", "version", "settings", "start"])
def test_a_plan_of_an_older_release_is_told_to_be_planned_again(name: str) -> None:
    answer = copy.deepcopy(ANSWERS[0][0])
    del answer[part_of(answer)][name]
    with pytest.raises(UnusableInput, match="plan the job again"):
        parse_answer(answer)


def test_an_assumption_that_an_older_release_lacked_is_never_taken_at_todays_default() -> None:
    answer = copy.deepcopy(ANSWERS[0][0])
    del answer[part_of(answer)]["settings"]["restart_hours"]
    with pytest.raises(UnusableInput, match=r"settings.restart_hours: is missing.*gpuplan 0.1.0"):
        parse_answer(answer)


def test_a_document_of_great_lists_is_worked_off_in_bounded_time() -> None:
    answer = copy.deepcopy(next(document for document, _ in ANSWERS if part_of(document) == "plan"))
    row = answer["plan"]["alternatives"][0]
    answer["plan"]["alternatives"] = [row] * 5000
    with pytest.raises(UnusableInput, match="alternatives: a list of 5000"):
        judge_strictly(answer)
    assert len(json.dumps(answer)) > 1e6


def judge_strictly(document: Document) -> None:
    verified(parse_answer(document), COLUMNS)
