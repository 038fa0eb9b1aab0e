"""Answers that a store keeps are read by later releases.

`stored_by_an_earlier_version.json` holds documents as version 0.1.0 of 2026-11-28 stored them, when most answers were
dictionaries.
"""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from gpuplan.api.schemas.answers import read_answer
from gpuplan.api.schemas.refresh_answers import RefreshReport, RefreshSummary
from gpuplan.api.schemas.stored_answers import read_stored
from gpuplan.api.schemas.watch_answers import (
    NoCapacityAnswer,
    ReportedCapacity,
    ReportedConflicts,
    ReportedPlan,
    WantedCapacity,
)
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.wire import wire

STORED: dict[str, Any] = json.loads(Path(__file__).with_name("stored_by_an_earlier_version.json").read_text())
TYPES = {
    "refresh": RefreshReport,
    "planned_job": ReportedPlan,
    "unplanned_job": ReportedConflicts,
    "machines": ReportedCapacity,
    "machines_without_answer": NoCapacityAnswer,
    "wanted_machines": WantedCapacity,
}


def with_times(part: Any) -> Any:
    """The document with its times as times: they were written with another sign for UTC."""
    if isinstance(part, dict):
        return {name: with_times(value) for name, value in part.items()}
    if isinstance(part, list):
        return [with_times(value) for value in part]
    try:
        return datetime.fromisoformat(part) if isinstance(part, str) and "T" in part else part
    except ValueError:
        return part


@pytest.mark.parametrize("name", TYPES)
def test_what_an_earlier_version_stored_is_read_whole(name: str) -> None:
    read: Any = read_stored(TYPES[name], STORED[name])
    assert with_times(wire(read)) == with_times(STORED[name])


def test_a_plan_that_an_earlier_version_stored_is_read_whole() -> None:
    read = json.loads(json.dumps(wire(read_answer(STORED["plan"]))))
    assert with_times(read) == with_times(STORED["plan"])


def test_a_list_shows_a_stored_report_in_short() -> None:
    report = STORED["refresh"]
    summary = read_stored(RefreshSummary, report)
    assert (summary.id, summary.outcome, summary.snapshot_id) == (report["id"], "whole", report["snapshot_id"])


def test_a_field_that_a_stored_answer_lacks_is_named() -> None:
    lacking = {name: value for name, value in STORED["refresh"].items() if name != "providers"}
    with pytest.raises(UnusableInput, match=r"providers: .*another release stored this answer"):
        read_stored(RefreshReport, lacking)
