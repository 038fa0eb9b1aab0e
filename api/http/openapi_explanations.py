"""Explanations, verifications and replans in the OpenAPI document."""

from gpuplan.api.http.openapi_bodies import JOB_EXAMPLE, Schema, body_of, ref

#: Verification accepts any document that has the form of an answer of `/v1/plans`.
_SUBMITTED_PLAN: Schema = {
    "type": "object",
    "description": "the answer of `/v1/plans`, or its `plan` or `infeasible` alone",
    "properties": {
        "outcome": {"enum": ["planned", "infeasible"]},
        "plan": {"type": "object"},
        "infeasible": {"type": "object"},
        "meta": {"type": "object"},
    },
}

#: Abbreviated, so it would not verify; a real one comes from `/v1/plans`.
_PLAN_EXAMPLE: Schema = {
    "outcome": "planned",
    "plan": {"id": "plan-5cc3ddf113d641b9c615", "snapshot_id": "c7d92d374907695d66b10ab6c0a42b43", "job": JOB_EXAMPLE},
    "meta": {"created_at": "2026-11-21T08:00:00Z"},
}

WHY_OPERATION: Schema = {
    "requestBody": body_of(
        ref("WhyDocument"), why_not_h100={"job": JOB_EXAMPLE, "not": "H100"}, what_binds={"job": JOB_EXAMPLE}
    )
}
#: A running job needs a start and a current time, so it has its own example.
_UNDER_WAY: Schema = {
    "job": JOB_EXAMPLE,
    "since": "2026-11-21T08:00:00Z",
    "now": "2026-11-21T11:00:00Z",
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
VERIFY_OPERATION: Schema = {"requestBody": body_of(_SUBMITTED_PLAN, answer_of_plans=_PLAN_EXAMPLE)}
