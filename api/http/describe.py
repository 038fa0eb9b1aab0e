"""What the OpenAPI document says about bodies and answers: schemas, examples, and the problems of each operation."""

from http import HTTPStatus
from typing import Any

from api.http.describe_prices import PRICE_SCHEMAS

Schema = dict[str, Any]

_MONEY = {"type": "string", "description": "US dollars as a decimal string", "examples": ["1234.56"]}
_HOURS = {"type": "number", "minimum": 0}

PROBLEM_SCHEMA: Schema = {
    "type": "object",
    "description": "RFC 9457 problem details",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "request_id": {"type": "string"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["pointer", "detail"],
                "properties": {
                    "pointer": {"type": "string", "description": "RFC 6901 pointer to the field"},
                    "in": {"enum": ["body", "query", "path", "header"]},
                    "detail": {"type": "string"},
                },
            },
        },
    },
}

PLAN_SCHEMA: Schema = {
    "type": "object",
    "required": ["outcome", "meta"],
    "properties": {
        "outcome": {"enum": ["planned", "infeasible"]},
        "plan": {
            "type": "object",
            "required": ["id", "snapshot_id", "cost_usd", "hours", "phases", "certificate"],
            "properties": {
                "id": {"type": "string"},
                "snapshot_id": {"type": "string"},
                "cost_usd": {"type": "object", "properties": {"expected": _MONEY, "p95": _MONEY}},
                "hours": {"type": "object", "properties": {"expected": _HOURS, "p95": _HOURS}},
                "phases": {"type": "array", "minItems": 1, "items": {"type": "object"}},
                "certificate": {"type": "object"},
            },
        },
        "infeasible": {
            "type": "object",
            "properties": {"conflicts": {"type": "array"}, "relaxations": {"type": "array"}},
        },
        "meta": {"type": "object", "description": "what changes by the clock"},
    },
}

ESTIMATE_SCHEMA: Schema = {
    "type": "object",
    "required": ["hours", "memory", "layout", "terms", "band"],
    "properties": {
        "hours": {"type": ["number", "null"]},
        "memory": {"type": "object", "properties": {"fits": {"type": "boolean"}}},
        "layout": {"type": "object"},
        "terms": {"type": "object"},
        "band": {"type": "object"},
    },
}

_BAND = {"type": "object", "properties": {"low": {"type": "number"}, "high": {"type": "number"}}}
_FIGURE: Schema = {
    "type": "object",
    "required": ["measured", "predicted", "ratio", "band", "inside_band"],
    "properties": {
        "measured": {"type": "number"},
        "predicted": {"type": "number"},
        "ratio": {"type": ["number", "null"], "description": "measured / predicted"},
        "band": _BAND | {"description": "80 % of runs are expected inside"},
        "inside_band": {"type": "boolean"},
    },
}

ACTUAL_SCHEMA: Schema = {
    "type": "object",
    "required": ["id", "plan_id", "task", "accelerator", "reported_at", "running", "share_done", "unit", "figures"],
    "properties": {
        "id": {"type": "string"},
        "plan_id": {"type": "string"},
        "task": {"type": "string", "description": "the class of work that later estimates of learn from this"},
        "reported_at": {"type": "string", "format": "date-time"},
        "running": {"type": "boolean"},
        "share_done": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
        "figures": {
            "type": "object",
            "properties": dict.fromkeys(("hours", "throughput", "peak_memory_gib", "preemptions"), _FIGURE),
        },
    },
}

ACTUALS_SCHEMA: Schema = {
    "type": "object",
    "required": ["actuals", "learning", "learned"],
    "properties": {
        "actuals": {"type": "array", "items": {"$ref": "#/components/schemas/Actual"}},
        "learning": {"enum": ["on", "off"]},
        "learned": {"type": "array", "items": {"type": "object", "required": ["task", "accelerator", "hours_factor"]}},
    },
}

_TOLD: Schema = {
    "type": "object",
    "required": ["outcome", "plan_id", "snapshot_id", "at"],
    "description": "the answer that changes are told against",
    "properties": {
        "outcome": {"enum": ["planned", "infeasible"]},
        "plan_id": {"type": "string"},
        "snapshot_id": {"type": "string"},
        "cost_usd": _MONEY,
        "hours": _HOURS,
        "choice": {"type": "string", "description": "machines and place in one line"},
        "offers": {"type": "array", "items": {"type": "object"}},
        "conflicts": {"type": "array"},
    },
}

WATCH_SCHEMA: Schema = {
    "type": "object",
    "required": ["id", "name", "channels", "cheaper_by_percent", "created_at", "state", "last_told"],
    "properties": {
        "id": {"type": "string"},
        "name": {"type": "string"},
        "channels": {"type": "array", "items": {"type": "string"}},
        "cheaper_by_percent": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 100},
        "created_at": {"type": "string", "format": "date-time"},
        "state": {"enum": ["watching", "ended"], "description": "ended: its deadline has passed"},
        "ended_at": {"type": ["string", "null"], "format": "date-time"},
        "checked_at": {"type": ["string", "null"], "format": "date-time", "description": "when it was last planned"},
        "problem": {"type": ["string", "null"], "description": "why it could not be planned then"},
        "last_told": _TOLD,
        "warnings": {"type": "array", "items": {"type": "string"}},
        "job": {"type": "object", "description": "the job in full; in the answer for one watch"},
        "notifications": {
            "type": "array",
            "description": "all that was told, the newest first; in the answer for one watch",
            "items": {
                "type": "object",
                "required": ["id", "event", "channel", "summary", "created_at", "state", "attempts"],
                "properties": {
                    "event": {"enum": ["cheaper", "dearer", "offer_gone", "infeasible", "feasible", "deadline_passed"]},
                    "state": {"enum": ["waiting", "delivered", "given_up"]},
                    "attempts": {"type": "integer", "minimum": 0},
                    "last_error": {"type": ["string", "null"]},
                },
            },
        },
    },
}

WATCHES_SCHEMA: Schema = {
    "type": "object",
    "required": ["watches"],
    "properties": {"watches": {"type": "array", "items": {"$ref": "#/components/schemas/Watch"}}},
}

OFFER_SCHEMA: Schema = {
    "type": "object",
    "required": ["provider", "region", "instance_type", "accelerator", "price_kind", "usd_per_hour", "observed_at"],
    "properties": {"usd_per_hour": _MONEY, "accelerator_count": {"type": "number"}},
}

OFFERS_SCHEMA: Schema = {
    "type": "object",
    "required": ["snapshot_id", "total", "offers", "next_cursor"],
    "properties": {
        "snapshot_id": {"type": "string"},
        "total": {"type": "integer"},
        "offers": {"type": "array", "items": {"$ref": "#/components/schemas/Offer"}},
        "next_cursor": {"type": ["string", "null"]},
    },
}


def rows_schema(name: str) -> Schema:
    """An object with one list of rows under `name`."""
    return {"type": "object", "required": [name], "properties": {name: {"type": "array", "items": {"type": "object"}}}}


REFRESH_SCHEMA: Schema = {
    "type": "object",
    "required": ["id", "status", "started_at", "asked"],
    "properties": {
        "id": {"type": "string"},
        "status": {"enum": ["running", "done", "failed"]},
        "started_at": {"type": "string", "format": "date-time"},
        "asked": {"type": "array", "items": {"type": "string"}},
        "progress": {"type": "object", "description": "regions done and in all, by provider, while it runs"},
        "outcome": {"enum": ["whole", "partial", "refused", "failed"]},
        "summary": {"type": "string", "description": "one line for alerting; it begins with refresh:"},
        "snapshot_id": {"type": "string"},
        "providers": {"type": "array", "items": {"type": "object"}},
        "quarantined": {"type": "array", "items": {"type": "object"}},
    },
}


SCHEMAS: dict[str, Schema] = {
    "Problem": PROBLEM_SCHEMA,
    "Plan": PLAN_SCHEMA,
    "Estimate": ESTIMATE_SCHEMA,
    "Actual": ACTUAL_SCHEMA,
    "Actuals": ACTUALS_SCHEMA,
    "Forgotten": {"type": "object", "required": ["forgotten"], "properties": {"forgotten": {"type": "integer"}}},
    "Watch": WATCH_SCHEMA,
    "Watches": WATCHES_SCHEMA,
    "Offer": OFFER_SCHEMA,
    "Offers": OFFERS_SCHEMA,
    **PRICE_SCHEMAS,
    "Accelerators": rows_schema("accelerators"),
    "Snapshots": rows_schema("snapshots"),
    "Presets": rows_schema("presets"),
    "Refresh": REFRESH_SCHEMA,
    "Refreshes": rows_schema("refreshes"),
    "Health": {"type": "object", "required": ["status"], "properties": {"status": {"type": "string"}}},
}

#: A job that anybody can plan: small, and with a deadline that leaves a choice.
JOB_EXAMPLE: Schema = {
    "name": "llama-3-8b-lora",
    "workload": {"kind": "preset", "model": "llama-3-8b", "tokens": "200M", "sequence_length": 4096},
    "training": {"method": "lora", "rank": 16, "precision": "bf16"},
    "deadline": "36h",
    "constraints": {"price_kinds": ["on_demand", "spot"], "max_nodes": 8},
}

EXPLICIT_EXAMPLE: Schema = {
    "name": "counted-by-hand",
    "workload": {"kind": "explicit", "total_flops": "1.2e21", "memory_gib": "320 GiB"},
    "deadline": "7d",
    "budget_usd": 20000,
}

ESTIMATE_EXAMPLE: Schema = {
    "job": {"name": "llama-3-8b", "workload": {"kind": "preset", "model": "llama-3-8b", "tokens": "15B"}},
    "on": {"accelerator": "H100-80GB-SXM", "gpus": 64, "gpus_per_node": 8, "internode_gbps": 3200},
}

FINISHED_EXAMPLE: Schema = {
    "hours": "31h",
    "throughput": "11800 tokens/s",
    "peak_memory_gib": "61 GiB",
    "preemptions": 1,
}
RUNNING_EXAMPLE: Schema = {"running": True, "share_done": "40%", "hours": 12.5}


def ref(name: str) -> Schema:
    """A reference to one of the document's schemas."""
    return {"$ref": f"#/components/schemas/{name}"}


def document_responses(schema: str, *problems: int, csv: bool = False) -> dict[int | str, dict[str, Any]]:
    """The responses of an operation: 200 with this schema, and a problem for each status (500 always among them)."""
    content: dict[str, Any] = {"application/json": {"schema": ref(schema)}}
    if csv:
        content["text/csv"] = {"schema": {"type": "string"}}
    found: dict[int | str, dict[str, Any]] = {200: {"description": "The answer", "content": content}}
    for status in (*problems, 500):
        found[status] = {
            "description": HTTPStatus(status).phrase,
            "content": {"application/problem+json": {"schema": ref("Problem")}},
        }
    return found


def body_of(schema: Schema, **examples: Schema) -> Schema:
    """A body of this schema, in JSON or YAML, with these examples by name."""
    named = {name: {"value": value} for name, value in examples.items()}
    kinds = ("application/json", "application/yaml")
    return {"required": True, "content": {kind: {"schema": schema, "examples": named} for kind in kinds}}


_IDEMPOTENCY_KEY: Schema = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "The same key with the same request gets the same answer; with another request, a 422.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
    "example": "7c1f0a5e-0d3f-4f0e-9a57-2a6f6c1f3b11",
}


def key_parameter() -> Schema:
    """The header `Idempotency-Key`."""
    return _IDEMPOTENCY_KEY


PLAN_OPERATION: Schema = {
    "requestBody": body_of(ref("JobDocument"), preset=JOB_EXAMPLE, explicit=EXPLICIT_EXAMPLE),
    "parameters": [_IDEMPOTENCY_KEY],
}
ESTIMATE_OPERATION: Schema = {"requestBody": body_of(ref("EstimateDocument"), on_64_h100=ESTIMATE_EXAMPLE)}
ACTUALS_OPERATION: Schema = {
    "requestBody": body_of(ref("ActualsDocument"), finished=FINISHED_EXAMPLE, running=RUNNING_EXAMPLE),
    "parameters": [_IDEMPOTENCY_KEY],
}

WATCH_EXAMPLE: Schema = {"job": JOB_EXAMPLE, "channels": ["team"], "cheaper_by_percent": 10}
WATCH_OPERATION: Schema = {
    "requestBody": body_of(ref("WatchDocument"), cheaper_or_gone=WATCH_EXAMPLE),
    "parameters": [_IDEMPOTENCY_KEY],
}

REFRESH_OPERATION: Schema = {
    "requestBody": body_of(ref("RefreshDocument"), two_clouds={"provider": ["aws", "azure"]}) | {"required": False},
    "parameters": [_IDEMPOTENCY_KEY],
}
