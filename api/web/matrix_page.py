"""`/catalogue/matrix`: least prices of regions or providers against accelerators, with the filters of the catalogue."""

from datetime import UTC, datetime, timedelta

from fastapi import APIRouter, Request
from fastapi.responses import Response

from gpuplan.api.http.plans import OurGpuplan
from gpuplan.api.services.offer_selection import FILTERS, read_selection, selected
from gpuplan.api.services.price_matrix import MatrixCell, PriceMatrix, price_matrix, read_by
from gpuplan.api.web.catalogue_page import choices
from gpuplan.api.web.catalogue_table import catalogue_url
from gpuplan.api.web.page_rendering import PageRoute, render
from gpuplan.catalog.runtime.errors import Fault, UnusableInput

router = APIRouter(route_class=PageRoute, include_in_schema=False)

#: What a cloud said of capacity is shown for this long.
CAPACITY_AGE = timedelta(days=1)


@router.get("/catalogue/matrix")
def matrix(request: Request, gpuplan: OurGpuplan) -> Response:
    """Show the least price per accelerator-hour of each row and accelerator."""
    asked = dict(request.query_params)
    columns = gpuplan.context.columns_with_owned(None)
    made: PriceMatrix | None = None
    faults: tuple[Fault, ...] = ()
    given: dict[str, str] = {}
    try:
        by = read_by(asked.get("by") or "provider")
        wanted = read_selection({name: text for name, text in asked.items() if name != "by"})
        answers = gpuplan.store.capacity.since(datetime.now(UTC) - CAPACITY_AGE)
        made, given = price_matrix(columns, selected(columns, wanted), by, answers), wanted.given()
    except UnusableInput as error:
        faults = error.faults

    def url(cell: MatrixCell) -> str:
        narrowed = {"provider": cell.offer.provider, "region": cell.offer.region}
        of_row = given | (narrowed if asked.get("by") == "region" else {"provider": cell.offer.provider})
        return catalogue_url(of_row | {"instance_type": cell.offer.instance_type})

    context = {
        "section": "Catalogue",
        "asked": dict.fromkeys(FILTERS, "") | {"by": "provider"} | asked,
        "faults": {fault.field: fault.message for fault in faults},
        "choices": choices(columns),
        "matrix": made,
        "url_of": url,
        "snapshot_id": columns.snapshot_id,
        "observed_at": columns.observed_at.isoformat(),
    }
    return render(request, "matrix.html", context, status=422 if faults else 200)
