"""What the OpenAPI document says about prices over time and changes between snapshots."""

from typing import Any

from catalog.diff import WORDS

Schema = dict[str, Any]

_MONEY = {"type": "string", "description": "US dollars as a decimal string", "examples": ["98.32"]}
_TIME = {"type": "string", "format": "date-time"}
_MAYBE_TIME = {"type": ["string", "null"], "format": "date-time"}
_MAYBE_MONEY = {"type": ["string", "null"], "description": "US dollars as a decimal string"}
_KEY = {name: {"type": "string"} for name in ("provider", "region", "zone", "instance_type", "price_kind")}

_PRICE: Schema = {
    "type": "object",
    "description": "One price of one offer; `until` is null while it holds",
    "required": [*_KEY, "usd_per_hour", "from", "until", "vanished", "stale_since", "observed_at", "source"],
    "properties": {
        **_KEY,
        "usd_per_hour": _MONEY,
        "from": _TIME,
        "until": _MAYBE_TIME,
        "vanished": {"type": "boolean", "description": "no other price followed at `until`"},
        "stale_since": _MAYBE_TIME,
        "observed_at": _TIME,
        "source": {"type": "string"},
    },
}

_PRICES: Schema = {
    "type": "object",
    "required": ["snapshot_id", "instance_type", "total", "prices", "next_cursor"],
    "properties": {
        "snapshot_id": {"type": "string"},
        "instance_type": {"type": "string"},
        "total": {"type": "integer"},
        "prices": {"type": "array", "items": {"$ref": "#/components/schemas/Price"}},
        "next_cursor": {"type": ["string", "null"]},
    },
}

_DIFF: Schema = {
    "type": "object",
    "required": ["before", "after", "providers", "total", "changes", "instance_types", "next_cursor"],
    "properties": {
        "before": {"type": "object", "required": ["id", "observed_at"]},
        "after": {"type": "object", "required": ["id", "observed_at"]},
        "providers": {
            "type": "array",
            "items": {"type": "object", "required": ["provider", *WORDS]},
        },
        "total": {"type": "integer", "description": "changed offers, on all pages"},
        "changes": {
            "type": "array",
            "items": {
                "type": "object",
                "required": [*_KEY, "what", "usd_per_hour_before", "usd_per_hour_after", "change_percent"],
                "properties": {
                    **_KEY,
                    "what": {"type": "array", "items": {"enum": list(WORDS)}},
                    "usd_per_hour_before": _MAYBE_MONEY,
                    "usd_per_hour_after": _MAYBE_MONEY,
                    "change_percent": {"type": ["number", "null"]},
                },
            },
        },
        "instance_types": {"type": "array", "items": {"type": "object", "required": ["instance_type", "what"]}},
        "next_cursor": {"type": ["string", "null"]},
    },
}

PRICE_SCHEMAS: dict[str, Schema] = {"Price": _PRICE, "Prices": _PRICES, "SnapshotDiff": _DIFF}
