"""Tables of the fields of a job file: what each takes, its default and its meaning, from the job's declarations."""

import re
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from gpuplan.api.schemas.constraints import ConstraintsDocument
from gpuplan.api.schemas.job import DataDocument, JobDocument, TrainingDocument
from gpuplan.api.schemas.workload import (
    ExplicitDocument,
    MeasuredDocument,
    PresetDocument,
    ProfileDocument,
    TransformerDocument,
)

DOCUMENTS = (
    JobDocument,
    PresetDocument,
    TransformerDocument,
    ExplicitDocument,
    ProfileDocument,
    MeasuredDocument,
    TrainingDocument,
    ConstraintsDocument,
    DataDocument,
)

#: How many words of a list a cell names before it says that there are more.
MOST_WORDS = 18


def with_tables(markdown: str) -> str:
    """A page with the table of a document's fields below each marker that names one."""
    documents = {document.__name__: document for document in DOCUMENTS}

    def table(marker: re.Match[str]) -> str:
        document = documents.get(marker[1])
        if document is None:
            return marker[0]
        lines = ["| field | takes | default | meaning |", "|---|---|---|---|"]
        for name, (takes, default) in rows(document).items():
            meaning = document.about[name].help if name in document.about else "this kind"
            lines.append(f"| `{name}` | {takes} | {default} | {meaning} |")
        return "\n".join((marker[0], *lines))

    return re.sub(r"<!-- fields of (\w+) -->", table, markdown)


def rows(model: type[BaseModel]) -> dict[str, tuple[str, str]]:
    """field -> (takes, default), in the model's order."""
    described = model.model_json_schema(by_alias=True)
    properties: dict[str, dict[str, Any]] = described["properties"]
    columns = {}
    for name, field in model.model_fields.items():
        shown = field.alias or name
        columns[shown] = (_takes(properties[shown], described.get("$defs", {})), _default(field.default, field))
    return columns


def _default(value: object, field: Any) -> str:
    if value is PydanticUndefined:
        return "*required*" if field.default_factory is None else "see below"
    if value is None or value == ():
        return "none"
    if isinstance(value, tuple):
        return ", ".join(f"`{part}`" for part in value)
    return f"`{str(value).lower() if isinstance(value, bool) else value:}`"


def _takes(schema: dict[str, Any], named: dict[str, Any]) -> str:
    plain = [part for part in schema.get("anyOf", [schema]) if part.get("type") != "null"]
    whole = [part for part in plain if part.get("type") == "integer"]
    described = next((part["description"] for part in (schema, *plain) if part.get("description")), "")
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
        words = [f"`{part}`" for part in one["enum"]]
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
