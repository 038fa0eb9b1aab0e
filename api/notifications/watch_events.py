"""Events between two answers of a watched job, with their sentences and outgoing messages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction
from typing import Literal, cast

from gpuplan.api.presentation.infeasibility import conflicts_in_short
from gpuplan.api.presentation.text_formatting import offer_place, plain, usd
from gpuplan.api.schemas.watch_answers import (
    ReportedConflicts,
    ReportedJob,
    ReportedMachines,
    ReportedPlan,
    WantedCapacity,
    WatchedOffer,
    WatchEvent,
)
from gpuplan.catalog.model.money import usd_micros, usd_text
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.store.watch_store import Notification, Watch
from gpuplan.planner.model.shared import Moment, Usd
from gpuplan.planner.model.wire import wire
from gpuplan.planner.serialization.phase_document import usd as usd_of

#: Each event with the beginning of its message.
TITLES: Mapping[WatchEvent, str] = {
    "cheaper": "is cheaper now",
    "dearer": "got dearer",
    "offer_gone": "lost the offer it was planned on",
    "infeasible": "can no longer be done as asked",
    "feasible": "can be done now",
    "deadline_passed": "is no longer watched: its deadline has passed",
    "obtainable": "can be obtained now",
    "not_obtainable": "can no longer be obtained as wanted",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedWatch:
    """The watch of a message."""

    id: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadlinePassed:
    """Stands for the answer after the deadline, when the job is not planned any more."""

    outcome: Literal["ended"] = "ended"
    plan_id: None = None
    snapshot_id: str
    at: Moment


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """The `data` of an outgoing message, without any secret; `summary` is all of it in one line."""

    event: WatchEvent
    watch: NamedWatch
    job: str
    snapshot_id: str
    plan_id: str | None
    summary: str

    def payload(self, at: datetime) -> JsonObject:
        """The message: `{"type": "watch.cheaper", "timestamp": ..., "data": {...}}`."""
        return {"type": f"watch.{self.event}", "timestamp": at.isoformat(), "data": wire(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class JobNews(News):
    """News of a watched job; the change is null unless there is a plan before and after."""

    before: ReportedJob
    after: ReportedJob | DeadlinePassed
    threshold_percent: float
    change_usd: Usd | None
    change_percent: float | None
    offers_gone: tuple[WatchedOffer, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityNews(News):
    """News of watched machines."""

    before: ReportedMachines
    after: ReportedMachines
    capacity: WantedCapacity


def event_of(notification: Notification) -> WatchEvent:
    """The event of a stored notification: one of those that are ever stored."""
    return cast("WatchEvent", notification.event)


def event_between(
    before: ReportedJob, after: ReportedJob, gone: Sequence[WatchedOffer], threshold_percent: float
) -> WatchEvent | None:
    """The event between the last report and the new answer; None if there is nothing to report.

    A cost counts as changed from exactly `threshold_percent` of the reported one. A lost offer takes precedence over a
    change of cost, which the message then includes.
    """
    if not isinstance(after, ReportedPlan):
        return "infeasible" if isinstance(before, ReportedPlan) else None
    if not isinstance(before, ReportedPlan):
        return "feasible"
    if gone:
        return "offer_gone"
    old, new = usd_micros(before.cost_usd), usd_micros(after.cost_usd)
    part = Fraction(str(threshold_percent)) / 100
    if new < old and new <= (1 - part) * old:
        return "cheaper"
    if new > old and new >= (1 + part) * old:
        return "dearer"
    return None


def job_news(
    watch: Watch,
    event: WatchEvent,
    before: ReportedJob,
    after: ReportedJob | DeadlinePassed,
    gone: Sequence[WatchedOffer],
) -> JobNews:
    """The news of an event. The offers of plans are kept for comparison alone, and are left out."""
    name = plain(watch.name)
    change = _change(before, after)
    return JobNews(
        event=event,
        watch=NamedWatch(id=watch.id, name=name),
        job=plain(str(watch.job.get("name", ""))),
        snapshot_id=after.snapshot_id,
        plan_id=after.plan_id,
        before=_without_offers(before),
        after=_without_offers(after),
        summary=f"{name} {TITLES[event]}{_details(event, before, after, gone)}",
        threshold_percent=watch.threshold_percent,
        change_usd=None if change is None else usd_of(change.micros),
        change_percent=None if change is None else change.percent,
        offers_gone=tuple(gone),
    )


def _without_offers[Answer](answer: Answer) -> Answer:
    return replace(answer, offers=None) if isinstance(answer, ReportedPlan) else answer


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """The change of a cost; no percentage of nothing."""

    micros: int
    percent: float | None

    def __str__(self) -> str:
        if self.micros == 0:
            return "no dearer"
        part = "" if self.percent is None else f" ({abs(self.percent):.3g} %)"
        return f"{usd(usd_text(abs(self.micros)))}{part} {'more' if self.micros > 0 else 'less'}"


def _change(before: object, after: object) -> _Change | None:
    """The change of cost between two plans."""
    if not isinstance(before, ReportedPlan) or not isinstance(after, ReportedPlan):
        return None
    old, new = usd_micros(before.cost_usd), usd_micros(after.cost_usd)
    percent = round(float(Fraction(new - old, old) * 100), 2) if old else None
    return _Change(micros=new - old, percent=percent)


def _details(event: WatchEvent, before: object, after: object, gone: Sequence[WatchedOffer]) -> str:
    """What follows the title of an event, to the end of the sentence."""
    was = f"{usd(before.cost_usd)} on {before.choice}" if isinstance(before, ReportedPlan) else ""
    if isinstance(after, ReportedConflicts):
        return f" ({conflicts_in_short(after.conflicts, after.searched_nodes)}); it was {was}."
    if not isinstance(after, ReportedPlan):
        return "."
    best = f"{usd(after.cost_usd)} on {after.choice}"
    if not isinstance(before, ReportedPlan):
        return f": {best}."
    change = _change(before, after)
    if event == "offer_gone":
        lost = " and ".join(f"{offer.instance_type} in {offer_place(offer)}" for offer in gone)
        return f", {lost}: the best plan is now {best}, {change} than {usd(before.cost_usd)} before."
    return f": {best}, {change} than {was}."
