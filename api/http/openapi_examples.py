"""Examples in the OpenAPI document for operations without a body: the ids in their paths, and the form of an answer."""

from pydantic import JsonValue

from gpuplan.catalog.parsing.json_object import JsonObject

#: Values of path parameters by name, in the format of the ids that the service creates.
NAMES = {
    "plan_id": "plan-751d7a5c37e52c2c94da",
    "portfolio_id": "portfolio-20261121T080000-920d4b84e66e",
    "decision_id": "buy-751d7a5c37e52c2c94da",
    "run_id": "portfolio-20261121T080000-920d4b84e66e",
    "actual_id": "run-a0f01201eacf253b",
    "watch_id": "watch-a0f01201eacf253b",
    "refresh_id": "refresh-20261121T020000-41328e248343",
    "key_id": "0a1b2c3d4e5f",
    "share_id": "0f1e2d3c4b5a",
    "snapshot_id": "c7d92d374907695d66b10ab6c0a42b43",
    "format": "slurm",
}


def describe_examples(document: JsonObject) -> None:
    """Add the ids, and to operations that take neither a body nor an id the form of their answer, by its schema."""
    schemas = document["components"]["schemas"]
    for operations in document["paths"].values():
        for operation in operations.values():
            ids = [parameter for parameter in operation.get("parameters", ()) if parameter["in"] == "path"]
            for parameter in ids:
                parameter["example"] = NAMES[parameter["name"]]
            if not ids and "requestBody" not in operation:
                for content in operation["responses"]["200"]["content"].values():
                    content["example"] = _form(content["schema"], schemas)


def _form(schema: JsonObject, schemas: JsonObject) -> JsonValue:
    """A value of a schema: its own example, else the first choice, and every property of an object."""
    if "$ref" in schema:
        return _form(schemas[schema["$ref"].rpartition("/")[2]], schemas)
    for chosen in ("examples", "enum", "anyOf", "oneOf"):
        if chosen in schema:
            first = schema[chosen][0]
            return _form(first, schemas) if chosen.endswith("Of") else first
    if "const" in schema:
        constant: JsonValue = schema["const"]
        return constant
    match schema.get("type"):
        case "object":
            return {name: _form(part, schemas) for name, part in schema.get("properties", {}).items()}
        case "array":
            return [_form(part, schemas) for part in schema.get("prefixItems", [schema.get("items", {})])]
        case "string":
            return "text"
        case "boolean":
            return True
        case "integer" | "number":
            return 1
    return None
