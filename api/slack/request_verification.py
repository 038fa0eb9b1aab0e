"""The three addresses that Slack calls: verifies requests, removes duplicates, and passes them to Bolt within 3 s.

Bolt verifies again. The check here comes first so that refusals are problem details like all others, and so that a
repeated request does not reach a listener twice.
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

from gpuplan.api.http.authentication import needs
from gpuplan.api.http.problem_details import RETRY_AFTER_SECONDS, Refused
from gpuplan.api.http.thread_workers import Workers
from gpuplan.api.slack.answer_queue import Answers
from gpuplan.api.slack.block_kit import message
from gpuplan.api.slack.bolt_app import BUSY, bolt_app
from gpuplan.api.slack.charts import charts
from gpuplan.api.slack.installation import installing
from gpuplan.api.slack.slack_settings import SlackSettings
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.runtime.errors import StoreFailure

if TYPE_CHECKING:
    from gpuplan.api.services.composition import Services

#: Largest body; a form with its longest texts is below a tenth of it.
MOST_BYTES = 512 * 1024
#: Slack's window of five minutes before and after now, and one for clock differences.
REMEMBERED = timedelta(minutes=11)
_SIGNATURE = re.compile(r"v0=[0-9a-f]{64}")
_TIMESTAMP = re.compile(r"[0-9]{1,12}")


def mount(app: FastAPI, gpuplan: "Services", workers: Workers, settings: SlackSettings) -> None:
    """Add Slack's addresses to a service, and send answers while it runs."""
    limits = app.state.access.settings
    plans_per_day = limits.variables.plans_per_day if limits is not None else None
    answers = Answers(gpuplan, workers, settings, plans_per_day=plans_per_day)
    bolt = bolt_app(settings, answers)
    verifier = SignatureVerifier(settings.signing_secret)
    # Slack sends signatures instead of keys, and workspaces have their own scopes.
    router = APIRouter(include_in_schema=False, dependencies=[Depends(needs(None))])

    async def receive(request: Request) -> Response:
        """Receive one request from Slack."""
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
    router.include_router(charts(gpuplan, workers, settings))
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
            raise Refused(413, f"the body is larger than {MOST_BYTES // 1024} KiB, the limit for Slack")
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


async def _first_time(request: Request, body: bytes, gpuplan: "Services", seconds: float) -> bool:
    """Whether neither this request nor its event was handled before, by any process."""
    keys = {f"signature:{hashlib.sha256(request.headers['x-slack-signature'].encode()).hexdigest()}"}
    if about := _about(body, request.headers.get("content-type", "")):
        keys.add(f"about:{hashlib.sha256(about.encode()).hexdigest()}")
    now = datetime.now(UTC)
    async with asyncio.timeout(seconds):
        return await anyio.to_thread.run_sync(
            gpuplan.store.slack.first_time, keys, now, now + REMEMBERED, abandon_on_cancel=True
        )


def _about(body: bytes, content_type: str) -> str:
    """The identity of a Slack event, the same in all repetitions: its trigger or event id."""
    payload = _payload(body, content_type)
    return str(payload.get("trigger_id") or payload.get("event_id") or "")


def _payload(body: bytes, content_type: str) -> JsonObject:
    text = body.decode()
    try:
        if content_type.startswith("application/json"):
            payload = json.loads(text)
        else:
            form = {name: values[0] for name, values in parse_qs(text).items()}
            payload = json.loads(form["payload"]) if "payload" in form else form
    except (ValueError, RecursionError):
        raise Refused(400, "the body is neither a form nor JSON, as Slack sends them") from None
    if not isinstance(payload, dict):
        raise Refused(400, "the body is not a JSON object")
    return payload


def _again(request: Request) -> Response:
    """Answer to a duplicate: a retry by Slack is acknowledged, so that it stops; any other is refused."""
    if request.headers.get("x-slack-retry-num"):
        return Response(status_code=200, headers={"X-Slack-No-Retry": "1"})
    raise Refused(409, "this request was already handled; duplicates are refused")


def _store_failed(request: Request, error: Exception) -> Response:
    """The response to a store failure: a message for commands, an error status otherwise."""
    reason = BUSY if isinstance(error, TimeoutError) else f"{error}. Nothing was done; try again."
    if request.url.path == "/slack/commands":
        return JSONResponse(message(reason))
    raise Refused(503, reason, headers={"Retry-After": str(RETRY_AFTER_SECONDS)}) from error
