"""The portfolio document: jobs with dates and worth, quotas, a horizon in slots, read strictly into a `Portfolio`."""

import math
import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationError

from api.documents.job import COST_ALONE, JobDocument, Start
from api.documents.quota import MOST_QUOTAS, QuotaDocument, quotas_of
from catalog.document_fields import Document, Label, Listed, faults_of, listed, quantity, read_as, whole_number
from catalog.errors import Fault, UnusableInput
from catalog.quantities import hours, looks_like_time, moment, usd
from planner.portfolio.request import Portfolio, PortfolioJob
from planner.workload import work_of

#: The search answers for a thousand jobs in minutes; each takes some milliseconds before it even begins.
MOST_JOBS = 2000
MOST_PRIORITY = 9
#: A year in hours; five hundred slots keep the model small enough for a proof worth having.
MOST_SLOTS = 2000
USUAL_SLOTS = 168
SHORTEST_SLOT_HOURS, LONGEST_SLOT_HOURS = 1 / 12, 168.0
#: Jobs without any deadline are planned over this long.
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
    quantity(_release, "hours after the portfolio's start, 12h, 2d, or an ISO 8601 time with its zone", "12h", 0),
]


def _jobs_listed(value: object) -> object:
    if isinstance(value, list) and not value:
        raise ValueError("is empty; list at least one job")
    return listed(value, most=MOST_JOBS)


class PortfolioJobDocument(JobDocument):
    """A job of a portfolio: a job document, and when it may start, how much it matters and what it is worth."""

    release: Release | None = None
    priority: Annotated[int, whole_number(0, MOST_PRIORITY, "higher is left out later")] = 0
    value: Annotated[float, quantity(usd, "what leaving the job out costs, US dollars", 5000, "$5k")] | None = None


Horizon = Annotated[float, quantity(hours, "hours as a number, or 7d, 36h, P7D", "7d", 168)]


class PortfolioDocument(Document):
    """Many jobs over shared machines, quotas and one budget."""

    name: Annotated[str, Label] = "portfolio"
    start: Start | None = None
    horizon: Horizon | None = None
    slot: Annotated[float, quantity(hours, "hours as a number, or 30min, 1h", "1h", 1)] | None = None
    budget_usd: Annotated[float, quantity(usd, "US dollars over all jobs", 250_000, "$250k")] | None = None
    quotas: Annotated[tuple[QuotaDocument, ...], Listed(MOST_QUOTAS)] = ()
    jobs: Annotated[tuple[dict[str, Any], ...], BeforeValidator(_jobs_listed), Field(json_schema_extra={"minItems": 1})]


def parse_portfolio(document: dict[str, Any], *, now: datetime, quotas: tuple[QuotaDocument, ...] = ()) -> Portfolio:
    """The portfolio in a document, with the settings' `quotas` added.

    Raises `UnusableInput` with every fault: unknown keys, dates that contradict each other, jobs whose work cannot be
    counted, too many jobs or slots.
    """
    given = read_as(PortfolioDocument, document)
    start = given.start or now.astimezone(UTC)
    jobs, faults = _jobs(given, start)
    if faults:
        raise UnusableInput(*faults[:20])
    horizon = _horizon(given, jobs)
    slot = _slot(given, horizon)
    slots = max(1, math.ceil(horizon / slot - 1e-9))
    if slots > MOST_SLOTS:
        message = f"{slot:g} h makes {slots:,} slots of the horizon of {horizon:g} h; at most {MOST_SLOTS} are accepted"
        raise UnusableInput.at("slot", message=message)
    late = [
        Fault(
            ("jobs", number, "release"),
            f"{each.release_hours:g} h after the start is not before the horizon's end, {horizon:g} h",
        )
        for number, each in enumerate(jobs)
        if each.release_hours >= horizon
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


def _job(document: dict[str, Any], start: datetime, number: int) -> PortfolioJob:
    try:
        each = PortfolioJobDocument.model_validate(document)
    except ValidationError as error:
        raise UnusableInput(*faults_of(error.errors(include_url=False), PortfolioJobDocument)) from None
    if each.start is not None:
        raise UnusableInput.at("start", message="jobs of a portfolio start when the plan says; give release instead")
    if each.objective != "cost":
        raise UnusableInput.at("objective", message=f"{each.objective} is for a job planned alone; {COST_ALONE}")
    release = each.release
    after = (
        0.0 if release is None else release if isinstance(release, float) else (release - start).total_seconds() / 3600
    )
    if after < 0:
        raise UnusableInput.at("release", message=f"lies {-after:g} h before the portfolio's start; give a later time")
    stated = {"start": start + timedelta(hours=after), "name": each.name or f"job {number + 1}"}
    job = each.model_copy(update=stated | {"deadline": _deadline_of(each.deadline, start, after)}).job(now=start)
    work_of(job.workload, job.training)  # a job whose work cannot be counted is refused here, not by the run
    return PortfolioJob(job=job, release_hours=after, priority=each.priority, value_usd=each.value)


def _deadline_of(deadline: float | datetime | None, start: datetime, release_hours: float) -> float | datetime | None:
    """A deadline in hours, which counts from the portfolio's `start`, as hours from the job's release; a time as it is.

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
    """The stated horizon, or that of the last deadline; two weeks where a job has none."""
    if given.horizon is not None:
        return given.horizon
    ends = [each.release_hours + each.job.deadline_hours for each in jobs if each.job.deadline_hours is not None]
    open_ended = [each.release_hours + USUAL_HORIZON_HOURS for each in jobs if each.job.deadline_hours is None]
    return max(ends + open_ended)


def _slot(given: PortfolioDocument, horizon: float) -> float:
    """The stated slot, or the least whole number of hours that makes no more than a week's worth of slots."""
    if given.slot is None:
        return float(max(1, math.ceil(horizon / USUAL_SLOTS)))
    if not SHORTEST_SLOT_HOURS - 1e-9 <= given.slot <= LONGEST_SLOT_HOURS:
        raise UnusableInput.at("slot", message=f"{given.slot:g} h is out of range; write 5min to 7d")
    return given.slot
