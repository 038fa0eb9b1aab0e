"""`/catalogue/accelerators`, the table of accelerators, and `/accelerators/NAME`, the page of one of them."""

from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Path, Request
from fastapi.responses import RedirectResponse, Response

from gpuplan.api.http.plans import OurGpuplan
from gpuplan.api.services.accelerator_fit import job_fits
from gpuplan.api.services.accelerator_prices import priced_accelerators
from gpuplan.api.services.accelerator_sellers import sellers
from gpuplan.api.web.page_rendering import PageRoute, render
from gpuplan.catalog.model.accelerators import accelerators, find_accelerator
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.store.snapshot_list import NotStored

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@router.get("/catalogue/accelerators")
def accelerator_table(request: Request, gpuplan: OurGpuplan) -> Response:
    """Show all accelerators with memory, peak, bandwidth and lowest price."""
    order = request.query_params.get("order", "name")
    columns = gpuplan.context.columns()
    context = {
        "section": "Catalogue",
        "rows": priced_accelerators(columns, order=order),
        "order": order,
        "snapshot_id": columns.snapshot_id,
        "observed_at": columns.observed_at.isoformat(),
    }
    return render(request, "accelerators.html", context)


@router.get("/accelerators/{name}")
def accelerator_page(request: Request, name: Annotated[str, Path(max_length=200)], gpuplan: OurGpuplan) -> Response:
    """Show what one accelerator is, who sells it and from how much, and how usual jobs fit on it."""
    if name not in accelerators():
        try:
            known = find_accelerator(name, path=("accelerator",)).name
        except UnusableInput as error:
            raise NotStored.at("accelerator", message=error.faults[0].message) from error
        return RedirectResponse(f"/accelerators/{quote(known, safe='')}", status_code=307)
    columns = gpuplan.context.columns()
    [priced] = [row for row in priced_accelerators(columns) if row.accelerator.name == name]
    context = {
        "section": "Catalogue",
        "card": priced.accelerator,
        "priced": priced,
        "sellers": sellers(columns, name),
        "fits": job_fits(gpuplan.planner, name, priced.steady.usd_per_hour if priced.steady else None),
        "snapshot_id": columns.snapshot_id,
        "observed_at": columns.observed_at.isoformat(),
    }
    return render(request, "accelerator.html", context)
