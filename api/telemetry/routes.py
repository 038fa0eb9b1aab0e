"""Which route answered a request, as a template: one of a known few, whatever path was asked for."""

from starlette.types import Scope

#: For what no route of the service took: a scan of paths is one figure.
UNMATCHED = "unmatched"


def route_of(scope: Scope) -> str:
    """`/v1/plans/{plan_id}`, say; for a mounted application where it is mounted."""
    path = getattr(scope.get("route"), "path", None)
    if path is None:
        return UNMATCHED
    return str(path)
