"""Sends watch notifications from the outbox to their Slack channels."""

import logging
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import anyio.to_thread

from gpuplan.api.notifications.delivery import LONGEST_WAIT, SLACK_CHANNEL_PREFIX
from gpuplan.api.notifications.watch_events import TITLES, event_of
from gpuplan.api.slack.block_kit import Message, header, message, small, with_link, words
from gpuplan.api.slack.channel_watches import place_of
from gpuplan.api.slack.message_sending import NotDelivered, Teller, To
from gpuplan.api.slack.slack_settings import SlackSettings
from gpuplan.api.slack.workspaces import token_of
from gpuplan.catalog.store.watch_store import Notification

if TYPE_CHECKING:
    from gpuplan.api.services.composition import Services

log = logging.getLogger("gpuplan.slack")

#: First and longest delay before a message is sent again.
_FIRST_LATER, _LONGEST_LATER = timedelta(seconds=15), timedelta(hours=1)
_MOST_AT_ONCE = 20


async def tell_watches(gpuplan: "Services", settings: SlackSettings) -> int:
    """Send pending notifications without a lease to Slack channels; returns the number sent."""
    waiting = await anyio.to_thread.run_sync(gpuplan.store.watching.waiting)
    now = datetime.now(UTC)
    mine = [
        candidate
        for candidate in waiting
        if candidate.channel.startswith(SLACK_CHANNEL_PREFIX) and _free(candidate, now)
    ]
    sent = 0
    for notification in mine[:_MOST_AT_ONCE]:
        lease = datetime.now(UTC) + timedelta(
            seconds=settings.patience.lease_seconds + settings.patience.message_seconds
        )
        if await anyio.to_thread.run_sync(gpuplan.store.watching.hold, notification.id, datetime.now(UTC), lease):
            sent += await _tell(gpuplan, settings, notification)
    return sent


def _free(notification: Notification, now: datetime) -> bool:
    return notification.held_until is None or notification.held_until <= now


async def _tell(gpuplan: "Services", settings: SlackSettings, notification: Notification) -> bool:
    now = datetime.now(UTC)
    try:
        place = place_of(notification.channel)
    except ValueError as error:
        await anyio.to_thread.run_sync(
            _note, gpuplan, notification, NotDelivered(str(error), final=True, attempts=0), True
        )
        return False
    teller = Teller(
        settings, await anyio.to_thread.run_sync(token_of, gpuplan, settings, place.team_id, place.enterprise_id)
    )
    try:
        await teller.post(To(channel_id=place.channel_id, user_id=place.user_id), watch_message(notification, settings))
    except NotDelivered as error:
        over = error.final or now - notification.created_at > LONGEST_WAIT
        log.warning("notification of watch %s could not be sent to Slack: %s", notification.watch_id, error)
        await anyio.to_thread.run_sync(_note, gpuplan, notification, error, over)
        return False
    await anyio.to_thread.run_sync(_delivered, gpuplan, notification, teller.attempts)
    return True


def _delivered(gpuplan: "Services", notification: Notification, attempts: int) -> None:
    gpuplan.store.watching.settle(notification.id, attempts=attempts, delivered_at=datetime.now(UTC))


def _note(gpuplan: "Services", notification: Notification, error: NotDelivered, over: bool) -> None:
    now, store = datetime.now(UTC), gpuplan.store.watching
    store.settle(notification.id, attempts=error.attempts, error=str(error), given_up_at=now if over else None)
    if not over:
        asked = timedelta(seconds=error.wait_seconds or 0)
        later = min(_LONGEST_LATER, _FIRST_LATER * 2 ** min(notification.attempts, 10))
        store.hold(notification.id, now, now + max(asked, later))


def watch_message(notification: Notification, settings: SlackSettings) -> Message:
    """A notification as a public message, with a link to the plan if the page has a public address."""
    data = notification.payload["data"]
    beside = [
        f"{name} {data[key]}" for name, key in (("plan", "plan_id"), ("snapshot", "snapshot_id")) if data.get(key)
    ]
    title = f"{data['watch']['name']} {TITLES[event_of(notification)]}"
    blocks = [
        header(title),
        words(data["summary"]),
        small(*beside, f"watch {notification.watch_id}; /gpuplan unwatch ends it"),
    ]
    notice = message(data["summary"], blocks, public=True)
    page = settings.page_of(data.get("plan_id") or "")
    return with_link(notice, page, "Open this plan in the browser") if page else notice
