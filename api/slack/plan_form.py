"""The form of `/gpuplan plan` without arguments: fields with hints, and faults at their fields."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, get_args

from gpuplan.api.presentation.text_formatting import plain
from gpuplan.api.schemas.job_fields import WrittenField
from gpuplan.api.schemas.key_value_words import WORDS, document, in_words
from gpuplan.api.slack.block_kit import LONGEST_LABEL, Block, literal
from gpuplan.api.slack.slash_commands import Question, checked_plan
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.runtime.errors import Fault, UnusableInput
from gpuplan.planner.model.job_field import Group
from gpuplan.planner.workload.presets import PresetRow, find_preset, presets

CALLBACK = "plan"
#: The action id of all fields; the block id is the word.
FIELD = "value"
#: Most options per group of a menu.
_MOST_OPTIONS = 100
_MOST_METADATA = 3_000


def form(metadata: Mapping[str, str]) -> JsonObject:
    """The form; Slack returns `metadata` with the submission."""
    blocks = [
        _input("model", "Model", {"type": "static_select", "option_groups": _models()}, hint="type to search"),
        _input("amount", "Tokens or samples to train on", _text("300B, 115M")),
        *(_field(name, field) for name, field in _FIELDS.items()),
    ]
    return {
        "type": "modal",
        "callback_id": CALLBACK,
        "title": literal("Plan a training job", 24),
        "submit": literal("Plan", 24),
        "close": literal("Cancel", 24),
        "private_metadata": json.dumps(dict(metadata))[:_MOST_METADATA],
        "blocks": blocks,
    }


#: Fields of the form by their words, in the order of the page's form.
_FIELDS = {
    word: field
    for group in get_args(Group)
    for word, field in WORDS.items()
    if field.about.in_modal and field.about.group == group
}
_BLOCKS = ("model", "amount", *_FIELDS)


def read_form(view: Mapping[str, Any]) -> Question:
    """The request of a submitted form. Raises `UnusableInput` with faults at blocks of the form."""
    values = (view.get("state") or {}).get("values") or {}
    given = {name: text for name in _BLOCKS if (text := _value(values.get(name) or {}))}
    if "model" not in given:
        raise UnusableInput.at("model", message="is missing; choose a model")
    unit = find_preset(given["model"], ("model",)).unit
    if "amount" not in given:
        raise UnusableInput.at("amount", message=f"is missing; write how many {unit} to train on, such as 300B")
    given[unit] = given.pop("amount")
    try:
        return checked_plan(document(given))
    except UnusableInput as error:
        raise UnusableInput(*(_at_block(fault, unit) for fault in in_words(error).faults)) from None


def errors_at_fields(error: UnusableInput) -> dict[str, str]:
    """Error messages by block; a fault without a field is at the first block."""
    texts: dict[str, str] = {}
    for fault in error.faults:
        block = fault.path[0] if fault.path and fault.path[0] in _BLOCKS else "model"
        text = fault.message if fault.path and block == fault.path[0] else str(fault)
        texts[str(block)] = plain(f"{texts[str(block)]}; {text}" if str(block) in texts else text, limit=300)
    return texts


def metadata_of(view: Mapping[str, Any]) -> dict[str, str]:
    """The metadata that `form` was given; authentic, because Slack signs its requests."""
    text = str(view.get("private_metadata") or "{}")
    try:
        metadata = json.loads(text)
    except ValueError:
        return {}
    return {str(name): str(value) for name, value in metadata.items()} if isinstance(metadata, dict) else {}


def command_metadata(channel_id: str, response_url: str) -> dict[str, str]:
    """Metadata for the answer of a form: the channel and response URL of its command."""
    return {"channel_id": channel_id, "response_url": response_url, "asked_at": datetime.now(UTC).isoformat()}


def _at_block(fault: Fault, unit: str) -> Fault:
    return Fault(("amount",), fault.message) if fault.path[:1] == (unit,) else fault


def _value(block: Mapping[str, Any]) -> str:
    """The value of a field: text, one choice, or several joined by commas."""
    state = block.get(FIELD) or {}
    if state.get("selected_options"):
        return ",".join(str(option["value"]) for option in state["selected_options"])
    chosen = (state.get("selected_option") or {}).get("value")
    return str(chosen or state.get("value") or "").strip()


def _input(name: str, label: str, element: Block, *, optional: bool = False, hint: str = "") -> Block:
    block = {
        "type": "input",
        "block_id": name,
        "label": literal(label),
        "element": element | {"action_id": FIELD},
        "optional": optional,
    }
    return block | ({"hint": literal(hint)} if hint else {})


def _field(word: str, field: WrittenField) -> Block:
    """The input of a job field that may be left empty."""
    if word == "in":
        return _input(word, "Where", _text("us, eu, or regions such as us-east-1"), optional=True)
    options = [{"text": literal(label, LONGEST_LABEL), "value": name} for name, label in field.choices.items()]
    if field.kind == "checks":
        element = {"type": "multi_static_select", "options": options, "placeholder": literal("any")}
    elif field.kind == "select":
        element = {"type": "static_select", "options": options, "placeholder": literal("not chosen")}
    else:
        element = _text(field.example)
    return _input(word, field.label, element, optional=True, hint=field.hint)


def _text(placeholder: str) -> Block:
    return {"type": "plain_text_input", "placeholder": literal(placeholder, 150), "max_length": 200}


def _models() -> list[Block]:
    """All known models grouped by task, with their unit."""
    groups: dict[str, list[PresetRow]] = {}
    for row in presets().values():
        groups.setdefault(row.task or "other", []).append(row)
    made = []
    for task, rows in groups.items():
        for start in range(0, len(rows), _MOST_OPTIONS):
            options = [_model(row) for row in rows[start : start + _MOST_OPTIONS]]
            made.append({"label": literal(task, LONGEST_LABEL), "options": options})
    return made


def _model(row: PresetRow) -> Block:
    return {"text": literal(f"{row.name} ({row.unit})", LONGEST_LABEL), "value": row.name}
