"""What the models of a job file accept, as the columns of a table: field, takes, default."""

from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

#: How many words of a list a cell names before it says that there are more.
MOST_WORDS = 18


def rows(model: type[BaseModel]) -> dict[str, tuple[str, str]]:
    """field -> (takes, default), in the model's order."""
    described = model.model_json_schema(by_alias=True)
    properties: dict[str, dict[str, Any]] = described["properties"]
    found = {}
    for name, field in model.model_fields.items():
        shown = field.alias or name
        found[shown] = (_takes(properties[shown], described.get("$defs", {})), _default(field.default, field))
    return found


def _default(value: object, field: Any) -> str:
    if value is PydanticUndefined:
        return "*required*" if field.default_factory is None else "see below"
    if value is None or value == ():
        return "none"
    if isinstance(value, tuple):
        return ", ".join(f"`{each}`" for each in value)
    return f"`{str(value).lower() if isinstance(value, bool) else value:}`"


def _takes(schema: dict[str, Any], named: dict[str, Any]) -> str:
    plain = [each for each in schema.get("anyOf", [schema]) if each.get("type") != "null"]
    whole = [each for each in plain if each.get("type") == "integer"]
    described = next((each["description"] for each in (schema, *plain) if each.get("description")), "")
    if whole and "minimum" in whole[0]:
        return f"whole number, {whole[0]['minimum']} to {whole[0]['maximum']}"
    if len(plain) == 2 and plain[1].get("items") == plain[0]:
        return f"list of {_takes(plain[0], named)}; or one"
    one = plain[0] if len(plain) == 1 else {}
    if "anyOf" in one:
        return _takes(one | ({"description": described} if described else {}), named)
    if "const" in one:
        return f"`{one['const']}`"
    if "enum" in one:
        words = [f"`{each}`" for each in one["enum"]]
        return ", ".join(words[:MOST_WORDS]) + (", ..." if len(words) > MOST_WORDS else "")
    if one.get("type") == "array":
        inner = _takes(one.get("items", {}), named)
        return f"list of {inner}" if inner else "list"
    if one.get("type") == "boolean":
        return "true or false"
    if "$ref" in one or "discriminator" in one or "oneOf" in one:
        return "a mapping, see below"
    if one.get("format") == "date-time":
        return "ISO 8601 time with its zone"
    if one.get("type") == "string":
        return described or "text"
    return described or "a quantity"
