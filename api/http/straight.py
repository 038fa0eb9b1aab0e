"""Routes on which there is nothing for FastAPI to find out where a request has no query.

It takes FastAPI a quarter of the time that the service takes around a plan to call one dependency and to fill in the
defaults of a query that is not there.
"""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request
from fastapi.responses import Response
from fastapi.routing import APIRoute

from api.http.access import guard
from api.http.queries import refuse_idle_parameters


async def enter(request: Request) -> None:
    """What is asked of every request; in one, since FastAPI takes longer to call a dependency than these take."""
    await guard(request)
    await refuse_idle_parameters(request)


class StraightRoute(APIRoute):
    """A route whose endpoint is a coroutine and takes the request and otherwise only what a query says, with defaults.

    Asked without a query it asks what the service asks of every request, and calls the endpoint. Raises `TypeError` for
    a route with a path parameter or a dependency of its own, which would not be asked for.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """As any route."""
        super().__init__(*args, **kwargs)
        known = self.dependant
        if known.path_params or known.header_params or known.cookie_params or known.body_params or known.dependencies:
            raise TypeError(f"{self.path} takes more than its query; make it an ordinary route")

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The endpoint where there is no query, else what FastAPI makes of it."""
        found_out = super().get_route_handler()

        async def answered(request: Request) -> Response:
            if request.scope["query_string"]:
                return await found_out(request)
            await enter(request)
            answer: Response = await self.endpoint(request)
            return answer

        return answered
