"""The queue of Slack answers: computed in the service's workers, stored, sent, and retried until Slack accepts them.

A request is stored before it is acknowledged, so that another process can continue it. One process at a time has the
lease of a row, for `lease_seconds`. Every process polls for rows without a lease: those of dead processes, and those
that Slack has not accepted.
"""

import asyncio
import contextlib
import functools
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import anyio.to_thread

from gpuplan.api.http.problem_details import Refused
from gpuplan.api.http.thread_workers import Workers
from gpuplan.api.schemas.key_value_words import in_words
from gpuplan.api.security.authorization import Requester, acting_as
from gpuplan.api.slack.block_kit import image, message, with_image, with_link
from gpuplan.api.slack.charts import chart_url, drawn
from gpuplan.api.slack.message_sending import NotDelivered, Teller, To
from gpuplan.api.slack.other_messages import refusal
from gpuplan.api.slack.pasted_jobs import job_of_text
from gpuplan.api.slack.question_kinds import FinishedAnswer, checked_job, finished_answer
from gpuplan.api.slack.slack_settings import SlackSettings
from gpuplan.api.slack.watch_notifications import tell_watches
from gpuplan.api.slack.workspaces import requester_of, token_of
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.runtime.errors import StoreFailure, UnusableInput
from gpuplan.catalog.store.access_store import QuotaExceeded
from gpuplan.catalog.store.slack_store import SlackAnswer

if TYPE_CHECKING:
    from gpuplan.api.services.composition import Services

log = logging.getLogger("gpuplan.slack")

#: Slack accepts messages at a `response_url` for 30 minutes; one minute is a margin for clock differences.
RESPONSE_URL_LIFETIME = timedelta(minutes=29)
#: Most abandoned requests taken up at once.
_MOST_AT_ONCE = 16
#: First delay before an answer is computed or sent again.
_LATER_SECONDS = 5.0
_LONGEST_LATER_SECONDS = 600.0


class _Lost(Exception):
    """Another process has taken over the lease of the request."""


class Answers:
    """The Slack answers of this process; belongs to the event loop that runs it."""

    def __init__(
        self, gpuplan: "Services", workers: Workers, settings: SlackSettings, *, plans_per_day: int | None = None
    ) -> None:
        """Starts with `running`. `plans_per_day` limits the plans per workspace and day, if given."""
        self.plans_per_day = plans_per_day
        self.gpuplan, self.workers, self.settings = gpuplan, workers, settings
        self.patience = settings.patience
        self._tasks: dict[str, asyncio.Task[None]] = {}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Polls for abandoned requests until the service stops; then messages being sent have some seconds left."""
        loops = [asyncio.create_task(self._again_and_again(poll)) for poll in (self._left_behind, self._watches)]
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
        """End of a lease that starts now, to compute or to send an answer."""
        seconds = self.patience.lease_seconds + (self.patience.message_seconds if telling else 0.0)
        return datetime.now(UTC) + timedelta(seconds=seconds)

    def begin(self, asked: SlackAnswer) -> None:
        """Process a request that this process has leased, in the background."""
        task = asyncio.create_task(self._one(asked), name=asked.id)
        self._tasks[asked.id] = task
        task.add_done_callback(lambda _: self._tasks.pop(asked.id, None))

    async def _again_and_again(self, look: Callable[[], Awaitable[None]]) -> None:
        """Poll every few seconds, also after failures."""
        while True:
            await asyncio.sleep(self.patience.look_seconds)
            try:
                await look()
            except StoreFailure as error:
                log.warning("Slack: pending answers cannot be read: %s", error)
            except Exception:  # boundary of a background task: log the error and poll again
                log.exception("Slack: polling for pending answers failed")

    async def _left_behind(self) -> None:
        """Take up requests without a lease."""
        store = self.gpuplan.store.slack
        for due in await anyio.to_thread.run_sync(lambda: store.due(datetime.now(UTC), most=_MOST_AT_ONCE)):
            # Skip requests that this process still works on: only their lease has expired.
            if due.id not in self._tasks:
                await self._take_up(due)

    async def _watches(self) -> None:
        await tell_watches(self.gpuplan, self.settings)

    async def _take_up(self, asked: SlackAnswer) -> None:
        until = self.held_until(telling=asked.message is not None)
        if await anyio.to_thread.run_sync(self.gpuplan.store.slack.hold, asked.id, asked.held_until, until):
            self.begin(replace(asked, held_until=until))

    async def _one(self, asked: SlackAnswer) -> None:
        """Process one request; failures are recorded, logged and, if temporary, retried."""
        try:
            await self._answered(asked)
        except StoreFailure as error:
            # The row is taken up again when its lease expires.
            log.warning("Slack answer %s waits: %s", asked.id, error)
        except _Lost:
            log.warning("Slack answer %s took longer than its lease: another process has taken over", asked.id)
        except Exception:
            log.exception("Slack answer %s failed", asked.id)
            await self._give_up(asked, 0, "internal error; see the log")

    async def _answered(self, asked: SlackAnswer) -> None:
        if _age_hours(asked) > self.patience.longest_hours:
            await self._give_up(asked, 0, asked.last_error or "no process could send it in time")
            return
        enterprise_id = str(asked.request.get("enterprise_id") or "")
        token = await anyio.to_thread.run_sync(token_of, self.gpuplan, self.settings, asked.team_id, enterprise_id)
        teller = Teller(self.settings, token)
        try:
            if asked.message is None:
                await self._announced(asked, teller.token)
                finished_answer = await self._worked_out(asked, teller)
                if finished_answer.file is not None:
                    await teller.upload(asked.user_id, finished_answer.file)
                asked = await self._stored(asked, finished_answer)
            if asked.message is not None:
                # Before it is sent where the thread is known: a reply may come at once.
                await self._followed(asked, str(asked.request.get("thread_ts") or ""))
                await self._followed(asked, await teller.answer(_to(asked), asked.message))
        except Refused as busy:
            await self._again(asked, 0, str(busy), _LATER_SECONDS)
        except NotDelivered as error:
            if error.final:
                await self._give_up(asked, error.attempts, str(error))
            else:
                await self._again(asked, error.attempts, str(error), error.wait_seconds)
        else:
            await self._settle(asked, attempts=teller.attempts, delivered_at=datetime.now(UTC))

    async def _followed(self, asked: SlackAnswer, thread: str) -> None:
        """Remember the plan of a thread; none for an empty one, or after a message in another thread."""
        plan_id = asked.plan_id or (asked.request["plan"] if asked.kind in {"share", "show"} else "")
        if thread and plan_id and asked.request.get("thread_ts", thread) == thread:
            where = asked.team_id, asked.channel_id, thread
            follow = functools.partial(self.gpuplan.store.slack.follow, plan_id=plan_id, now=datetime.now(UTC))
            await anyio.to_thread.run_sync(follow, *where)

    async def _announced(self, asked: SlackAnswer, token: str) -> None:
        """Send the progress line if the acknowledgement could not contain it. Failures are ignored: the answer follows."""
        if not asked.request.get("doing") or asked.attempts:
            return
        single_attempt = replace(self.settings, patience=replace(self.patience, attempts=1))
        with contextlib.suppress(NotDelivered):
            await Teller(single_attempt, token).answer(_to(asked), message(asked.request["doing"]))

    async def _worked_out(self, asked: SlackAnswer, teller: Teller) -> FinishedAnswer:
        """The answer, or the reason why there is none, for the user."""
        requester = await anyio.to_thread.run_sync(requester_of, self.gpuplan, asked, self.plans_per_day)
        if requester is None:
            return FinishedAnswer(
                message=message("This workspace is no longer allowed to use gpuplan; its operator can allow it again.")
            )
        try:
            if asked.kind == "file":
                asked = replace(asked, kind="plan", request=await self._read_file(asked, teller))
            with acting_as(requester):
                worked_out = await self.workers.run(finished_answer, self.gpuplan, asked)
                answer = self._linked(await self._illustrated(worked_out, requester, teller))
            # What is asked in a thread is answered there, for everybody.
            if asked.request.get("thread_ts"):
                return replace(answer, message=answer.message | {"response_type": "in_channel"})
            return answer
        except UnusableInput as error:
            return FinishedAnswer(message=refusal(error))
        except QuotaExceeded as error:
            reason = f"this workspace has used its {error}; the limit resets at midnight UTC"
            return FinishedAnswer(message=message(reason))
        except Refused as error:
            # A full queue is retried later; a request that took too long is not, because it would again.
            if "Retry-After" in error.headers:
                raise
            return FinishedAnswer(message=message(error.detail))
        except (StoreFailure, NotDelivered):
            raise
        except Exception:
            log.exception("Slack answer %s could not be worked out", asked.id)
            reason = f"gpuplan failed with an internal error; see the service's log for {asked.id}"
            return FinishedAnswer(message=message(reason))

    async def _illustrated(self, answer: FinishedAnswer, requester: Requester, teller: Teller) -> FinishedAnswer:
        """The answer with its chart: at a signed address if the page has a public one, else uploaded to Slack."""
        if not answer.chart:
            return answer
        if self.settings.has_public_page:
            workspace = requester.identity.id.removeprefix("slack:")
            url = chart_url(self.settings, answer.about, workspace, datetime.now(UTC))
            return replace(answer, message=with_image(answer.message, image(answer.chart, image_url=url)))
        if not teller.token:
            return answer
        png = await self.workers.run(drawn, self.gpuplan, answer.about)
        try:
            file_id = await teller.upload_picture(png, f"{answer.about}.png")
        except NotDelivered as error:
            if not error.final:
                raise
            log.warning("the chart of %s could not be uploaded to Slack: %s", answer.about, error)
            return answer
        return replace(answer, message=with_image(answer.message, image(answer.chart, slack_file={"id": file_id})))

    def _linked(self, finished_answer: FinishedAnswer) -> FinishedAnswer:
        """The answer with a link to the plan's page, if the page has a public address."""
        page = self.settings.page_of(finished_answer.about)
        return (
            replace(finished_answer, message=with_link(finished_answer.message, page, "Open this plan in the browser"))
            if page
            else finished_answer
        )

    async def _read_file(self, asked: SlackAnswer, teller: Teller) -> JsonObject:
        """The job in an uploaded file. Raises `UnusableInput` for an invalid job, or if Slack does not return the file."""
        try:
            text = await teller.read_file(asked.request["file"])
        except NotDelivered as error:
            if not error.final:
                raise
            raise UnusableInput.at("plan", message=f"the file cannot be read: {error}") from None
        try:
            job = await anyio.to_thread.run_sync(job_of_text, text, [])
            await anyio.to_thread.run_sync(checked_job, job)
        except UnusableInput as error:
            raise in_words(error) from None
        return {"job": job}

    async def _stored(self, asked: SlackAnswer, finished_answer: FinishedAnswer) -> SlackAnswer:
        """The request with its answer, stored before it is sent; renews the lease."""
        store, until = self.gpuplan.store.slack, self.held_until(telling=True)

        def keep() -> bool:
            if not store.hold(asked.id, asked.held_until, until):
                return False
            request = asked.request | ({"job": finished_answer.job} if finished_answer.job else {})
            store.answered(asked.id, finished_answer.message, plan_id=finished_answer.plan_id, request=request)
            return True

        if not await anyio.to_thread.run_sync(keep):
            raise _Lost
        return replace(asked, message=finished_answer.message, plan_id=finished_answer.plan_id, held_until=until)

    async def _again(self, asked: SlackAnswer, attempts: int, error: str, wait_seconds: float | None) -> None:
        backing_off = min(_LONGEST_LATER_SECONDS, _LATER_SECONDS * 2 ** min(asked.attempts, 8))
        seconds = max(self.patience.first_wait_seconds, wait_seconds if wait_seconds is not None else backing_off)
        log.warning("Slack answer %s waits %.0f s: %s", asked.id, seconds, error)
        again_at = datetime.now(UTC) + timedelta(seconds=seconds)
        await self._settle(asked, attempts=attempts, again_at=again_at, error=error)

    async def _give_up(self, asked: SlackAnswer, attempts: int, error: str) -> None:
        plan = f"; its plan is stored as {asked.plan_id}" if asked.plan_id else ""
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
    is_usable = datetime.now(UTC) - asked.created_at < RESPONSE_URL_LIFETIME
    return To(
        channel_id=asked.channel_id,
        user_id=asked.user_id,
        response_url=asked.response_url if is_usable else "",
        thread_ts=str(asked.request.get("thread_ts") or ""),
    )


def _age_hours(asked: SlackAnswer) -> float:
    return (datetime.now(UTC) - asked.created_at).total_seconds() / 3600
