"""A route that is answered past FastAPI where there is no query asks the same of a request, and takes nothing unseen."""

from typing import Annotated

import httpx
import pytest
from fastapi import APIRouter, Depends, Header, Request
from fastapi.responses import Response

from api.http.access import needs
from api.http.straight import StraightRoute


async def by_request(request: Request) -> Response:
    """An endpoint that takes only the request."""
    return Response(request.method)


async def by_header(request: Request, accept: Annotated[str, Header()] = "") -> Response:
    """An endpoint that takes something besides the request and its query."""
    return Response(accept)


async def by_path(request: Request, name: str) -> Response:
    """An endpoint that takes a part of its path."""
    return Response(name)


def test_a_route_that_takes_more_than_its_query_is_refused_where_it_is_declared() -> None:
    router = APIRouter(route_class=StraightRoute)
    router.add_api_route("/v1/plain", by_request)
    with pytest.raises(TypeError, match="/v1/header takes more than its query"):
        router.add_api_route("/v1/header", by_header)
    with pytest.raises(TypeError, match="takes more than its query"):
        router.add_api_route("/v1/things/{name}", by_path)
    with pytest.raises(TypeError, match="takes more than its query"):
        router.add_api_route("/v1/guarded", by_request, dependencies=[Depends(needs("admin"))])


def test_a_plan_asked_for_with_a_query_is_the_plan_asked_for_without(
    client: httpx.Client, job: dict[str, object]
) -> None:
    plain = client.post("/v1/plans", json=job).json()
    by_query = client.post("/v1/plans", params={"frontier": "false"}, json=job).json()
    assert by_query["plan"]["phases"] == plain["plan"]["phases"]
