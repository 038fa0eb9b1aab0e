"""The HTTP service: routes, problems and the edge put together around one `Gpuplan`."""

from fastapi import FastAPI

from api.app import Gpuplan
from api.http import catalogue, docs_page, health, openapi, plans, problems
from api.http.edge import Edge
from api.http.workers import Workers
from api.version import gpuplan_version

DESCRIPTION = "The provably cheapest way to run a training job on hardware you own or rent."


def create_service(gpuplan: Gpuplan) -> FastAPI:
    """The service, answering from this `gpuplan`."""
    # FastAPI's own documentation pages load scripts from elsewhere; `/docs` here needs nothing.
    app = FastAPI(title="gpuplan", version=gpuplan_version(), description=DESCRIPTION, docs_url=None, redoc_url=None)
    app.state.gpuplan = gpuplan
    app.state.workers = Workers()
    for router in (plans.router, catalogue.router, health.router, docs_page.router):
        app.include_router(router)
    problems.register(app)
    openapi.attach(app)
    app.add_middleware(Edge)
    return app
