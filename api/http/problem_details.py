"""Error responses as RFC 9457 `application/problem+json`, with a pointer for each invalid field."""

import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from gpuplan.api.http.allowed_methods import methods_at
from gpuplan.api.schemas.problem import FieldProblem, Problem
from gpuplan.catalog.runtime.errors import Fault, StoreFailure, UnusableInput
from gpuplan.catalog.store.ownership import NotOwned
from gpuplan.catalog.store.snapshot_list import NotStored
from gpuplan.planner.model.wire import wire

PROBLEM_JSON = "application/problem+json"
#: A locked or restarting database is usually available within seconds; earlier retries only add load.
RETRY_AFTER_SECONDS = 5


class Refused(Exception):
    """An error response: the `status`, the reason in `detail`, and the `faults` by field.

    `within` says where the pointers apply: the request's body (the default) or its query.
    """

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        faults: Sequence[Fault] = (),
        within: str = "body",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """An error with this status."""
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.faults = faults
        self.within = within
        self.headers = dict(headers or {})


def problem(refused: Refused, request_id: str = "") -> Response:
    """The problem response of an error; `errors` holds `{pointer, detail}` per field, with pointers as in RFC 6901."""
    content = Problem(
        type="about:blank",
        title=HTTPStatus(refused.status).phrase,
        status=refused.status,
        detail=refused.detail,
        request_id=request_id or None,
        errors=tuple(
            FieldProblem(pointer=fault.pointer, in_=refused.within, detail=fault.message) for fault in refused.faults
        )
        or None,
    )
    body = json.dumps(wire(content), ensure_ascii=False).encode("utf-8", "replace")
    return Response(body, status_code=refused.status, headers=refused.headers, media_type=PROBLEM_JSON)


def unusable(error: UnusableInput, *, status: int = 422, within: str = "body") -> Refused:
    """Turn unusable input into an error response: the first fault in the detail, all of them by field."""
    remainder = f" (and {len(error.faults) - 1} more)" if len(error.faults) > 1 else ""
    return Refused(status, f"{error.faults[0]}{remainder}", faults=error.faults, within=within)


def register(app: FastAPI) -> None:
    """Map the exceptions of gpuplan to problem responses."""
    app.add_exception_handler(Refused, _refused)
    app.add_exception_handler(UnusableInput, _unusable)
    app.add_exception_handler(StoreFailure, _store_failed)
    app.add_exception_handler(RequestValidationError, _invalid_parameters)
    app.add_exception_handler(HTTPException, _http)


def _answer(request: Request, refused: Refused) -> Response:
    return problem(refused, request.scope.get("request_id", ""))


async def _refused(request: Request, error: Exception) -> Response:
    return _answer(request, _as(Refused, error))


async def _unusable(request: Request, error: Exception) -> Response:
    """An unknown stored object is 404, one that belongs to another owner 403; other pointers name fields of the body,
    if any.
    """
    raised = _as(UnusableInput, error)
    if isinstance(raised, NotStored):
        return _answer(request, unusable(raised, status=404, within=_named_in(request, raised)))
    if isinstance(raised, NotOwned):
        return _answer(request, unusable(raised, status=403, within=_named_in(request, raised)))
    return _answer(request, unusable(raised, status=422, within=_place_of(request, raised)))


def _named_in(request: Request, error: UnusableInput) -> str:
    """Where the request named an object: in the path, in the body, or in the query, as for snapshots."""
    if request.path_params:
        return "path"
    return "body" if request.method == "POST" and error.faults[0].path[:1] != ("snapshot",) else "query"


def _place_of(request: Request, error: UnusableInput) -> str:
    """Where the first invalid field is: in the query if the request has no body, in the path, or in the body."""
    if request.method == "GET":
        return "query"
    first = error.faults[0].path
    return "path" if len(first) == 1 and f"{first[0]}_id" in request.path_params else "body"


async def _store_failed(request: Request, error: Exception) -> Response:
    headers = {"Retry-After": str(RETRY_AFTER_SECONDS)}
    return _answer(request, Refused(503, str(_as(StoreFailure, error)), headers=headers))


async def _invalid_parameters(request: Request, error: Exception) -> Response:
    """FastAPI's checks of query and path, as the same problem response as all others."""
    faults, within = [], "query"
    for failure in _as(RequestValidationError, error).errors():
        within, *path = failure["loc"]
        faults.append(Fault(tuple(path), str(failure["msg"])))
    return _answer(request, unusable(UnusableInput(*faults), within=within))


async def _http(request: Request, error: Exception) -> Response:
    """Unknown path or method, with what is accepted."""
    raised = _as(HTTPException, error)
    detail, headers = str(raised.detail), dict(raised.headers or {})
    shown = repr(request.url.path[:80])
    if raised.status_code == 405 and (methods := methods_at(request.app, request.scope["path"])):
        headers["Allow"] = ", ".join(methods)
        detail = f"{request.method} is not accepted at {shown}; accepted: {headers['Allow']}"
    elif raised.status_code == 404 and detail == HTTPStatus.NOT_FOUND.phrase:
        near = "remove the slash at its end" if request.url.path.endswith("/") else "/docs lists all operations"
        detail = f"there is no operation at {shown}; {near}"
    return _answer(request, Refused(raised.status_code, detail, headers=headers))


def _as[Error: Exception](kind: type[Error], error: Exception) -> Error:
    """The exception as the type for which its handler was registered."""
    if not isinstance(error, kind):
        raise error
    return error
