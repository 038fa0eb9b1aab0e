"""Parameters of a query that would count for nothing: given twice, or known to nobody."""

from fastapi import Request
from fastapi.dependencies.utils import get_flat_params
from fastapi.params import Cookie, Header, Path

from api.http.problems import unusable
from catalog.errors import Fault, UnusableInput

#: Addresses of the programming interface; pages are also reached by links to which others add words of their own.
_INTERFACE = "/v1/"
_SHOWN = 80


async def refuse_idle_parameters(request: Request) -> None:
    """Raises `Refused` (422) for a parameter given twice and, on the programming interface, for one that is unknown.

    It waits for nothing, yet is a coroutine: FastAPI sends plain functions through a thread, twice a request's own cost.
    """
    if not request.scope["query_string"]:
        return
    names = [name for name, _ in request.query_params.multi_items()]
    faults = [
        Fault((name[:_SHOWN],), "is given more than once; give it once")
        for name in sorted(set(names))
        if names.count(name) > 1
    ]
    if request.scope["path"].startswith(_INTERFACE):
        known = _known(request)
        accepted = f"accepted: {', '.join(known)}" if known else "nothing is accepted there"
        faults += [Fault((name[:_SHOWN],), f"unknown parameter; {accepted}") for name in sorted({*names} - {*known})]
    if faults:
        raise unusable(UnusableInput(*faults), within="query")


def _known(request: Request) -> list[str]:
    """The names of the parameters that a route's query may have, in alphabetical order."""
    fields = get_flat_params(request.scope["route"].dependant)
    return sorted(field.alias for field in fields if not isinstance(field.field_info, (Path, Header, Cookie)))
