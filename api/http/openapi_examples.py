"""Examples in the OpenAPI document: the form of an answer for operations that take neither a body nor an id."""

from pydantic import JsonValue

from gpuplan.catalog.parsing.json_object import JsonObject


def describe_examples(document: JsonObject) -> None:
    """Add to operations without a body and without an id in their path the form of their answer, by its schema."""
    schemas = document["components"]["schemas"]
    for operations in document["paths"].values():
        for operation in operations.values():
            has_id = any(parameter["in"] == "path" for parameter in operation.get("parameters", ()))
            if not has_id and "requestBody" not in operation:
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
