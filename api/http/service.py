"""The HTTP service: routes, problems and the edge put together around one `Gpuplan`."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio.to_thread
from fastapi import Depends, FastAPI

from api.app import Gpuplan
from api.http import (
    actuals,
    buy,
    catalogue,
    docs_page,
    explain,
    exports,
    health,
    keys,
    openapi,
    plans,
    portfolios,
    prices,
    problems,
    refreshes,
    runs,
    shares,
    spot,
    watches,
)
from api.http.access import OPEN_TO_ALL, Access
from api.http.edge import Edge, OnlyHosts
from api.http.extra_headers import ExtraHeaders
from api.http.rates import quota_exceeded
from api.http.straight import enter
from api.http.workers import Workers, long_workers
from api.planning_processes.budget import budget
from api.runs.chosen import pool_for
from api.telemetry.health import Health
from api.telemetry.settings import telemetry_settings
from api.telemetry.store_figures import StoreFigures
from api.version import gpuplan_version
from api.web import strays
from api.web.router import router as web_router
from catalog.quota_use import QuotaExceeded

if TYPE_CHECKING:
    from api.slack.settings import SlackSettings

DESCRIPTION = "The provably cheapest way to run a training job on hardware you own or rent."


def create_service(
    gpuplan: Gpuplan,
    *,
    hosts: frozenset[str] | None = None,
    access: Access = OPEN_TO_ALL,
    slack: "SlackSettings | None" = None,
) -> FastAPI:
    """The service, answering from this `gpuplan`, to those whom `access` lets in: everybody who reaches it, unless told.

    With `hosts`, only to those who call it by one of these names. With `slack`, it takes part in Slack too.
    """
    # FastAPI's own documentation pages load scripts from elsewhere; `/docs` here needs nothing.
    app = FastAPI(
        title="gpuplan",
        version=gpuplan_version(),
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        # A redirect would name the scheme that this process hears, and send a key over plain HTTP behind a proxy.
        redirect_slashes=False,
        # Given by a route of ours, which needs a scope like any other.
        openapi_url=None,
        dependencies=[Depends(enter)],
        # Requests are counted and traced here, at the edge; FastAPI would look for a second way at each.
        telemetry={"tracing": False, "metrics": False, "logs": False},
        lifespan=_lifespan,
    )
    app.state.gpuplan = gpuplan
    app.state.access = access
    app.state.scopes = None
    given = budget()
    # The threads wait for processes, of which questions that take seconds have one.
    app.state.workers = Workers(at_once=given.processes - 1, most_seconds=given.seconds)
    app.state.long_workers = long_workers(most_seconds=given.seconds)
    app.state.pool = pool_for(gpuplan)
    app.state.figures = StoreFigures(gpuplan)
    limit = telemetry_settings().stale_after_hours
    app.state.health = Health(gpuplan, app.state.figures, stale_after_hours=limit)
    app.state.watching = None
    for router in (
        plans.straight,
        plans.router,
        exports.router,
        explain.router,
        portfolios.router,
        buy.router,
        spot.router,
        runs.router,
        actuals.router,
        watches.router,
        catalogue.router,
        prices.router,
        refreshes.router,
        keys.router,
        shares.router,
        health.router,
        docs_page.router,
        web_router,
    ):
        app.include_router(router)
    if slack is not None:
        from api.slack.door import mount

        mount(app, gpuplan, app.state.workers, slack)
    problems.register(app)
    strays.register(app)
    app.add_exception_handler(QuotaExceeded, quota_exceeded)
    openapi.attach(app)
    if hosts is not None:
        app.add_middleware(OnlyHosts, hosts=hosts)
    app.add_middleware(ExtraHeaders)
    # Added last and so outermost: whatever happens inside gets a request id.
    app.add_middleware(Edge, stopping=lambda: app.state.health.stopping)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """A service that stops lets its runs write the best that they found."""
    yield
    await anyio.to_thread.run_sync(app.state.pool.stop)
    if app.state.watching is not None:
        await anyio.to_thread.run_sync(app.state.watching.end)
