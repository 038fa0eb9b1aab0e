"""`/shares`: links to one plan, run or watch, made and revoked; and `/shared/...`, where such a link leads."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.responses import RedirectResponse, Response
from pydantic import BaseModel, ConfigDict

from api.app import Gpuplan
from api.documents.share import parse_share
from api.http.access import needs
from api.http.plans import OurGpuplan, OurWorkers
from api.web.forms import read_form
from api.web.pages import PageRoute, render
from catalog.ownership import Kind

router = APIRouter(route_class=PageRoute, include_in_schema=False, dependencies=[Depends(needs("read"))])

_NO_STORE = {"Cache-Control": "no-store"}
#: Where the page shows runs, by their kind.
_RUN_PAGES = {"portfolio": "/portfolio/", "buy": "/buy/"}
LinkText = Annotated[str, Path(max_length=200)]


class ShareQuery(BaseModel):
    """Whose links are shown, by the kind of the object."""

    model_config = ConfigDict(extra="forbid")

    plan: str | None = None
    run: str | None = None
    watch: str | None = None


@router.get("/shares", dependencies=[Depends(needs("plan"))])
def links(request: Request, query: Annotated[ShareQuery, Query()], gpuplan: OurGpuplan) -> Response:
    """The links to an object, and the form for another one."""
    return _page(request, gpuplan, *parse_share(query.model_dump(exclude_none=True)))


@router.post("/shares", dependencies=[Depends(needs("plan"))])
async def share(request: Request, gpuplan: OurGpuplan, workers: OurWorkers) -> Response:
    """Makes a link and shows it, this once."""
    typed = (await read_form(request)).texts
    kind, object_id = parse_share({name: values[0] for name, values in typed.items()})

    def made() -> Response:
        link = gpuplan.share({kind: object_id})["link"]
        return _page(request, gpuplan, kind, object_id, link=str(request.base_url).rstrip("/") + link)

    return await workers.run(made)


@router.post("/shares/{share_id}/revoke", dependencies=[Depends(needs("plan"))])
def revoke(share_id: LinkText, gpuplan: OurGpuplan) -> Response:
    """The link leads nowhere from now on."""
    gone = gpuplan.revoke_share(share_id)
    return RedirectResponse(f"/shares?{gone['kind']}={gone['object_id']}", status_code=303, headers=_NO_STORE)


@router.get("/shared/{link}")
def shared(link: LinkText, gpuplan: OurGpuplan) -> Response:
    """On to what the link leads to, which its reader may read from now on."""
    return RedirectResponse(_page_of(gpuplan, *gpuplan.open_share(link)), status_code=303, headers=_NO_STORE)


def _page_of(gpuplan: Gpuplan, kind: Kind, object_id: str) -> str:
    """Where the object is shown; a watch has no page, and is shown as the interface for programs gives it."""
    if kind == "plan":
        return f"/plans/{object_id}"
    if kind == "run":
        return _RUN_PAGES.get(gpuplan.stored_run(object_id).kind, "/v1/runs/") + object_id
    return f"/v1/watches/{object_id}"


def _page(request: Request, gpuplan: Gpuplan, kind: Kind, object_id: str, *, link: str | None = None) -> Response:
    context: dict[str, Any] = {
        "kind": kind,
        "object_id": object_id,
        "back": _page_of(gpuplan, kind, object_id),
        "link": link,
        "links": gpuplan.shares_of(kind, object_id),
    }
    return render(request, "shares.html", context, headers=_NO_STORE)
