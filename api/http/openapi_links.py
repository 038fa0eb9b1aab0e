"""Links in the OpenAPI document: the id in a response, and the operations that accept it."""

from gpuplan.api.http.openapi_bodies import Schema
from gpuplan.catalog.parsing.json_object import JsonObject

#: By operation: the status of its response, the runtime expression of the id it returns, and the operations that accept
#: this id with the parameter they accept it in.
_OF_A_PLAN = ("saved_plan", "export", "report_actuals", "adopt_plan", "drop_plan")
_PLAN = ("$response.body#/plan/id", dict.fromkeys(_OF_A_PLAN, "plan_id"))
_WATCH = ("$response.body#/id", {"watch": "watch_id", "forget_watch": "watch_id"})
#: Without `saved_portfolio`: it exists only after the run is done.
_RUN = ("$response.body#/id", {"run": "run_id", "cancel_run": "run_id"})
_KEY = ("$response.body#/id", {"rotate_key": "key_id", "revoke_key": "key_id"})
LINKS: dict[str, tuple[str, tuple[str, dict[str, str]]]] = {
    "plan": ("200", _PLAN),
    "buy": ("200", ("$response.body#/decision/id", {"saved_decision": "decision_id"})),
    "portfolio": ("202", _RUN),
    "report_actuals": ("200", ("$response.body#/id", {"forget_actual": "actual_id"})),
    "add_watch": ("200", _WATCH),
    "start_refresh": ("202", ("$response.body#/id", {"refresh": "refresh_id"})),
    "make_key": ("201", _KEY),
    "share": ("201", ("$response.body#/id", {"revoke_share": "share_id"})),
}


def describe_links(document: JsonObject) -> None:
    """Add the links to the document."""
    for operations in document["paths"].values():
        for operation in operations.values():
            if (link := LINKS.get(operation["operationId"])) is not None:
                status, (name, asked) = link
                operation["responses"][status]["links"] = _links(name, asked)


def _links(name: str, asked: dict[str, str]) -> Schema:
    return {target: {"operationId": target, "parameters": {parameter: name}} for target, parameter in asked.items()}
