"""HTTP routes for keys and the audit log, for admins. Responses with a secret are never stored, neither by caches nor
for idempotent retries.
"""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, Field

from gpuplan.api.http.authentication import Access
from gpuplan.api.http.cursor_pages import next_cursor, next_link, read_cursor
from gpuplan.api.http.openapi_bodies import document_responses, takes
from gpuplan.api.http.path_ids import KeyId
from gpuplan.api.http.plans import OurGpuplan, OurWorkers
from gpuplan.api.http.request_bodies import read_body
from gpuplan.api.http.response_caching import json_answer
from gpuplan.api.schemas.access import Audit
from gpuplan.api.schemas.api_key import KeyDocument
from gpuplan.api.services.price_history import read_since
from gpuplan.planner.model.wire import wire

router = APIRouter()

NO_STORE = {"Cache-Control": "no-store"}
_MADE = document_responses("NewKey")
_MADE[201] = _MADE.pop(200) | {"description": "The key; it is shown only once"}
#: Cursors name a snapshot. The audit log has none, and its pages go backwards from a record number.
_NO_SNAPSHOT = _AUDIT = "audit"


@router.post("/v1/keys", status_code=201, summary="Create a key", responses=_MADE, openapi_extra=takes(KeyDocument))
async def make_key(request: Request, gpuplan: OurGpuplan, workers: OurWorkers) -> Response:
    """Only this response contains the key; the service stores only the hash of its secret."""
    document = (await read_body(request))[1]
    made = await workers.run(gpuplan.api_keys.make, document)
    headers = NO_STORE | {"Location": f"/v1/keys/{made.id}"}
    return json_answer(made, status=201, headers=headers)


@router.get("/v1/keys", summary="Every key", responses=document_responses("Keys"))
def keys(gpuplan: OurGpuplan) -> Response:
    """Oldest first, without their secrets, also those that expired or were revoked."""
    return json_answer(gpuplan.api_keys.listed(), headers=NO_STORE)


@router.post("/v1/keys/{key_id}/rotate", summary="Replace the secret of a key", responses=document_responses("NewKey"))
def rotate_key(request: Request, key_id: KeyId, gpuplan: OurGpuplan) -> Response:
    """The secret before opens nothing from now on, and sessions that it opened end."""
    made = gpuplan.api_keys.rotate(key_id)
    _forget_known(request)
    return json_answer(made, headers=NO_STORE)


@router.delete("/v1/keys/{key_id}", summary="Revoke a key", responses=document_responses("Key"))
def revoke_key(request: Request, key_id: KeyId, gpuplan: OurGpuplan) -> Response:
    """Nobody can use it from now on; other processes of this service notice within seconds."""
    revoked = gpuplan.api_keys.revoke(key_id)
    _forget_known(request)
    return json_answer(revoked, headers=NO_STORE)


class AuditQuery(BaseModel):
    """Filters of the audit log, and which page of it."""

    since: str | None = Field(
        None, description="A date or ISO time: only records from then on", examples=["2026-11-01"]
    )
    who: str | None = Field(None, max_length=200, description="An identity or a name", examples=["key:0a1b2c3d4e5f"])
    limit: int = Field(1_000, ge=1, le=10_000, description="Most rows of a page")
    cursor: str | None = Field(None, max_length=512, description="`next_cursor` of the previous page")


@router.get("/v1/audit", summary="Who did what", responses=document_responses("Audit", 404))
def audit(request: Request, query: Annotated[AuditQuery, Query()], gpuplan: OurGpuplan) -> Response:
    """Plans, refreshes, keys, watches, runs and failed logins; the newest first."""
    filters = {"since": query.since or "", "who": query.who or ""}
    before = read_cursor(query.cursor, _AUDIT, filters).index if query.cursor is not None else None
    page = gpuplan.audit_log.page(since=read_since(query.since), identity=query.who, before=before, limit=query.limit)
    following = next_cursor(_NO_SNAPSHOT, _AUDIT, filters, page.before)
    answer = wire(Audit(entries=page.records, next_cursor=following))
    headers = NO_STORE | next_link(request, query, following)
    return json_answer(answer, headers=headers)


def _forget_known(request: Request) -> None:
    """Apply the change in this process immediately by clearing the authentication cache."""
    access: Access = request.app.state.access
    if access.authenticator is not None:
        access.authenticator.forget()
