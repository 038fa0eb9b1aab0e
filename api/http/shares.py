"""HTTP routes for links that let others read a plan, run or watch: create, list, open, revoke."""

from fastapi import APIRouter, Request
from fastapi.responses import Response

from gpuplan.api.http.api_keys import NO_STORE
from gpuplan.api.http.openapi_bodies import document_responses, takes
from gpuplan.api.http.path_ids import ShareId
from gpuplan.api.http.plans import OurGpuplan, OurWorkers
from gpuplan.api.http.request_bodies import read_body
from gpuplan.api.http.response_caching import json_answer
from gpuplan.api.schemas.access import SharedObject
from gpuplan.api.schemas.share_link import ShareDocument, ShareLinkDocument, parse_link

router = APIRouter()

_MADE = document_responses("NewShare", 404)
_MADE[201] = _MADE.pop(200) | {"description": "The link; it is shown only once"}


@router.post(
    "/v1/shares",
    status_code=201,
    summary="Create a link to a plan, run or watch",
    responses=_MADE,
    openapi_extra=takes(ShareDocument),
)
async def share(request: Request, gpuplan: OurGpuplan, workers: OurWorkers) -> Response:
    """Whoever has the link and a key of this service may read what it leads to, until it is revoked; nobody may change it."""
    made = await workers.run(gpuplan.shares.make, (await read_body(request))[1])
    headers = NO_STORE | {"Location": f"/v1/shares/{made.id}"}
    return json_answer(made, status=201, headers=headers)


@router.get("/v1/shares", summary="Every link", responses=document_responses("Shares"))
def shares(gpuplan: OurGpuplan) -> Response:
    """To what belongs to you, the oldest first, without their secrets, revoked ones too; to everything for an admin."""
    return json_answer(gpuplan.shares.listed(), headers=NO_STORE)


@router.post(
    "/v1/shares/open",
    summary="Open a link",
    responses=document_responses("SharedObject", 404),
    openapi_extra=takes(ShareLinkDocument),
)
async def open_share(request: Request, gpuplan: OurGpuplan, workers: OurWorkers) -> Response:
    """What the link leads to may be read by this key from now on, until the link is revoked."""
    kind, object_id = await workers.run(gpuplan.shares.open, parse_link((await read_body(request))[1]))
    answer = SharedObject(kind=kind, object_id=object_id)
    return json_answer(answer, headers=NO_STORE)


@router.delete("/v1/shares/{share_id}", summary="Revoke a link", responses=document_responses("Share"))
def revoke_share(share_id: ShareId, gpuplan: OurGpuplan) -> Response:
    """It leads nowhere from now on, also for those who have opened it."""
    return json_answer(gpuplan.shares.revoke(share_id), headers=NO_STORE)
