"""Answers on their way: worked out in the service's workers, kept, told, and tried again until Slack has them.

A question is a row before it is acknowledged, so whoever runs next can go on with it. One process at a time holds a
row, for as long as `lease_seconds`; every process looks every few seconds for rows that nobody holds: those whose
process died, and those that Slack would not take.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import anyio.to_thread

from api.http.problems import Refused
from api.http.workers import Workers
from api.identity.asking import acting_as
from api.slack.blocks import message, with_link
from api.slack.kinds import Told, checked_job, told
from api.slack.plan_words import in_words
from api.slack.settings import SlackSettings
from api.slack.show_rest import refusal
from api.slack.telling import NotTold, Teller, To
from api.slack.watch_telling import tell_watches
from api.slack.workspaces import asking_of, token_of
from catalog.documents import read_document
from catalog.errors import StoreFailure, UnusableInput
from catalog.quota_use import QuotaExceeded
from catalog.slack_answers import SlackAnswer

if TYPE_CHECKING:
    from api.app import Gpuplan

log = logging.getLogger("gpuplan.slack")

#: Slack takes messages at a `response_url` for half an hour; one is kept for clocks that differ.
RESPONSE_URL_HOLDS = timedelta(minutes=29)
#: As many as are taken up at once from what others have left.
_MOST_AT_ONCE = 16
#: Why an answer waits, and for how long at first, before it is worked out or told again.
_LATER_SECONDS = 5.0
_LONGEST_LATER_SECONDS = 600.0


class _Lost(Exception):
    """Another process holds the question by now."""


class Answers:
    """Everything that is to be told in Slack by this process; belongs to the event loop that runs it."""

    def __init__(
        self, gpuplan: "Gpuplan", workers: Workers, settings: SlackSettings, *, plans_per_day: int | None = None
    ) -> None:
        """Nothing happens before `running`. A workspace has as many plans in a day, where a number is given."""
        self.plans_per_day = plans_per_day
        self.gpuplan, self.workers, self.settings = gpuplan, workers, settings
        self.patience = settings.patience
        self._tasks: dict[str, asyncio.Task[None]] = {}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Looks for what was left behind, until the service stops; then what is being told has some seconds left."""
        loops = [asyncio.create_task(self._again_and_again(each)) for each in (self._left_behind, self._watches)]
        try:
            yield
        finally:
            for loop in loops:
                loop.cancel()
            left = list(self._tasks.values())
            if left:
                await asyncio.wait(left, timeout=self.patience.stop_seconds)
            for task in left:
                task.cancel()
            await asyncio.gather(*loops, *left, return_exceptions=True)

    def held_until(self, *, telling: bool = False) -> datetime:
        """Up to when a question that this process takes up now, to work it out or to tell it, is its own."""
        seconds = self.patience.lease_seconds + (self.patience.telling_seconds if telling else 0.0)
        return datetime.now(UTC) + timedelta(seconds=seconds)

    def begin(self, asked: SlackAnswer) -> None:
        """Goes on with a question that this process holds, without waiting for it."""
        task = asyncio.create_task(self._one(asked), name=asked.id)
        self._tasks[asked.id] = task
        task.add_done_callback(lambda _: self._tasks.pop(asked.id, None))

    async def _again_and_again(self, look: Callable[[], Awaitable[None]]) -> None:
        """Looks every few seconds, whatever came of the last time."""
        while True:
            await asyncio.sleep(self.patience.look_seconds)
            try:
                await look()
            except StoreFailure as error:
                log.warning("Slack: what waits to be told cannot be read: %s", error)
            except Exception:  # the edge of a task: nobody else would hear of it, and the next look may go well
                log.exception("Slack: what waits to be told could not be looked at")

    async def _left_behind(self) -> None:
        """Takes up the questions that nobody holds."""
        store = self.gpuplan.store.slack
        for each in await anyio.to_thread.run_sync(lambda: store.due(datetime.now(UTC), most=_MOST_AT_ONCE)):
            # One that this process is still at has only outlived its lease.
            if each.id not in self._tasks:
                await self._take_up(each)

    async def _watches(self) -> None:
        await tell_watches(self.gpuplan, self.settings)

    async def _take_up(self, asked: SlackAnswer) -> None:
        until = self.held_until(telling=asked.message is not None)
        if await anyio.to_thread.run_sync(self.gpuplan.store.slack.hold, asked.id, asked.held_until, until):
            self.begin(replace(asked, held_until=until))

    async def _one(self, asked: SlackAnswer) -> None:
        """One question to its end; whatever goes wrong is noted, logged and, where that may help, tried again."""
        try:
            await self._answered(asked)
        except StoreFailure as error:
            # Its row is held for a while and then taken up again.
            log.warning("Slack answer %s waits: %s", asked.id, error)
        except _Lost:
            log.warning("Slack answer %s took longer than its lease: another process has it", asked.id)
        except Exception:
            log.exception("Slack answer %s failed", asked.id)
            await self._give_up(asked, 0, "gpuplan failed on it; the log says why")

    async def _answered(self, asked: SlackAnswer) -> None:
        if _age_hours(asked) > self.patience.longest_hours:
            await self._give_up(asked, 0, asked.last_error or "nobody was there to tell it in time")
            return
        enterprise_id = str(asked.request.get("enterprise_id") or "")
        token = await anyio.to_thread.run_sync(token_of, self.gpuplan, self.settings, asked.team_id, enterprise_id)
        teller = Teller(self.settings, token)
        try:
            if asked.message is None:
                await self._announced(asked, teller.token)
                found = await self._worked_out(asked, teller)
                if found.file is not None:
                    await teller.upload(asked.user_id, found.file)
                asked = await self._kept(asked, found)
            if asked.message is not None:
                await teller.answer(_to(asked), asked.message)
        except Refused as busy:
            await self._again(asked, 0, str(busy), _LATER_SECONDS)
        except NotTold as error:
            if error.final:
                await self._give_up(asked, error.attempts, str(error))
            else:
                await self._again(asked, error.attempts, str(error), error.wait_seconds)
        else:
            await self._settle(asked, attempts=teller.attempts, delivered_at=datetime.now(UTC))

    async def _announced(self, asked: SlackAnswer, token: str) -> None:
        """Says what is being done, where the acknowledgement could not; that may fail, since the answer follows."""
        if not asked.request.get("doing") or asked.attempts:
            return
        once = replace(self.settings, patience=replace(self.patience, attempts=1))
        with contextlib.suppress(NotTold):
            await Teller(once, token).answer(_to(asked), message(asked.request["doing"]))

    async def _worked_out(self, asked: SlackAnswer, teller: Teller) -> Told:
        """The answer, or what keeps it from being one, in the words of its author."""
        asking = await anyio.to_thread.run_sync(asking_of, self.gpuplan, asked, self.plans_per_day)
        if asking is None:
            return Told(
                message=message("This workspace may no longer ask gpuplan; whoever runs it can allow it again.")
            )
        try:
            if asked.kind == "file":
                asked = replace(asked, kind="plan", request=await self._read_file(asked, teller))
            with acting_as(asking):
                found = await self.workers.run(told, self.gpuplan, asked)
            return self._linked(found, found.plan_id or (asked.request["plan"] if asked.kind == "share" else ""))
        except UnusableInput as error:
            return Told(message=refusal(error))
        except QuotaExceeded as error:
            said = f"this workspace has had its {error}; the next are there after midnight (UTC)"
            return Told(message=message(said))
        except Refused as error:
            # A queue that is full says when to come again; what took too long would do so again.
            if "Retry-After" in error.headers:
                raise
            return Told(message=message(error.detail))
        except (StoreFailure, NotTold):
            raise
        except Exception:
            log.exception("Slack answer %s could not be worked out", asked.id)
            said = f"gpuplan failed on this question; the service's log says why under {asked.id}"
            return Told(message=message(said))

    def _linked(self, found: Told, plan_id: str) -> Told:
        """With a link to the page of the plan that is told, where there is such a page."""
        page = self.settings.page_of(plan_id)
        return (
            replace(found, message=with_link(found.message, page, "Open this plan in the browser")) if page else found
        )

    async def _read_file(self, asked: SlackAnswer, teller: Teller) -> dict[str, object]:
        """The job in an uploaded file. Raises `UnusableInput` for what is no job, and where Slack does not give it."""
        try:
            text = await teller.read_file(asked.request["file"])
        except NotTold as error:
            if not error.final:
                raise
            raise UnusableInput.at("plan", message=f"the file cannot be read: {error}") from None
        job = read_document(text, name="job")
        try:
            await anyio.to_thread.run_sync(checked_job, job)
        except UnusableInput as error:
            raise in_words(error) from None
        return {"job": job}

    async def _kept(self, asked: SlackAnswer, found: Told) -> SlackAnswer:
        """The question with its answer, kept before it is told; the lease begins anew."""
        store, until = self.gpuplan.store.slack, self.held_until(telling=True)

        def keep() -> bool:
            if not store.hold(asked.id, asked.held_until, until):
                return False
            request = asked.request | ({"job": found.job} if found.job else {})
            store.answered(asked.id, found.message, plan_id=found.plan_id, request=request)
            return True

        if not await anyio.to_thread.run_sync(keep):
            raise _Lost
        return replace(asked, message=found.message, plan_id=found.plan_id, held_until=until)

    async def _again(self, asked: SlackAnswer, attempts: int, error: str, wait_seconds: float | None) -> None:
        backing_off = min(_LONGEST_LATER_SECONDS, _LATER_SECONDS * 2 ** min(asked.attempts, 8))
        seconds = max(self.patience.first_wait_seconds, wait_seconds if wait_seconds is not None else backing_off)
        log.warning("Slack answer %s waits %.0f s: %s", asked.id, seconds, error)
        again_at = datetime.now(UTC) + timedelta(seconds=seconds)
        await self._settle(asked, attempts=attempts, again_at=again_at, error=error)

    async def _give_up(self, asked: SlackAnswer, attempts: int, error: str) -> None:
        plan = f"; its plan stays stored as {asked.plan_id}" if asked.plan_id else ""
        log.error("Slack answer %s to %s is given up: %s%s", asked.id, asked.team_id, error, plan)
        await self._settle(asked, attempts=attempts, given_up_at=datetime.now(UTC), error=error)

    async def _settle(
        self,
        asked: SlackAnswer,
        *,
        attempts: int,
        delivered_at: datetime | None = None,
        given_up_at: datetime | None = None,
        again_at: datetime | None = None,
        error: str = "",
    ) -> None:
        def settle() -> None:
            self.gpuplan.store.slack.settle(
                asked.id,
                attempts=attempts,
                delivered_at=delivered_at,
                given_up_at=given_up_at,
                again_at=again_at,
                error=error,
            )

        await anyio.to_thread.run_sync(settle)


def _to(asked: SlackAnswer) -> To:
    holds = datetime.now(UTC) - asked.created_at < RESPONSE_URL_HOLDS
    return To(channel_id=asked.channel_id, user_id=asked.user_id, response_url=asked.response_url if holds else "")


def _age_hours(asked: SlackAnswer) -> float:
    return (datetime.now(UTC) - asked.created_at).total_seconds() / 3600
