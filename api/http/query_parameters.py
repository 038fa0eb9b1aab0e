"""Refusal of query parameters that would have no effect: repeated or unknown ones."""

from typing import get_origin

from fastapi import Request
from fastapi.dependencies.utils import get_flat_params
from fastapi.params import Cookie, Header, Path

from gpuplan.api.http.problem_details import unusable
from gpuplan.catalog.runtime.errors import Fault, UnusableInput

#: The paths of the API. Pages are also opened through links to which others add parameters.
_INTERFACE = "/v1/"
_SHOWN = 80


async def refuse_idle_parameters(request: Request) -> None:
    """Raises `Refused` (422) for a repeated parameter and, within the API, for an unknown one.

    It is a coroutine because FastAPI runs plain functions in a thread, which costs as much as the rest of the request.
    """
    if not request.scope["query_string"]:
        return
    names = [name for name, _ in request.query_params.multi_items()]
    faults = [
        Fault((name[:_SHOWN],), "is given more than once; give it once")
        for name in sorted(set(names))
        if names.count(name) > 1 and name not in _lists(request)
    ]
    if request.scope["path"].startswith(_INTERFACE):
        known = _known(request)
        accepted = f"accepted: {', '.join(known)}" if known else "this operation accepts no parameters"
        faults += [Fault((name[:_SHOWN],), f"unknown parameter; {accepted}") for name in sorted({*names} - {*known})]
    if faults:
        raise unusable(UnusableInput(*faults), within="query")


def _known(request: Request) -> list[str]:
    """The names of the query parameters that a route accepts, in alphabetical order."""
    return sorted(name for name, _ in _parameters(request))


def _lists(request: Request) -> set[str]:
    """The names of the query parameters that may be given several times."""
    return {name for name, kind in _parameters(request) if get_origin(kind) is list}


def _parameters(request: Request) -> list[tuple[str, object]]:
    """Name and type of each query parameter that a route accepts."""
    fields = get_flat_params(request.scope["route"].dependant)
    return [
        (field.alias, field.field_info.annotation)
        for field in fields
        if not isinstance(field.field_info, (Path, Header, Cookie))
    ]
