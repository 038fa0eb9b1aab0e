"""The form behind a bare `/gpuplan plan`: every field with its hint, and faults at the fields that they are of."""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from api.documents.words import METHODS, PRECISIONS, PROVIDERS
from api.render.text import plain
from api.slack.blocks import LONGEST_LABEL, Block, literal
from api.slack.commands import Question, checked_plan
from api.slack.plan_words import document, in_words
from catalog.errors import Fault, UnusableInput
from catalog.price_kinds import price_kinds
from planner.workload.presets import PresetRow, find_preset, presets

CALLBACK = "plan"
#: The action of every field; the block's id is the word.
FIELD = "value"
#: A menu has groups of at most a hundred options.
_MOST_OPTIONS = 100
_MOST_METADATA = 3_000


def form(metadata: Mapping[str, str]) -> dict[str, Any]:
    """The form; `metadata` comes back with what was filled in."""
    kinds = [name for name in price_kinds() if name in _KINDS]
    blocks = [
        _input("model", "Model", {"type": "static_select", "option_groups": _models()}, hint="type to search"),
        _input("amount", "Tokens or samples to train on", _text("300B, 115M")),
        _input("by", "Deadline", _text("7d, 36h, 2026-12-24T12:00Z"), optional=True),
        _input("max", "Budget in US dollars", _text("5000"), optional=True),
        _input("providers", "Providers", _several(PROVIDERS), optional=True, hint="all of them if left empty"),
        _input(
            "kinds",
            "Price kinds",
            _several(kinds),
            optional=True,
            hint="on demand, spot and own machines if left empty",
        ),
        _input("on", "Accelerators", _text("H100, A100"), optional=True),
        _input("in", "Where", _text("us, eu, or regions such as us-east-1"), optional=True),
        _input("nodes", "Machines at once, at most", _text("32"), optional=True),
        _input("method", "Method", _one(METHODS), optional=True, hint="full training if left empty"),
        _input("rank", "Rank of the adapters", _text("16"), optional=True, hint="of LoRA and QLoRA"),
        _input(
            "sequence", "Sequence length in tokens", _text("8192"), optional=True, hint="the model's own if left empty"
        ),
        _input(
            "precision", "Precision", _one(PRECISIONS), optional=True, hint="the best of each machine if left empty"
        ),
        _input("confidence", "Probability to be done by the deadline", _text("0.9", initial="0.9"), optional=True),
        _input("name", "Name", _text("what you call this job"), optional=True),
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


#: Kinds that a job of its own can be planned on without an obligation.
_KINDS = ("on_demand", "spot", "owned", "capacity_block", "flex_start", "calendar")


def read_form(view: Mapping[str, Any]) -> Question:
    """The question that a filled-in form asks. Raises `UnusableInput`, each fault at a block of the form."""
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


_BLOCKS = (
    "model",
    "amount",
    "by",
    "max",
    "providers",
    "kinds",
    "on",
    "in",
    "nodes",
    "method",
    "rank",
    "sequence",
    "precision",
    "confidence",
    "name",
)


def errors_at_fields(error: UnusableInput) -> dict[str, str]:
    """By block, what is wrong there; what belongs to no field stands at the first."""
    found: dict[str, str] = {}
    for fault in error.faults:
        block = fault.path[0] if fault.path and fault.path[0] in _BLOCKS else "model"
        text = fault.message if fault.path and block == fault.path[0] else str(fault)
        found[str(block)] = plain(f"{found[str(block)]}; {text}" if str(block) in found else text, limit=300)
    return found


def metadata_of(view: Mapping[str, Any]) -> dict[str, str]:
    """What `form` was given. Slack signs what it sends, so it is ours."""
    text = str(view.get("private_metadata") or "{}")
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return {str(name): str(value) for name, value in found.items()} if isinstance(found, dict) else {}


def command_metadata(channel_id: str, response_url: str) -> dict[str, str]:
    """Where the answer of a form goes: to the channel of the command that opened it."""
    return {"channel_id": channel_id, "response_url": response_url, "asked_at": datetime.now(UTC).isoformat()}


def _at_block(fault: Fault, unit: str) -> Fault:
    return Fault(("amount",), fault.message) if fault.path[:1] == (unit,) else fault


def _value(block: Mapping[str, Any]) -> str:
    """What stands in a field: text, one choice, or several as a list of words."""
    state = block.get(FIELD) or {}
    if state.get("selected_options"):
        return ",".join(str(each["value"]) for each in state["selected_options"])
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


def _text(placeholder: str, *, initial: str = "") -> Block:
    element = {"type": "plain_text_input", "placeholder": literal(placeholder, 150), "max_length": 200}
    return element | ({"initial_value": initial} if initial else {})


def _several(names: Iterable[str]) -> Block:
    return {"type": "multi_static_select", "options": _options(names), "placeholder": literal("any")}


def _one(names: Iterable[str]) -> Block:
    return {"type": "static_select", "options": _options(names), "placeholder": literal("not said")}


def _options(names: Iterable[str]) -> list[Block]:
    return [{"text": literal(name.replace("_", " "), LONGEST_LABEL), "value": name} for name in names]


def _models() -> list[Block]:
    """Every known model under its task, with what it counts in."""
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
