"""The HTTP service: routes, problems and the edge put together around one `Services`."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio.to_thread
from fastapi import Depends, FastAPI, Request

from gpuplan.api.http import (
    actuals,
    api_keys,
    catalogue,
    costs,
    docs_page,
    exports,
    health,
    openapi,
    operations,
    plans,
    portfolios,
    prices,
    problem_details,
    procurement,
    refreshes,
    runs,
    shares,
    watches,
)
from gpuplan.api.http.authentication import OPEN_TO_ALL, Access, guard
from gpuplan.api.http.extra_headers import ExtraHeaders
from gpuplan.api.http.middleware import OnlyHosts, RequestMiddleware
from gpuplan.api.http.query_parameters import refuse_idle_parameters
from gpuplan.api.http.request_limits import quota_exceeded
from gpuplan.api.http.thread_workers import Workers, long_workers
from gpuplan.api.jobs.planning_processes.question_limits import budget
from gpuplan.api.jobs.pool_choice import pool_for
from gpuplan.api.observability.readiness import Health
from gpuplan.api.observability.store_metrics import StoreFigures
from gpuplan.api.observability.telemetry_settings import telemetry_settings
from gpuplan.api.observability.version import gpuplan_version
from gpuplan.api.services.composition import Services
from gpuplan.api.web import not_found
from gpuplan.api.web.router import router as web_router
from gpuplan.catalog.store.access_store import QuotaExceeded

if TYPE_CHECKING:
    from gpuplan.api.slack.slack_settings import SlackSettings

DESCRIPTION = "The provably cheapest way to run a training job on hardware you own or rent."


#: Routes are matched in this order.
_ROUTERS = (
    plans.router,
    operations.router,
    exports.router,
    portfolios.router,
    procurement.router,
    runs.router,
    actuals.router,
    costs.router,
    watches.router,
    catalogue.router,
    prices.router,
    refreshes.router,
    api_keys.router,
    shares.router,
    health.router,
    docs_page.router,
    web_router,
)


def create_service(
    gpuplan: Services,
    *,
    hosts: frozenset[str] | None = None,
    access: Access = OPEN_TO_ALL,
    slack: "SlackSettings | None" = None,
) -> FastAPI:
    """The service around this `gpuplan`, for those whom `access` admits; by default everybody who can reach it.

    With `hosts`, it only accepts requests for one of these host names. With `slack`, it also serves the Slack app.
    """
    # FastAPI's documentation pages load scripts from other sites; our `/docs` loads nothing.
    app = FastAPI(
        title="gpuplan",
        version=gpuplan_version(),
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        # A redirect would name the scheme that this process sees, and so send a key over plain HTTP behind a proxy.
        redirect_slashes=False,
        # Served by a route of ours, which requires a scope like any other.
        openapi_url=None,
        # An operation has the name of its function.
        generate_unique_id_function=lambda route: route.name,
        dependencies=[Depends(_check_request)],
        # Requests are counted and traced here, at the edge; FastAPI would look for a second way at each.
        telemetry={"tracing": False, "metrics": False, "logs": False},
        lifespan=_lifespan,
    )
    _keep_state(app, gpuplan, access)
    for router in _ROUTERS:
        app.include_router(router)
    if slack is not None:
        from gpuplan.api.slack.request_verification import mount

        mount(app, gpuplan, app.state.workers, slack)
    problem_details.register(app)
    not_found.register(app)
    app.add_exception_handler(QuotaExceeded, quota_exceeded)
    openapi.attach(app)
    if hosts is not None:
        app.add_middleware(OnlyHosts, hosts=hosts)
    app.add_middleware(ExtraHeaders)
    # Added last and therefore outermost: every response gets a request id.
    app.add_middleware(RequestMiddleware, stopping=lambda: app.state.health.stopping)
    return app


def _keep_state(app: FastAPI, gpuplan: Services, access: Access) -> None:
    """What all requests share: services, access, workers and health."""
    app.state.gpuplan = gpuplan
    app.state.access = access
    app.state.scopes = None
    given = budget()
    # The threads wait for planning processes; one of these is for requests that take seconds.
    app.state.workers = Workers(at_once=given.processes - 1, most_seconds=given.seconds)
    app.state.long_workers = long_workers(most_seconds=given.seconds)
    app.state.pool = pool_for(gpuplan)
    app.state.figures = StoreFigures(gpuplan)
    limit = telemetry_settings().stale_after_hours
    app.state.health = Health(gpuplan, app.state.figures, stale_after_hours=limit)
    app.state.watching = None


async def _check_request(request: Request) -> None:
    """Check the requester and the query parameters of every request, in one dependency because each has a cost."""
    await guard(request)
    await refuse_idle_parameters(request)


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """On shutdown, runs store the best plan found so far."""
    yield
    await anyio.to_thread.run_sync(app.state.pool.stop)
    if app.state.watching is not None:
        await anyio.to_thread.run_sync(app.state.watching.end)
