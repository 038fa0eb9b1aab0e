"""Keys and the audit log over HTTP, for admins. No answer with a secret is kept: not by caches, nor for a repeated request."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, Field

from api.history import read_since
from api.http.access import Access
from api.http.bodies import read_body
from api.http.describe import Schema, body_of, document_responses, ref
from api.http.paging import next_cursor, next_link, read_cursor
from api.http.plans import OurGpuplan, OurWorkers, to_json

router = APIRouter()

NO_STORE = {"Cache-Control": "no-store"}
_KEY_OPERATION: Schema = {
    "requestBody": body_of(ref("KeyDocument"), ninety_days={"name": "ci", "scope": "plan", "expires": "90d"})
}
_MADE = document_responses("NewKey", 400, 413, 415, 503)
_MADE[201] = _MADE.pop(200) | {"description": "The key, shown this once"}
#: Cursors name a snapshot; the audit log has none, and pages of it go backwards from a number.
_NO_SNAPSHOT = _AUDIT = "audit"


@router.post(
    "/v1/keys",
    status_code=201,
    summary="Make a key",
    operation_id="make_key",
    responses=_MADE,
    openapi_extra=_KEY_OPERATION,
)
async def make_key(request: Request, gpuplan: OurGpuplan, workers: OurWorkers) -> Response:
    """The answer holds the key, and no other ever will: only the hash of its secret is kept."""
    document = (await read_body(request))[1]
    made = await workers.run(gpuplan.make_key, document)
    headers = NO_STORE | {"Location": f"/v1/keys/{made['id']}"}
    return Response(to_json(made), status_code=201, media_type="application/json", headers=headers)


@router.get("/v1/keys", summary="Every key", operation_id="keys", responses=document_responses("Keys", 503))
def keys(gpuplan: OurGpuplan) -> Response:
    """Oldest first, without their secrets, also those that expired or were revoked."""
    return Response(to_json(gpuplan.keys()), media_type="application/json", headers=NO_STORE)


@router.post(
    "/v1/keys/{key_id}/rotate",
    summary="Give a key another secret",
    operation_id="rotate_key",
    responses=document_responses("NewKey", 404, 503),
)
def rotate_key(request: Request, key_id: str, gpuplan: OurGpuplan) -> Response:
    """The secret before opens nothing from now on, and sessions that it opened end."""
    made = gpuplan.rotate_key(key_id)
    _forget_known(request)
    return Response(to_json(made), media_type="application/json", headers=NO_STORE)


@router.delete(
    "/v1/keys/{key_id}",
    summary="Revoke a key",
    operation_id="revoke_key",
    responses=document_responses("Key", 404, 503),
)
def revoke_key(request: Request, key_id: str, gpuplan: OurGpuplan) -> Response:
    """Nobody can use it from now on; other processes of this service notice within seconds."""
    revoked = gpuplan.revoke_key(key_id)
    _forget_known(request)
    return Response(to_json(revoked), media_type="application/json", headers=NO_STORE)


class AuditQuery(BaseModel):
    """Which part of the log."""

    since: str | None = Field(None, description="A date or ISO time: nothing before", examples=["2026-11-01"])
    who: str | None = Field(None, max_length=200, description="An identity or a name", examples=["key:0a1b2c3d4e5f"])
    limit: int = Field(1_000, ge=1, le=10_000)
    cursor: str | None = Field(None, max_length=512, description="`next_cursor` of the page before")


@router.get(
    "/v1/audit",
    summary="Who did what",
    operation_id="audit",
    responses=document_responses("Audit", 404, 503),
)
def audit(request: Request, query: Annotated[AuditQuery, Query()], gpuplan: OurGpuplan) -> Response:
    """Plans, refreshes, keys, watches and runs, and logins that were refused; the newest first."""
    filters = {"since": query.since or "", "who": query.who or ""}
    before = read_cursor(query.cursor, _AUDIT, filters).index if query.cursor is not None else None
    page = gpuplan.audit(since=read_since(query.since), who=query.who, before=before, limit=query.limit)
    following = next_cursor(_NO_SNAPSHOT, _AUDIT, filters, page.before)
    answer = {"entries": list(page.records), "next_cursor": following}
    headers = NO_STORE | next_link(request, query, following)
    return Response(to_json(answer), media_type="application/json", headers=headers)


def _forget_known(request: Request) -> None:
    """This process takes the change at once."""
    access: Access = request.app.state.access
    if access.gate is not None:
        access.gate.forget()
