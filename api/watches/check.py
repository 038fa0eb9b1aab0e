"""Every watched job on one snapshot: planned as any door plans, held against what was last told, and told of.

What is to be told is stored in the transaction that moves what was last told, and sent after that: a process that
is killed in between neither forgets a message nor makes it twice.
"""

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from api.documents.watch import deadline_of, job_at
from api.watches.delivery import Delivered, deliver
from api.watches.events import DEADLINE_PASSED, event_between, message
from api.watches.sending import Patience
from api.watches.told import offers_gone, told_of
from catalog.columns import Columns
from catalog.errors import StoreFailure, UnusableInput
from catalog.notifications import Notification
from catalog.watches import Watch
from providers.said import said

if TYPE_CHECKING:
    from api.questions.watches import Watches

Document = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Checked:
    """One watch after a check: what it says now (None: nothing new), and what went wrong."""

    watch: Watch
    payload: Document | None = None
    problem: str = ""


def check_watches(gpuplan: "Watches", snapshot_id: str, now: datetime, *, patience: Patience | None = None) -> Document:
    """Plans every watched job on the snapshot as of `now`, tells what changed, and sends what is still to be sent.

    Gives `{snapshot_id, checked, told, problems, deliveries, meta}`. A job that cannot be planned and a channel
    that cannot be reached are named in it and stop nobody else. Raises `StoreFailure` if the store cannot be used.
    """
    began = time.perf_counter()
    store = gpuplan.store.watching
    watched = [each for each in store.every() if each.ended_at is None]
    checked = _checked(gpuplan, watched, snapshot_id, now) if watched else []
    store.mark_checked([(each.watch.id, each.problem) for each in checked], now)
    planned = time.perf_counter()
    delivered = deliver(store, gpuplan.channels, now, patience=patience)
    names = {each.id: each.name for each in watched}
    return {
        "snapshot_id": snapshot_id,
        "checked": len(checked),
        "told": [_told(each) for each in checked if each.payload is not None],
        "problems": [
            {"watch_id": each.watch.id, "watch": each.watch.name, "problem": each.problem}
            for each in checked
            if each.problem
        ],
        "deliveries": deliveries(delivered, names),
        "meta": {
            "planning_milliseconds": round((planned - began) * 1e3, 3),
            "sending_milliseconds": round((time.perf_counter() - planned) * 1e3, 3),
        },
    }


def deliveries(delivered: Delivered, names: dict[str, str]) -> Document:
    """How sending went, as JSON; a failure that is `final` will not be tried again."""
    return {
        "sent": len(delivered.sent),
        "held_elsewhere": len(delivered.elsewhere),
        "failed": [
            {
                "notification_id": each.notification.id,
                "watch_id": each.notification.watch_id,
                "watch": names.get(each.notification.watch_id, each.notification.watch_id),
                "channel": each.notification.channel,
                "event": each.notification.event,
                "error": each.error,
                "final": each.final,
            }
            for each in delivered.failed
        ],
    }


def _checked(gpuplan: "Watches", watched: Sequence[Watch], snapshot_id: str, now: datetime) -> list[_Checked]:
    columns = gpuplan.columns_with_owned(snapshot_id)
    found = []
    for watch in watched:
        try:
            found.append(_check(gpuplan, watch, columns, now))
        except StoreFailure:
            raise
        except UnusableInput as error:
            found.append(_Checked(watch=watch, problem=said(error)))
        except Exception as error:  # noqa: BLE001 - a defect that one job meets must not silence all other watches
            found.append(_Checked(watch=watch, problem=f"{type(error).__name__}: {said(error)}"))
    return found


def _check(gpuplan: "Watches", watch: Watch, columns: Columns, now: datetime) -> _Checked:
    before = watch.last_told
    deadline = deadline_of(watch.job)
    if deadline is not None and deadline <= now:
        over = {"outcome": "ended", "plan_id": None, "snapshot_id": columns.snapshot_id, "at": now.isoformat()}
        payload = message(watch, DEADLINE_PASSED, before, over, (), at=now.isoformat())
        moved = _tell(gpuplan, watch, before, payload, now, ended_at=now)
        return _Checked(watch=watch, payload=payload if moved else None)
    answer = gpuplan.plan(job_at(watch.job, now), snapshot=columns.snapshot_id, now=now, save=False)
    after = told_of(answer, now)
    unverified = bool(watch.job["constraints"].get("unverified_availability"))
    gone = offers_gone(before, columns, unverified=unverified)
    event = event_between(before, after, gone, watch.threshold_percent)
    if event is None:
        return _Checked(watch=watch)
    # Saved before it is told: whoever gets the message can look at the plan.
    gpuplan.save_plan(answer, now, owners=gpuplan.store.watching.owners(watch.id))
    payload = message(watch, event, before, after, gone, at=now.isoformat())
    return _Checked(watch=watch, payload=payload if _tell(gpuplan, watch, after, payload, now) else None)


def _tell(
    gpuplan: "Watches",
    watch: Watch,
    last_told: Document,
    payload: Document,
    now: datetime,
    *,
    ended_at: datetime | None = None,
) -> bool:
    """Stores what was told with a notification per channel; False if another check has told it."""
    said_to = [_notification(watch, channel, payload, now) for channel in watch.channels]
    return gpuplan.store.watching.tell(watch, last_told, said_to, ended_at=ended_at)


def _notification(watch: Watch, channel: str, payload: Document, now: datetime) -> Notification:
    """Under an id that is the same whenever the same is told: what a receiver knows a repeat by."""
    event, snapshot_id, telling = payload["data"]["event"], payload["data"]["snapshot_id"], watch.tellings + 1
    named = (watch.id, watch.created_at.isoformat(), str(telling), snapshot_id, channel, event)
    digest = hashlib.sha256("\n".join(named).encode()).hexdigest()
    return Notification(
        id=f"note-{digest[:32]}",
        watch_id=watch.id,
        telling=telling,
        snapshot_id=snapshot_id,
        channel=channel,
        event=event,
        payload=payload,
        created_at=now,
    )


def _told(each: _Checked) -> Document:
    data = (each.payload or {})["data"]
    return {
        "watch_id": each.watch.id,
        "watch": each.watch.name,
        "event": data["event"],
        "summary": data["summary"],
        "plan_id": data["plan_id"],
        "channels": list(each.watch.channels),
    }
