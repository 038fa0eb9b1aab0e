"""The portfolio document: jobs with dates and values, quotas, and a horizon in slots, read into a `Portfolio`."""

import math
import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field, JsonValue, ValidationError

from gpuplan.api.schemas.job import COST_ALONE, JOB_EXAMPLE, JobDocument, Start
from gpuplan.api.schemas.quota import MOST_QUOTAS, QuotaDocument, quotas_of
from gpuplan.catalog.parsing.document_fields import (
    Document,
    Label,
    Listed,
    faults_of,
    listed,
    quantity,
    read_as,
    whole_number,
)
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.parsing.quantities import hours, looks_like_time, moment, shown, usd
from gpuplan.catalog.runtime.errors import Fault, UnusableInput
from gpuplan.planner.portfolio.portfolio_request import Portfolio, PortfolioJob
from gpuplan.planner.workload import work_of

#: Most jobs: the search takes minutes for a thousand.
MOST_JOBS = 2000
MOST_PRIORITY = 9
#: A year in hours; five hundred slots keep the model small enough for a useful bound.
MOST_SLOTS = 2000
USUAL_SLOTS = 168
SHORTEST_SLOT_HOURS, LONGEST_SLOT_HOURS = 1 / 12, 168.0
#: Horizon in hours if a job has no deadline.
USUAL_HORIZON_HOURS = 336.0


def _release(value: object) -> float | datetime:
    """Hours after the portfolio's start, 0 included, or a point in time."""
    if isinstance(value, str) and re.fullmatch(r"\s*0+\s*[a-z]*\s*", value):
        return 0.0
    if value == 0 and not isinstance(value, bool):
        return 0.0
    return moment(value) if looks_like_time(value) else hours(value)


Release = Annotated[
    float | datetime,
    quantity(_release, "hours after the portfolio's start, as 12h or 2d, or an ISO 8601 time with a zone", "12h", 0),
]


def _jobs_listed(value: object) -> object:
    if isinstance(value, list) and not value:
        raise ValueError("is empty; list at least one job")
    if not isinstance(value, str | list | tuple):
        raise ValueError(f"{shown(value)} is not accepted; write a list of jobs")
    return listed(value, most=MOST_JOBS)


class PortfolioJobDocument(JobDocument):
    """A job of a portfolio: a job document with release, priority and value."""

    release: Release | None = None
    priority: Annotated[int, whole_number(0, MOST_PRIORITY, "jobs of higher priority are left out last")] = 0
    value: Annotated[float, quantity(usd, "penalty for leaving the job out, US dollars", 5000, "$5k")] | None = None


Horizon = Annotated[float, quantity(hours, "hours as a number, or 7d, 36h, P7D", "7d", 168)]


_EXAMPLE: JsonValue = {
    "name": "next-week",
    "slot": "2h",
    "quotas": [{"provider": "aws", "accelerators": 16}],
    "jobs": [
        JOB_EXAMPLE | {"name": "tuning", "priority": 2},
        JOB_EXAMPLE | {"name": "ablation", "release": "12h", "deadline": "60h", "value": 400},
    ],
}


class PortfolioDocument(Document):
    """Many jobs over shared machines, quotas and one budget."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    name: Annotated[str, Label] = "portfolio"
    start: Start | None = None
    horizon: Horizon | None = None
    slot: Annotated[float, quantity(hours, "hours as a number, or 30min, 1h", "1h", 1)] | None = None
    budget_usd: Annotated[float, quantity(usd, "US dollars for all jobs together", 250_000, "$250k")] | None = None
    quotas: Annotated[tuple[QuotaDocument, ...], Listed(MOST_QUOTAS)] = ()
    jobs: Annotated[tuple[dict[str, Any], ...], BeforeValidator(_jobs_listed), Field(json_schema_extra={"minItems": 1})]


def parse_portfolio(document: JsonObject, *, now: datetime, quotas: tuple[QuotaDocument, ...] = ()) -> Portfolio:
    """Read a portfolio, with the settings' `quotas` added.

    Raises `UnusableInput` with every fault: unknown keys, dates that contradict each other, jobs whose work cannot be
    counted, too many jobs or slots.
    """
    given = _given(document)
    start = given.start or now.astimezone(UTC)
    jobs, faults = _jobs(given, start)
    if faults:
        raise UnusableInput(*faults[:20])
    horizon = _horizon(given, jobs)
    slot = _slot(given, horizon)
    slots = max(1, math.ceil(horizon / slot - 1e-9))
    if slots > MOST_SLOTS:
        message = (
            f"{slot:g} h gives {slots:,} slots over the horizon of {horizon:g} h; at most {MOST_SLOTS} are accepted"
        )
        raise UnusableInput.at("slot", message=message)
    late = [
        Fault(
            ("jobs", number, "release"),
            f"{job.release_hours:g} h after the start is not before the horizon's end, {horizon:g} h",
        )
        for number, job in enumerate(jobs)
        if job.release_hours >= horizon
    ]
    if late:
        raise UnusableInput(*late[:20])
    return Portfolio(
        name=given.name,
        start=start,
        slot_hours=slot,
        slots=slots,
        jobs=tuple(jobs),
        quotas=(*quotas_of(given.quotas), *quotas_of(quotas)),
        budget_usd=given.budget_usd,
    )


def _given(document: JsonObject) -> PortfolioDocument:
    """The document, or what is wrong with it as a portfolio."""
    if "jobs" in document:
        return read_as(PortfolioDocument, document)
    if "workload" in document:
        message = "is missing: this is one job, not a portfolio; list jobs under jobs, or plan this one alone"
        raise UnusableInput.at("jobs", message=message)
    try:
        return read_as(PortfolioDocument, document)
    except UnusableInput as error:
        faults = (
            Fault(fault.path, f"{fault.message}; list at least one job") if fault.path == ("jobs",) else fault
            for fault in error.faults
        )
        raise UnusableInput(*faults) from None


def _jobs(given: PortfolioDocument, start: datetime) -> tuple[list[PortfolioJob], list[Fault]]:
    jobs: list[PortfolioJob] = []
    faults: list[Fault] = []
    for number, document in enumerate(given.jobs):
        try:
            jobs.append(_job(document, start, number))
        except UnusableInput as error:
            faults += error.under("jobs", number).faults
        if len(faults) > 20:
            break
    return jobs, faults


def _job(document: JsonObject, start: datetime, number: int) -> PortfolioJob:
    try:
        job_document = PortfolioJobDocument.model_validate(document)
    except ValidationError as error:
        raise UnusableInput(*faults_of(error.errors(include_url=False), PortfolioJobDocument)) from None
    if job_document.start is not None:
        raise UnusableInput.at("start", message="the plan sets the start of a portfolio's jobs; give release instead")
    if job_document.objective != "cost":
        raise UnusableInput.at("objective", message=f"{job_document.objective} is only for a single job; {COST_ALONE}")
    release = job_document.release
    after = (
        0.0 if release is None else release if isinstance(release, float) else (release - start).total_seconds() / 3600
    )
    if after < 0:
        raise UnusableInput.at("release", message=f"lies {-after:g} h before the portfolio's start; give a later time")
    stated = {"start": start + timedelta(hours=after), "name": job_document.name or f"job {number + 1}"}
    job = job_document.model_copy(update=stated | {"deadline": _deadline_of(job_document.deadline, start, after)}).job(
        now=start
    )
    work_of(job.workload, job.training)  # refuses a job whose work cannot be counted before the run starts
    return PortfolioJob(job=job, release_hours=after, priority=job_document.priority, value_usd=job_document.value)


def _deadline_of(deadline: float | datetime | None, start: datetime, release_hours: float) -> float | datetime | None:
    """A deadline in hours from the portfolio's `start`, converted to hours from the job's release; a time is unchanged.

    Raises `UnusableInput` if the deadline is not after the release.
    """
    if deadline is None:
        return None
    after_start = deadline if isinstance(deadline, float) else (deadline - start).total_seconds() / 3600
    if after_start <= release_hours:
        message = (
            f"{after_start:g} h after the portfolio's start is not after release, {release_hours:g} h; "
            "both count from the portfolio's start: give a later deadline"
        )
        raise UnusableInput.at("deadline", message=message)
    return after_start - release_hours if isinstance(deadline, float) else deadline


def _horizon(given: PortfolioDocument, jobs: list[PortfolioJob]) -> float:
    """The stated horizon, else the last deadline; two weeks if a job has none."""
    if given.horizon is not None:
        return given.horizon
    ends = [job.release_hours + job.job.deadline_hours for job in jobs if job.job.deadline_hours is not None]
    open_ended = [job.release_hours + USUAL_HORIZON_HOURS for job in jobs if job.job.deadline_hours is None]
    return max(ends + open_ended)


def _slot(given: PortfolioDocument, horizon: float) -> float:
    """The stated slot, or the smallest whole number of hours that gives at most a week's worth of slots."""
    if given.slot is None:
        return float(max(1, math.ceil(horizon / USUAL_SLOTS)))
    if not SHORTEST_SLOT_HOURS - 1e-9 <= given.slot <= LONGEST_SLOT_HOURS:
        raise UnusableInput.at("slot", message=f"{given.slot:g} h is out of range; write 5min to 7d")
    return given.slot
