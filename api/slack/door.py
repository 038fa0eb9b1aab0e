"""The three addresses that Slack calls: each request verified, taken once, and handed to Bolt within its three seconds.

Bolt's own verification stays on behind this one. It comes first here because a request must be refused as a problem
like every other, and because one that was taken already must not reach a listener a second time.
"""

import asyncio
import hashlib
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import anyio.to_thread
from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.responses import JSONResponse, Response
from slack_bolt.adapter.starlette.async_handler import to_async_bolt_request, to_starlette_response
from slack_sdk.signature import SignatureVerifier

from api.http.access import needs
from api.http.problems import RETRY_AFTER_SECONDS, Refused
from api.http.workers import Workers
from api.slack.answers import Answers
from api.slack.blocks import message
from api.slack.bolt import BUSY, bolt_app
from api.slack.install import installing
from api.slack.settings import SlackSettings
from catalog.errors import StoreFailure

if TYPE_CHECKING:
    from api.app import Gpuplan

#: A filled-in form with its longest texts is below a tenth of it.
MOST_BYTES = 512 * 1024
#: Slack's own five minutes on either side of now, and one for clocks that differ.
REMEMBERED = timedelta(minutes=11)
_SIGNATURE = re.compile(r"v0=[0-9a-f]{64}")
_TIMESTAMP = re.compile(r"[0-9]{1,12}")


def mount(app: FastAPI, gpuplan: "Gpuplan", workers: Workers, settings: SlackSettings) -> None:
    """Adds Slack's addresses to a service, and lets answers be told for as long as it runs."""
    limits = app.state.access.settings
    plans_per_day = limits.variables.plans_per_day if limits is not None else None
    answers = Answers(gpuplan, workers, settings, plans_per_day=plans_per_day)
    bolt = bolt_app(settings, answers)
    verifier = SignatureVerifier(settings.signing_secret)
    # Slack shows no key: what it signs is its proof, and workspaces have scopes of their own.
    router = APIRouter(include_in_schema=False, dependencies=[Depends(needs(None))])

    async def receive(request: Request) -> Response:
        """One request from Slack."""
        body = await _verified(request, verifier)
        try:
            first = await _first_time(request, body, gpuplan, settings.patience.store_seconds)
        except (StoreFailure, TimeoutError) as error:
            return _store_failed(request, error)
        if not first:
            return _again(request)
        return to_starlette_response(await bolt.async_dispatch(to_async_bolt_request(request, body)))

    for path in ("/slack/events", "/slack/interactions", "/slack/commands"):
        router.add_api_route(path, receive, methods=["POST"])
    if settings.installs:
        router.include_router(installing(gpuplan, settings))
    app.include_router(router)
    app.state.slack = answers
    _while_running(app, answers)


def _while_running(app: FastAPI, answers: Answers) -> None:
    inner = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(service: Any) -> AsyncIterator[Any]:
        async with inner(service) as state, answers.running():
            yield state

    app.router.lifespan_context = lifespan


async def _verified(request: Request, verifier: SignatureVerifier) -> bytes:
    """The body of a request that Slack has signed within the last five minutes. Raises `Refused`."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BYTES:
            raise Refused(413, f"the body is larger than {MOST_BYTES // 1024} KiB, and nothing that Slack sends is")
    signature = request.headers.get("x-slack-signature", "")
    timestamp = request.headers.get("x-slack-request-timestamp", "")
    shaped = _SIGNATURE.fullmatch(signature) and _TIMESTAMP.fullmatch(timestamp) and _is_text(body)
    if not shaped or not verifier.is_valid(bytes(body), timestamp, signature):
        message_ = "the request is not signed by Slack within the last five minutes; only Slack may call this address"
        raise Refused(401, message_)
    return bytes(body)


def _is_text(body: bytes | bytearray) -> bool:
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


async def _first_time(request: Request, body: bytes, gpuplan: "Gpuplan", seconds: float) -> bool:
    """Whether neither this request nor what it is about was taken before, by any process."""
    keys = {f"signature:{hashlib.sha256(request.headers['x-slack-signature'].encode()).hexdigest()}"}
    if about := _about(body, request.headers.get("content-type", "")):
        keys.add(f"about:{hashlib.sha256(about.encode()).hexdigest()}")
    now = datetime.now(UTC)
    async with asyncio.timeout(seconds):
        return await anyio.to_thread.run_sync(
            gpuplan.store.slack.first_time, keys, now, now + REMEMBERED, abandon_on_cancel=True
        )


def _about(body: bytes, content_type: str) -> str:
    """What tells a thing that happened in Slack from all others, however often it is sent: its trigger, or event."""
    payload = _payload(body, content_type)
    return str(payload.get("trigger_id") or payload.get("event_id") or "")


def _payload(body: bytes, content_type: str) -> dict[str, Any]:
    text = body.decode()
    try:
        if content_type.startswith("application/json"):
            found = json.loads(text)
        else:
            form = {name: values[0] for name, values in parse_qs(text).items()}
            found = json.loads(form["payload"]) if "payload" in form else form
    except (ValueError, RecursionError):
        raise Refused(400, "the body is neither a form nor JSON, as Slack sends them") from None
    if not isinstance(found, dict):
        raise Refused(400, "the body holds no object, and all that Slack sends does")
    return found


def _again(request: Request) -> Response:
    """What was taken already: Slack's own repetition is acknowledged, so that it ends; any other is refused."""
    if request.headers.get("x-slack-retry-num"):
        return Response(status_code=200, headers={"X-Slack-No-Retry": "1"})
    raise Refused(409, "this request was taken already; what is sent a second time is not done a second time")


def _store_failed(request: Request, error: Exception) -> Response:
    """A command is told so in words; of anything else Slack shows that it failed."""
    said = BUSY if isinstance(error, TimeoutError) else f"{error}. Nothing was done; ask again."
    if request.url.path == "/slack/commands":
        return JSONResponse(message(said))
    raise Refused(503, said, headers={"Retry-After": str(RETRY_AFTER_SECONDS)}) from error
