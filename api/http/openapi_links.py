"""Links in the OpenAPI document: from the id in a response to the operations that have it in their path."""

from collections.abc import Mapping

from gpuplan.catalog.parsing.json_object import JsonObject

#: Where an id comes from, by the parameter of a path: the operation, the status of its response, and the id in the body.
#: Without `portfolio_id`, which exists only after its run is done.
SOURCES: Mapping[str, tuple[str, str, str]] = {
    "plan_id": ("plan", "200", "/plan/id"),
    "decision_id": ("buy", "200", "/decision/id"),
    "run_id": ("portfolio", "202", "/id"),
    "actual_id": ("report_actuals", "200", "/id"),
    "watch_id": ("add_watch", "200", "/id"),
    "refresh_id": ("start_refresh", "202", "/id"),
    "key_id": ("make_key", "201", "/id"),
    "share_id": ("share", "201", "/id"),
}


def describe_links(document: JsonObject) -> None:
    """Add the links to the document."""
    operations = [operation for methods in document["paths"].values() for operation in methods.values()]
    by_id = {operation["operationId"]: operation for operation in operations}
    for target, operation in by_id.items():
        for name in {parameter["name"] for parameter in operation.get("parameters", ())} & SOURCES.keys():
            source, status, pointer = SOURCES[name]
            links = by_id[source]["responses"][status].setdefault("links", {})
            links[target] = {"operationId": target, "parameters": {name: f"$response.body#{pointer}"}}
