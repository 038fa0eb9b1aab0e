"""The scope that each route needs, in one table. A route outside the table needs `admin`.

Rows are route paths, or path prefixes ending in `/*`; the longest match applies.
"""

from functools import cache
from typing import Final, Literal

from gpuplan.api.security.identity import Scope

OPEN: Final = "open"
Needed = Scope | Literal["open"]

#: GET (and HEAD) of these paths.
READING: dict[str, Needed] = {
    "/healthz": OPEN,
    "/readyz": OPEN,
    "/login": OPEN,
    "/static/*": OPEN,
    # Slack signs its requests, and an installation ends at an address that carries a state.
    "/slack/*": OPEN,
    "/v1/keys": "admin",
    "/v1/audit": "admin",
    "/v1/*": "read",
    "/openapi.json": "read",
    "/metrics": "read",
    "/docs": "read",
    "/": "read",
    "/compare": "read",
    "/plans": "read",
    "/plans/*": "read",
    "/catalogue": "read",
    "/catalogue.csv": "read",
    "/catalogue/*": "read",
    "/accelerators/*": "read",
    "/prices": "read",
    "/prices.csv": "read",
    "/changes": "read",
    "/costs": "read",
    "/costs.csv": "read",
    "/costs.focus.csv": "read",
    "/portfolio": "read",
    "/portfolios/*": "read",
    "/shares": "plan",
    "/shared/*": "read",
}

#: Operations that change something or start work.
DOING: dict[tuple[str, str], Needed] = {
    ("POST", "/login"): OPEN,
    ("POST", "/logout"): OPEN,
    ("POST", "/slack/*"): OPEN,
    ("POST", "/plans"): "plan",
    ("POST", "/plans/*"): "plan",
    ("POST", "/v1/plans"): "plan",
    ("POST", "/v1/plans/{plan_id}/actuals"): "plan",
    ("DELETE", "/v1/actuals"): "plan",
    ("DELETE", "/v1/actuals/{actual_id}"): "plan",
    ("PUT", "/v1/costs/budgets"): "admin",
    ("PUT", "/v1/costs/plans/{plan_id}"): "plan",
    ("DELETE", "/v1/costs/plans/{plan_id}"): "plan",
    ("POST", "/costs/plans"): "plan",
    ("POST", "/costs/plans/drop"): "plan",
    ("POST", "/costs/budgets"): "admin",
    ("POST", "/v1/estimates"): "plan",
    ("POST", "/v1/import"): "plan",
    ("POST", "/v1/afford"): "plan",
    ("POST", "/v1/capacity"): "plan",
    ("POST", "/v1/capacity/reports"): "plan",
    ("POST", "/v1/why"): "plan",
    ("POST", "/v1/replan"): "plan",
    ("POST", "/v1/verify"): "plan",
    ("POST", "/v1/portfolios"): "plan",
    ("POST", "/v1/buy"): "plan",
    ("POST", "/v1/run-policies"): "plan",
    ("POST", "/v1/simulations"): "plan",
    ("POST", "/v1/ladder-simulations"): "plan",
    ("DELETE", "/v1/runs/{run_id}"): "plan",
    ("POST", "/v1/watches"): "plan",
    ("DELETE", "/v1/watches/{watch_id}"): "plan",
    ("POST", "/v1/shares"): "plan",
    ("POST", "/v1/shares/open"): "read",
    ("DELETE", "/v1/shares/{share_id}"): "plan",
    ("POST", "/shares"): "plan",
    ("POST", "/shares/*"): "plan",
    ("POST", "/v1/refreshes"): "refresh",
    ("POST", "/v1/keys"): "admin",
    ("DELETE", "/v1/keys/{key_id}"): "admin",
    ("POST", "/v1/keys/{key_id}/rotate"): "admin",
}


@cache
def scope_in_table(method: str, path: str) -> Needed | None:
    """The scope of a route in the table; None if the table does not have it."""
    if method in {"GET", "HEAD"}:
        return _longest(READING, path)
    return _longest({at: needed for (verb, at), needed in DOING.items() if verb == method}, path)


def _longest(rows: dict[str, Needed], path: str) -> Needed | None:
    if path in rows:
        return rows[path]
    fitting = [row for row in rows if row.endswith("/*") and path.startswith(row[:-1])]
    return rows[max(fitting, key=len)] if fitting else None
