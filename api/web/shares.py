"""`/shares`: create and revoke links to a plan, run or watch; `/shared/...`: open a link."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.responses import RedirectResponse, Response
from pydantic import BaseModel, ConfigDict

from gpuplan.api.http.authentication import needs
from gpuplan.api.http.plans import OurGpuplan, OurWorkers
from gpuplan.api.schemas.share_link import parse_share
from gpuplan.api.services.composition import Services
from gpuplan.api.web.form_bodies import read_form
from gpuplan.api.web.page_rendering import PageRoute, render
from gpuplan.catalog.store.ownership import Kind

router = APIRouter(route_class=PageRoute, include_in_schema=False, dependencies=[Depends(needs("read"))])

_NO_STORE = {"Cache-Control": "no-store"}
#: Page addresses of runs, by kind.
_RUN_PAGES = {"portfolio": "/portfolio/", "buy": "/buy/"}
LinkText = Annotated[str, Path(max_length=200)]


class ShareQuery(BaseModel):
    """The object whose links are shown, by kind."""

    model_config = ConfigDict(extra="forbid")

    plan: str | None = None
    run: str | None = None
    watch: str | None = None


@router.get("/shares", dependencies=[Depends(needs("plan"))])
def links(request: Request, query: Annotated[ShareQuery, Query()], gpuplan: OurGpuplan) -> Response:
    """Show the links to an object, and the form for a new one."""
    return _page(request, gpuplan, *parse_share(query.model_dump(exclude_none=True)))


@router.post("/shares", dependencies=[Depends(needs("plan"))])
async def share(request: Request, gpuplan: OurGpuplan, workers: OurWorkers) -> Response:
    """Create a link. It is shown only once."""
    typed = (await read_form(request)).texts
    kind, object_id = parse_share({name: values[0] for name, values in typed.items()})

    def made() -> Response:
        link = gpuplan.shares.make({kind: object_id}).link
        return _page(request, gpuplan, kind, object_id, link=str(request.base_url).rstrip("/") + link)

    return await workers.run(made)


@router.post("/shares/{share_id}/revoke", dependencies=[Depends(needs("plan"))])
def revoke(share_id: LinkText, gpuplan: OurGpuplan) -> Response:
    """Revoke a link."""
    gone = gpuplan.shares.revoke(share_id)
    return RedirectResponse(f"/shares?{gone.kind}={gone.object_id}", status_code=303, headers=_NO_STORE)


@router.get("/shared/{link}")
def shared(link: LinkText, gpuplan: OurGpuplan) -> Response:
    """Redirect to the shared object, which the reader may read from now on."""
    return RedirectResponse(_page_of(gpuplan, *gpuplan.shares.open(link)), status_code=303, headers=_NO_STORE)


def _page_of(gpuplan: Services, kind: Kind, object_id: str) -> str:
    """The page of the object; a watch has no page, so its address under `/v1`."""
    if kind == "plan":
        return f"/plans/{object_id}"
    if kind == "run":
        return _RUN_PAGES.get(gpuplan.runs.stored(object_id).kind, "/v1/runs/") + object_id
    return f"/v1/watches/{object_id}"


def _page(request: Request, gpuplan: Services, kind: Kind, object_id: str, *, link: str | None = None) -> Response:
    context = {
        "kind": kind,
        "object_id": object_id,
        "back": _page_of(gpuplan, kind, object_id),
        "link": link,
        "links": gpuplan.shares.of_object(kind, object_id),
    }
    return render(request, "shares.html", context, headers=_NO_STORE)
