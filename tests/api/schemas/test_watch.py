"""The watch as users ask for it, and the job as it is kept: what is a point in time stays one."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gpuplan.api.schemas.job import parse_job
from gpuplan.api.schemas.watch import deadline_of, job_at, parse_watch, watched_job
from gpuplan.catalog.runtime.errors import UnusableInput

NOW = datetime(2026, 12, 1, 4, 5, 6, 789, tzinfo=UTC)
JOB: dict[str, Any] = {"workload": {"kind": "preset", "model": "resnet-50", "samples": "1M"}}


def watch_document(**changes: Any) -> dict[str, Any]:
    asked, job = parse_watch({"job": JOB | changes, "channels": ["team"]}, now=NOW)
    assert asked.job is not None
    assert job is not None
    return watched_job(asked.job, job)


@pytest.mark.parametrize(
    ("change", "field", "message"),
    [
        ({"cheaper_by_percent": 0}, "cheaper_by_percent", "above 0 and below 100"),
        ({"cheaper_by_percent": "100%"}, "cheaper_by_percent", "above 0 and below 100"),
        ({"cheaper_by_percent": "nan"}, "cheaper_by_percent", "above 0 and below 100"),
        ({"cheaper_by_percent": True}, "cheaper_by_percent", "above 0 and below 100"),
        ({"cheaper_by_percent": [10]}, "cheaper_by_percent", "above 0 and below 100"),
        ({"channels": []}, "channels", "write a list of channel names"),
        ({"channels": [3]}, "channels", "write a list of channel names"),
        ({"channels": ["a"] * 21}, "channels", "at most 20"),
        ({"job": JOB | {"deadline": "7 dogs"}}, "job.deadline", "7 dogs"),
        ({"job": JOB | {"deadline": "2020-01-01T00:00Z"}}, "job.deadline", "in the past"),
        ({"chanels": ["a"]}, "chanels", "did you mean channels"),
        ({"name": " "}, "name", "write a name"),
        ({"machine": "p5.48xlarge"}, "job", "give a job or a machine"),
        ({"job": None}, "job", "give a job or a machine"),
        ({"least_chance": 0.7}, "least_chance", "only accepted where a machine is watched"),
        ({"job": None, "machine": "p5.48xlarge", "cheaper_by_percent": 5}, "cheaper_by_percent", "a job is watched"),
        ({"job": None, "machine": "p5.48xlarge", "least_chance": 1.5}, "least_chance", "above 0 and up to 1"),
        ({"job": None, "machine": "p5.48xlarge", "least_chance": True}, "least_chance", "above 0 and up to 1"),
        ({"job": None, "machine": "p5.48xlarge", "under_usd_per_node_hour": -1}, "under_usd_per_node_hour", "-1"),
        ({"job": None, "machine": "p5.48xlarge", "nodes": 0}, "nodes", "0"),
    ],
)
def test_a_wrong_watch_is_refused_by_field(change: dict[str, Any], field: str, message: str) -> None:
    with pytest.raises(UnusableInput) as refused:
        parse_watch({"job": JOB, "channels": ["team"]} | change, now=NOW)
    assert {fault.field: message in fault.message for fault in refused.value.faults}[field]


@pytest.mark.parametrize(("given", "percent"), [(5, 5.0), ("12.5", 12.5), ("7 %", 7.0), (0.5, 0.5)])
def test_a_percentage_is_read_with_and_without_its_sign(given: object, percent: float) -> None:
    watch, _ = parse_watch({"job": JOB, "channels": "team", "cheaper_by_percent": given}, now=NOW)
    assert (watch.cheaper_by_percent, watch.channels) == (percent, ("team",))


def test_a_deadline_that_runs_from_now_moves_along() -> None:
    document = watch_document(deadline="36h")
    assert "start" not in document
    assert deadline_of(document) is None
    later = NOW + timedelta(days=400)
    assert parse_job(job_at(document, later), now=later).deadline_hours == 36


def test_a_deadline_that_is_a_time_stays_that_time_to_the_microsecond() -> None:
    document = watch_document(deadline="2026-12-24T18:00:00.000001+01:00")
    assert deadline_of(document) == datetime(2026, 12, 24, 17, 0, 0, 1, tzinfo=UTC)
    later = datetime(2026, 12, 24, 7, 0, 0, 1, tzinfo=UTC)
    assert parse_job(job_at(document, later), now=later).deadline_hours == 10


def test_a_deadline_that_runs_from_a_stated_start_is_a_time_and_a_start_that_has_passed_is_now() -> None:
    document = watch_document(start="2026-12-10T00:00Z", deadline="10d")
    assert deadline_of(document) == datetime(2026, 12, 20, tzinfo=UTC)
    assert job_at(document, NOW)["start"] == "2026-12-10T00:00:00Z"
    late = datetime(2026, 12, 15, tzinfo=UTC)
    job = parse_job(job_at(document, late), now=late)
    assert (job.start, job.deadline_hours) == (late, 5 * 24)


def test_a_job_without_a_deadline_is_kept_without_one() -> None:
    assert deadline_of(watch_document()) is None
    assert "deadline" not in watch_document()
