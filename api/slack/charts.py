"""Charts of plans for Slack: pictures at signed addresses that expire, because Slack fetches them without a key."""

import hashlib
import hmac
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from gpuplan.api.http.problem_details import Refused
from gpuplan.api.http.thread_workers import Workers
from gpuplan.api.presentation.plan_charts import frontier_picture
from gpuplan.api.presentation.text_formatting import duration, number, usd
from gpuplan.api.security.authorization import Requester, acting_as
from gpuplan.api.slack.slack_settings import SlackSettings
from gpuplan.api.slack.workspaces import identity_of
from gpuplan.catalog.store.snapshot_list import NotStored
from gpuplan.planner.model.plan import InfeasibleAnswer, PlanAnswer, PlannedAnswer

if TYPE_CHECKING:
    from gpuplan.api.services.composition import Services

#: As long as the question behind a plan is stored.
LIFETIME = timedelta(days=30)
PATH = "/slack/charts/{plan_id}.png"
_DAY_SECONDS = 86_400


class SignedQuery(BaseModel):
    """The workspace that may see the chart, the end of the address in seconds since 1970, and the signature of both."""

    model_config = ConfigDict(extra="forbid")

    workspace: Annotated[str, Field(max_length=40)]
    until: Annotated[int, Field(ge=0, lt=10**11)]
    signature: Annotated[str, Field(max_length=64)]


def chart_url(settings: SlackSettings, plan_id: str, workspace: str, now: datetime) -> str:
    """The signed address of a plan's chart, the same for a day, so that Slack fetches it once."""
    day = int(now.timestamp()) // _DAY_SECONDS * _DAY_SECONDS
    until = day + int(LIFETIME.total_seconds())
    query = {"workspace": workspace, "until": until, "signature": _signature(settings, plan_id, workspace, until)}
    path = PATH.replace("{plan_id}", quote(plan_id, safe=""))
    return f"{settings.page_url.rstrip('/')}{path}?{urlencode(query)}"


def chart_text(answer: PlanAnswer) -> str:
    """What a chart shows, for readers without pictures; empty for a plan without one."""
    if isinstance(answer, InfeasibleAnswer) or not (points := answer.plan.frontier):
        return ""
    ends = [f"{usd(point.cost_usd)} in {duration(point.hours_confident)}" for point in (points[0], points[-1])]
    mine = f"this plan: {usd(answer.plan.cost_usd.expected)} in {duration(answer.plan.hours.confident)}"
    return f"Chart of cost against time: {number(len(points))} choices from {ends[0]} to {ends[1]}; {mine}"


def drawn(gpuplan: "Services", plan_id: str) -> bytes:
    """The PNG of a saved plan's chart. Raises `NotStored` for a plan without one, or that the requester may not read."""
    answer = gpuplan.plans.saved(plan_id)
    picture = frontier_picture(answer.plan) if isinstance(answer, PlannedAnswer) else None
    if picture is None:
        raise NotStored.at("plan", message=f"{plan_id} has no chart")
    return picture


def charts(gpuplan: "Services", workers: Workers, settings: SlackSettings) -> APIRouter:
    """The route of charts."""
    router = APIRouter()

    async def chart(request: Request, plan_id: str, query: Annotated[SignedQuery, Query()]) -> Response:
        """The chart of a plan as a PNG, at a signed address."""
        expected = _signature(settings, plan_id, query.workspace, query.until)
        if not hmac.compare_digest(expected.encode(), query.signature.encode()):
            raise Refused(403, "the signature does not belong to this address; open the plan from its message again")
        if query.until < datetime.now(UTC).timestamp():
            raise Refused(410, "this address has expired; plan again, or open the plan's page")
        # A workspace that was removed since sees no more charts.
        workspace = gpuplan.store.slack.workspace(query.workspace)
        if workspace is None:
            raise Refused(403, f"workspace {query.workspace} may not use gpuplan any more")
        with acting_as(Requester(identity=identity_of(workspace), address=query.workspace)):
            png = await workers.run(drawn, gpuplan, plan_id)
        return Response(png, media_type="image/png", headers={"Cache-Control": f"private, max-age={_DAY_SECONDS}"})

    router.add_api_route(PATH, chart, methods=["GET"])
    return router


def _signature(settings: SlackSettings, plan_id: str, workspace: str, until: int) -> str:
    """Under a key of its own, so that a chart's signature is never one of a request from Slack."""
    key = hmac.digest(settings.signing_secret.encode(), b"gpuplan chart", hashlib.sha256)
    return hmac.new(key, f"{plan_id}\n{workspace}\n{until}".encode(), hashlib.sha256).hexdigest()
