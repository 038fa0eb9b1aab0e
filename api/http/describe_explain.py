"""What the OpenAPI document says about explanations, verifications and jobs under way."""

from api.http.describe import JOB_EXAMPLE, Schema, body_of, ref

_META = {"type": "object", "description": "what changes by the clock"}

_WHY: Schema = {
    "type": "object",
    "required": ["outcome", "why", "meta"],
    "properties": {
        "outcome": {"enum": ["explained", "infeasible"]},
        "why": {
            "type": "object",
            "required": ["id", "job", "snapshot_id", "summary", "requirements"],
            "properties": {
                "id": {"type": "string"},
                "summary": {"type": "array", "items": {"type": "string"}},
                "requirements": {"type": "array", "items": {"type": "object"}},
            },
        },
        "meta": _META,
    },
}

_VERIFICATION: Schema = {
    "type": "object",
    "required": ["outcome", "verification", "meta"],
    "properties": {
        "outcome": {"enum": ["verified", "not_verified"]},
        "verification": {
            "type": "object",
            "required": ["id", "snapshot_id", "wrong", "checks"],
            "properties": {
                "wrong": {
                    "type": "array",
                    "description": "the figures that are wrong, as pointers, with what they are and what they should be",
                    "items": {"type": "object", "required": ["figure", "check", "stated", "found", "why"]},
                },
                "checks": {"type": "array", "items": {"type": "object", "required": ["check", "passed"]}},
            },
        },
        "meta": _META,
    },
}

_REPLAN: Schema = {
    "type": "object",
    "required": ["outcome", "replan", "meta"],
    "properties": {
        "outcome": {"enum": ["replanned", "infeasible"]},
        "replan": {
            "type": "object",
            "required": ["id", "job", "snapshot_id", "now", "running", "left", "summary", "action", "continue", "best"],
            "properties": {
                "id": {"type": "string"},
                "summary": {"type": "array", "items": {"type": "string"}},
                "action": {
                    "enum": [
                        "continue",
                        "standby",
                        "move_later",
                        "add_nodes",
                        "shed_nodes",
                        "move",
                        "restart",
                        "start",
                        "none",
                    ]
                },
                "continue": {
                    "type": ["object", "null"],
                    "description": "the job to its end on the machines that run it",
                },
                "best": {"type": ["object", "null"], "description": "a plan, all of whose figures count from now"},
                "difference": {"type": ["object", "null"], "description": "the best less going on, part by part"},
                "holds": {"type": ["object", "null"], "description": "up to what going on stays the best"},
            },
        },
        "meta": _META,
    },
}

#: What is verified is described by what gives it: the answer of `/v1/plans`.
EXPLAIN_SCHEMAS: dict[str, Schema] = {"Why": _WHY, "Verification": _VERIFICATION, "Replan": _REPLAN}

#: Too short to be right, and long enough to show where things stand; a real one comes from `/v1/plans`.
_PLAN_EXAMPLE: Schema = {
    "outcome": "planned",
    "plan": {"id": "plan-5cc3ddf113d641b9c615", "snapshot_id": "0961144a3bc4ebd327519ca01e325437", "job": JOB_EXAMPLE},
    "meta": {},
}

WHY_OPERATION: Schema = {
    "requestBody": body_of(
        ref("WhyDocument"), why_not_h100={"job": JOB_EXAMPLE, "not": "H100"}, what_binds={"job": JOB_EXAMPLE}
    )
}
#: A running job is told from a point in time on, so the example has its own.
_UNDER_WAY: Schema = {
    "job": JOB_EXAMPLE,
    "since": "2026-11-21T08:00Z",
    "now": "2026-11-21T11:00Z",
    "running": {
        "on": {"instance_type": "g6e.2xlarge", "nodes": 4, "region": "us-east-1"},
        "done": "40%",
        "spent_usd": 30,
    },
}

REPLAN_OPERATION: Schema = {
    "requestBody": body_of(
        ref("ReplanDocument"),
        on_time=_UNDER_WAY,
        machine_gone=_UNDER_WAY | {"running": _UNDER_WAY["running"] | {"up": False, "saved": "38%"}},
    )
}
VERIFY_OPERATION: Schema = {"requestBody": body_of(ref("Plan"), answer_of_plans=_PLAN_EXAMPLE)}
