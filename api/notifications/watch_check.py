"""The check of all watched jobs on a snapshot: plan each job, compare it with the last report, and notify.

Notifications are stored in the transaction that updates the last report, and sent afterwards: a process killed in
between neither loses nor repeats a message.
"""

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from gpuplan.api.notifications.capacity_watches import CAPACITY, capacity_news, last_answer, looked_up, wanted_by
from gpuplan.api.notifications.delivery import Delivered, deliver
from gpuplan.api.notifications.reported_answer import last_reported, offers_gone, reported_answer_of
from gpuplan.api.notifications.watch_events import DeadlinePassed, News, event_between, event_of, job_news
from gpuplan.api.notifications.webhook_sending import Patience
from gpuplan.api.schemas.watch import deadline_of, job_at
from gpuplan.api.schemas.watch_answers import (
    CheckMeta,
    Deliveries,
    FailedDelivery,
    ReportedJob,
    ReportedMachines,
    WatchChange,
    WatchCheck,
    WatchProblem,
)
from gpuplan.api.services.live_queries import LiveQueries
from gpuplan.api.services.plans import PlanService
from gpuplan.api.services.service_context import ServiceContext
from gpuplan.catalog.runtime.errors import ProviderFailure, StoreFailure, UnusableInput
from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.catalog.store.watch_store import Notification, Watch
from gpuplan.planner.model.wire import wire
from gpuplan.providers.error_redaction import redacted_text


@dataclass(frozen=True, slots=True, kw_only=True)
class _Checked:
    """One watch after a check: its news (None: nothing new), and its problem."""

    watch: Watch
    news: News | None = None
    problem: str = ""


def check_watches(
    context: ServiceContext,
    plans: PlanService,
    live_queries: LiveQueries,
    snapshot_id: str,
    now: datetime,
    *,
    capacity_only: bool = False,
    patience: Patience | None = None,
) -> WatchCheck:
    """Plans every watched job on the snapshot as of `now`, tells what changed, and sends what is still to be sent.

    Clouds are asked about watched machines; with `capacity_only`, no job is planned.

    Jobs that cannot be planned and channels that
    cannot be reached are listed and do not stop the others. Raises `StoreFailure` if the store cannot be used.
    """
    began = time.perf_counter()
    store = context.store.watching
    watched = [
        stored_watch
        for stored_watch in store.every()
        if stored_watch.ended_at is None and (CAPACITY in stored_watch.job or not capacity_only)
    ]
    checked = []
    for stored_watch in watched:
        columns = context.columns_with_owned(snapshot_id)
        if CAPACITY in stored_watch.job:
            check = partial(_check_capacity, context, live_queries, stored_watch, columns, now)
        else:
            check = partial(_check, context, plans, stored_watch, columns, now)
        checked.append(_with_problem(stored_watch, check))
    store.mark_checked([(check.watch.id, check.problem) for check in checked], now)
    planned = time.perf_counter()
    delivered = deliver(store, context.channels, now, patience=patience)
    names = {stored_watch.id: stored_watch.name for stored_watch in watched}
    return WatchCheck(
        snapshot_id=snapshot_id,
        checked=len(checked),
        told=tuple(_change(check.watch, check.news) for check in checked if check.news is not None),
        problems=tuple(
            WatchProblem(watch_id=check.watch.id, watch=check.watch.name, problem=check.problem)
            for check in checked
            if check.problem
        ),
        deliveries=_deliveries(delivered, names),
        meta=CheckMeta(
            planning_milliseconds=round((planned - began) * 1e3, 3),
            sending_milliseconds=round((time.perf_counter() - planned) * 1e3, 3),
        ),
    )


def _deliveries(delivered: Delivered, names: dict[str, str]) -> Deliveries:
    return Deliveries(
        sent=len(delivered.sent),
        held_elsewhere=len(delivered.elsewhere),
        failed=tuple(
            FailedDelivery(
                notification_id=failure.notification.id,
                watch_id=failure.notification.watch_id,
                watch=names.get(failure.notification.watch_id, failure.notification.watch_id),
                channel=failure.notification.channel,
                event=event_of(failure.notification),
                error=failure.error,
                final=failure.final,
            )
            for failure in delivered.failed
        ),
    )


def _with_problem(watch: Watch, check: Callable[[], _Checked]) -> _Checked:
    """The result of a check, or the problem that it met."""
    try:
        return check()
    except StoreFailure:
        raise
    except (UnusableInput, ProviderFailure) as error:
        return _Checked(watch=watch, problem=redacted_text(error))
    except Exception as error:  # noqa: BLE001 - a defect that one watch meets must not silence all others
        return _Checked(watch=watch, problem=f"{type(error).__name__}: {redacted_text(error)}")


def _check(context: ServiceContext, plans: PlanService, watch: Watch, columns: Columns, now: datetime) -> _Checked:
    before = last_reported(watch)
    deadline = deadline_of(watch.job)
    if deadline is not None and deadline <= now:
        over = DeadlinePassed(snapshot_id=columns.snapshot_id, at=now)
        return _notify(context, watch, before, job_news(watch, "deadline_passed", before, over, ()), now, ended_at=now)
    answer = plans.plan(job_at(watch.job, now), snapshot=columns.snapshot_id, now=now, save=False)
    after = reported_answer_of(answer, now)
    unverified = bool(watch.job["constraints"].get("unverified_availability"))
    gone = offers_gone(before, columns, unverified=unverified)
    event = event_between(before, after, gone, watch.threshold_percent)
    if event is None:
        return _Checked(watch=watch)
    # Saved before it is told: whoever gets the message can look at the plan.
    plans.save(answer, now, owners=context.store.watching.owners(watch.id))
    return _notify(context, watch, after, job_news(watch, event, before, after, gone), now)


def _check_capacity(
    context: ServiceContext, live_queries: LiveQueries, watch: Watch, columns: Columns, now: datetime
) -> _Checked:
    """Ask the clouds, and tell if the machines can be obtained as wanted where they could not before, or the reverse."""
    before, wanted = last_answer(watch), wanted_by(watch)
    after = looked_up(live_queries, columns, wanted, now)
    if after.outcome == before.outcome:
        return _Checked(watch=watch)
    return _notify(context, watch, after, capacity_news(watch, wanted, before, after), now)


def _notify(
    context: ServiceContext,
    watch: Watch,
    report: ReportedJob | ReportedMachines,
    news: News,
    now: datetime,
    *,
    ended_at: datetime | None = None,
) -> _Checked:
    """Store the report and a notification per channel; without news if another check has already done so."""
    queued = [_notification(watch, channel, news, now) for channel in watch.channels]
    is_first = context.store.watching.tell(watch, wire(report), queued, ended_at=ended_at)
    return _Checked(watch=watch, news=news if is_first else None)


def _notification(watch: Watch, channel: str, news: News, now: datetime) -> Notification:
    """With a deterministic id for the same news, by which receivers recognise repeats."""
    report_number = watch.tellings + 1
    named = (watch.id, watch.created_at.isoformat(), str(report_number), news.snapshot_id, channel, news.event)
    digest = hashlib.sha256("\n".join(named).encode()).hexdigest()
    return Notification(
        id=f"note-{digest[:32]}",
        watch_id=watch.id,
        telling=report_number,
        snapshot_id=news.snapshot_id,
        channel=channel,
        event=news.event,
        payload=news.payload(now),
        created_at=now,
    )


def _change(watch: Watch, news: News) -> WatchChange:
    return WatchChange(
        watch_id=watch.id,
        watch=watch.name,
        event=news.event,
        summary=news.summary,
        plan_id=news.plan_id,
        channels=watch.channels,
    )
