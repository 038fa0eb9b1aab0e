"""A portfolio's plan as the page shows it: jobs below the machines that they run on, and a line for each of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

from api.render.machines import place, rented
from api.render.text import duration, percent, plain, usd, when
from api.web.charts.gantt import Bar, Lane

Part = Mapping[str, Any]

#: A drawing of more bars helps nobody; the table has every job.
MOST_BARS = 120
#: A phone has room for some forty letters above a bar.
_LONGEST_NAME = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Dates:
    """When a job may begin and must be done, None where that is not said."""

    release: datetime | None
    deadline: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLine:
    """One job that runs, in words."""

    number: int
    name: str
    machines: str
    place: str
    starts: str
    finishes: str
    kept_until: str
    deadline: str
    spare: str
    cost: str


def in_order(jobs: Iterable[Part]) -> list[Part]:
    """The jobs by provider, region, zone and machine, there by their beginning: as they stand in the chart."""
    return sorted(
        jobs,
        key=lambda job: (
            *(str(job[name] or "") for name in ("provider", "region", "zone", "instance_type", "price_kind")),
            job["starts_at"],
            job["job"],
        ),
    )


def lanes(jobs: Sequence[Part], dates: Mapping[int, Dates]) -> list[Lane]:
    """The first `MOST_BARS` jobs, which are in order, below the machine and place that they run on."""
    providers = sorted({job["provider"] for job in jobs})
    return [
        Lane(
            name=plain(name, limit=200), style=providers.index(provider), bars=tuple(_bar(job, dates) for job in group)
        )
        for (name, provider), group in groupby(
            jobs[:MOST_BARS], key=lambda job: (f"{place(job)}: {job['instance_type']}", job["provider"])
        )
    ]


def _bar(job: Part, dates: Mapping[int, Dates]) -> Bar:
    known = dates.get(job["job"], Dates(release=None, deadline=None))
    said = f"{plain(job['name'], limit=200)}: {rented(job)}, {place(job)}, {usd(job['cost_usd'])}, "
    said += f"from {when(job['starts_at'])} to {when(job['finishes_at'])} expected, "
    said += f"{when(job['finishes_by'])} at {percent(job['confidence'])} confidence"
    if known.release is not None:
        said += f", not before {when(known.release.isoformat())}"
    said += f", due {when(known.deadline.isoformat())}" if known.deadline is not None else ", without a deadline"
    # The isolates keep a name that is written from right to left from turning the words after it round.
    return Bar(
        name=f"\u2068{plain(job['name'], limit=_LONGEST_NAME)}\u2069 · {rented(job)}",
        title=said,
        href=f"#job-{job['job']}",
        starts=datetime.fromisoformat(job["starts_at"]),
        ends=datetime.fromisoformat(job["finishes_at"]),
        kept_until=datetime.fromisoformat(job["finishes_by"]),
        release=known.release,
        deadline=known.deadline,
    )


def job_lines(jobs: Sequence[Part], dates: Mapping[int, Dates]) -> list[JobLine]:
    """Every job that runs, in words; `spare` is the time between its surest end and its deadline."""
    return [_line(job, dates.get(job["job"], Dates(release=None, deadline=None))) for job in jobs]


def _line(job: Part, known: Dates) -> JobLine:
    due = known.deadline
    spare = None if due is None else (due - datetime.fromisoformat(job["finishes_by"])) / timedelta(hours=1)
    return JobLine(
        number=job["job"],
        name=plain(job["name"], limit=200),
        machines=rented(job),
        place=place(job),
        starts=_short(datetime.fromisoformat(job["starts_at"])),
        finishes=_short(datetime.fromisoformat(job["finishes_at"])),
        kept_until=_short(datetime.fromisoformat(job["finishes_by"])),
        deadline="none" if due is None else _short(due),
        spare="" if spare is None else duration(max(spare, 0.0)),
        cost=usd(job["cost_usd"]),
    )


def _short(moment: datetime) -> str:
    """A moment in UTC as a table has room for it: `2026-11-22 18:15`."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M}"
