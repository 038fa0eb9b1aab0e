"""Route templates for metrics and traces: one of a few known values, whatever the requested path."""

from starlette.types import Scope

#: For paths without a route: a scan of paths becomes one series.
UNMATCHED = "unmatched"


def route_of(scope: Scope) -> str:
    """For example `/v1/plans/{plan_id}`; for a mounted application its mount path."""
    path = getattr(scope.get("route"), "path", None)
    if path is None:
        return UNMATCHED
    return str(path)
