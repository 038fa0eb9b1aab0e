"""What watches have to say in Slack: from the outbox of all watches to the channel where each was asked for."""

import logging
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import anyio.to_thread

from api.slack.blocks import Message, header, message, small, with_link, words
from api.slack.settings import SlackSettings
from api.slack.telling import NotTold, Teller, To
from api.slack.watching import place_of
from api.slack.workspaces import token_of
from api.watches.delivery import LONGEST_WAIT, TOLD_IN_SLACK
from api.watches.events import TITLES
from catalog.notifications import Notification

if TYPE_CHECKING:
    from api.app import Gpuplan

log = logging.getLogger("gpuplan.slack")

#: After the first failure, and at most, until a message is tried again.
_FIRST_LATER, _LONGEST_LATER = timedelta(seconds=15), timedelta(hours=1)
_MOST_AT_ONCE = 20


async def tell_watches(gpuplan: "Gpuplan", settings: SlackSettings) -> int:
    """Tells what waits for a channel in Slack and that nobody else is telling; how many were told."""
    waiting = await anyio.to_thread.run_sync(gpuplan.store.watching.waiting)
    now = datetime.now(UTC)
    mine = [each for each in waiting if each.channel.startswith(TOLD_IN_SLACK) and _free(each, now)]
    told = 0
    for each in mine[:_MOST_AT_ONCE]:
        lease = datetime.now(UTC) + timedelta(
            seconds=settings.patience.lease_seconds + settings.patience.telling_seconds
        )
        if await anyio.to_thread.run_sync(gpuplan.store.watching.hold, each.id, datetime.now(UTC), lease):
            told += await _tell(gpuplan, settings, each)
    return told


def _free(each: Notification, now: datetime) -> bool:
    return each.held_until is None or each.held_until <= now


async def _tell(gpuplan: "Gpuplan", settings: SlackSettings, each: Notification) -> bool:
    now = datetime.now(UTC)
    try:
        place = place_of(each.channel)
    except ValueError as error:
        await anyio.to_thread.run_sync(_note, gpuplan, each, NotTold(str(error), final=True, attempts=0), True)
        return False
    teller = Teller(
        settings, await anyio.to_thread.run_sync(token_of, gpuplan, settings, place.team_id, place.enterprise_id)
    )
    try:
        await teller.post(To(channel_id=place.channel_id, user_id=place.user_id), watch_message(each, settings))
    except NotTold as error:
        over = error.final or now - each.created_at > LONGEST_WAIT
        log.warning("watch %s could not be told in Slack: %s", each.watch_id, error)
        await anyio.to_thread.run_sync(_note, gpuplan, each, error, over)
        return False
    await anyio.to_thread.run_sync(_delivered, gpuplan, each, teller.attempts)
    return True


def _delivered(gpuplan: "Gpuplan", each: Notification, attempts: int) -> None:
    gpuplan.store.watching.settle(each.id, attempts=attempts, delivered_at=datetime.now(UTC))


def _note(gpuplan: "Gpuplan", each: Notification, error: NotTold, over: bool) -> None:
    now, store = datetime.now(UTC), gpuplan.store.watching
    store.settle(each.id, attempts=error.attempts, error=str(error), given_up_at=now if over else None)
    if not over:
        asked = timedelta(seconds=error.wait_seconds or 0)
        later = min(_LONGEST_LATER, _FIRST_LATER * 2 ** min(each.attempts, 10))
        store.hold(each.id, now, now + max(asked, later))


def watch_message(each: Notification, settings: SlackSettings) -> Message:
    """What happened to a watched job, for the whole channel, with a link to its plan where the page has an address."""
    data = each.payload["data"]
    beside = [
        f"{name} {data[key]}" for name, key in (("plan", "plan_id"), ("snapshot", "snapshot_id")) if data.get(key)
    ]
    title = f"{data['watch']['name']} {TITLES[each.event]}"
    blocks = [header(title), words(data["summary"]), small(*beside, f"watch {each.watch_id}; /gpuplan unwatch ends it")]
    told = message(data["summary"], blocks, public=True)
    page = settings.page_of(data.get("plan_id") or "")
    return with_link(told, page, "Open this plan in the browser") if page else told
