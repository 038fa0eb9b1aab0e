"""Data for the page of a portfolio plan: Gantt lanes and table rows of jobs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby

from gpuplan.api.presentation.charts.gantt import Bar, Lane
from gpuplan.api.presentation.phrases import place_and_kind, rented
from gpuplan.api.presentation.text_formatting import duration, percent, plain, usd, when
from gpuplan.planner.model.portfolio import ScheduledJob

#: Most bars in the chart; the table has every job.
MOST_BARS = 120
#: Longest name above a bar: a phone has room for about forty letters.
_LONGEST_NAME = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Dates:
    """Release and deadline of a job, None if not given."""

    release: datetime | None
    deadline: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLine:
    """The table row of one job."""

    number: int
    name: str
    machines: str
    place: str
    starts: str
    finishes: str
    reserved_until: str
    deadline: str
    spare: str
    cost: str


def in_order(jobs: Iterable[ScheduledJob]) -> list[ScheduledJob]:
    """The jobs in chart order: by provider, region, zone and machine, then by start."""
    return sorted(
        jobs,
        key=lambda job: (
            *(job.provider, job.region, job.zone, job.instance_type, job.price_kind),
            job.starts_at,
            job.job,
        ),
    )


def lanes(jobs: Sequence[ScheduledJob], dates: Mapping[int, Dates]) -> list[Lane]:
    """The first `MOST_BARS` of the ordered jobs, grouped by machine and place."""
    providers = sorted({job.provider for job in jobs})
    return [
        Lane(
            name=plain(name, limit=200), style=providers.index(provider), bars=tuple(_bar(job, dates) for job in group)
        )
        for (name, provider), group in groupby(
            jobs[:MOST_BARS], key=lambda job: (f"{place_and_kind(job)}: {job.instance_type}", job.provider)
        )
    ]


def _bar(job: ScheduledJob, dates: Mapping[int, Dates]) -> Bar:
    known = dates.get(job.job, Dates(release=None, deadline=None))
    title = f"{plain(job.name, limit=200)}: {rented(job)}, {place_and_kind(job)}, {usd(job.cost_usd)}, "
    title += f"from {when(job.starts_at)} to {when(job.finishes_at)} expected, "
    title += f"{when(job.finishes_by)} at {percent(job.confidence)} confidence"
    if known.release is not None:
        title += f", not before {when(known.release)}"
    title += f", due {when(known.deadline)}" if known.deadline is not None else ", without a deadline"
    # Bidi isolates keep a right-to-left name from reordering the text after it.
    return Bar(
        name=f"\u2068{plain(job.name, limit=_LONGEST_NAME)}\u2069 · {rented(job)}",
        title=title,
        href=f"#job-{job.job}",
        starts=job.starts_at,
        ends=job.finishes_at,
        reserved_until=job.finishes_by,
        accelerators=float(job.nodes * job.accelerators_per_node),
        release=known.release,
        deadline=known.deadline,
    )


def job_lines(jobs: Sequence[ScheduledJob], dates: Mapping[int, Dates]) -> list[JobLine]:
    """Table rows of all jobs; `spare` is the time between the end at its confidence and the deadline."""
    return [_line(job, dates.get(job.job, Dates(release=None, deadline=None))) for job in jobs]


def _line(job: ScheduledJob, known: Dates) -> JobLine:
    due = known.deadline
    spare = None if due is None else (due - job.finishes_by) / timedelta(hours=1)
    return JobLine(
        number=job.job,
        name=plain(job.name, limit=200),
        machines=rented(job),
        place=place_and_kind(job),
        starts=short_time(job.starts_at),
        finishes=short_time(job.finishes_at),
        reserved_until=short_time(job.finishes_by),
        deadline="none" if due is None else short_time(due),
        spare="" if spare is None else duration(max(spare, 0.0)),
        cost=usd(job.cost_usd),
    )


def short_time(moment: datetime) -> str:
    """A UTC time in short form: `2026-11-22 18:15`."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M}"
