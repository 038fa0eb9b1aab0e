"""Portfolios, procurement, spot policies and runs in the OpenAPI document."""

from typing import Any

from gpuplan.api.http.openapi_bodies import JOB_EXAMPLE, Schema, body_of, document_responses, key_parameter, ref

PORTFOLIO_EXAMPLE: Schema = {
    "name": "next-week",
    "slot": "2h",
    "quotas": [{"provider": "aws", "accelerators": 16}],
    "jobs": [
        JOB_EXAMPLE | {"name": "tuning", "priority": 2},
        JOB_EXAMPLE | {"name": "ablation", "release": "12h", "deadline": "60h", "value": 400},
    ],
}
FORECAST_EXAMPLE: Schema = {
    "name": "lab",
    "horizon_years": 3,
    "electricity_usd_per_kwh": 0.32,
    "limits": {"upfront_usd": 20000},
    "machines": ["RTX 4090"],
    "jobs": [{"job": JOB_EXAMPLE, "per_month": {"low": 2, "expected": 4, "high": 8}}],
}
SPOT_RUN_EXAMPLE: Schema = {
    "name": "fine-tune",
    "work": "24h",
    "deadline": "36h",
    "changeover": "15min",
    "on_demand_usd_per_hour": 32.77,
    "places": [
        {"name": "us-east-1a", "usd_per_hour": 9.83, "region": "us-east-1"},
        {"name": "us-west-2b", "usd_per_hour": 9.1, "region": "us-west-2", "mean_up": "6h", "mean_down": "2h"},
    ],
    "moving": {"usd": 12, "takes": "10min"},
}
_NOW_EXAMPLE: Schema = {"time": "3h20min", "work_left": "21h", "up": ["us-east-1a"], "at": "us-east-1a"}
_UP_AND_DOWN = [1] * 60 + [0] * 12
_TRACE_EXAMPLES = [
    {"name": name, "metadata": {"gap_seconds": 900}, "data": (_UP_AND_DOWN * 4)[shift : shift + 200]}
    for name, shift in (("us-east-1a", 0), ("us-west-2b", 40))
]

_PREFER: Schema = {
    "name": "Prefer",
    "in": "header",
    "required": False,
    "description": "`wait=N`: wait up to N seconds for the answer, at most 50; `respond-async`: do not wait (RFC 7240)",
    "schema": {"type": "string", "pattern": "^(respond-async|wait=[0-9]{1,2})$"},
    "example": "wait=30",
}

PORTFOLIO_OPERATION: Schema = {
    "requestBody": body_of(ref("PortfolioDocument"), two_jobs=PORTFOLIO_EXAMPLE),
    "parameters": [key_parameter(), _PREFER],
}
BUY_OPERATION: Schema = {
    "requestBody": body_of(ref("ForecastDocument"), lab=FORECAST_EXAMPLE),
    "parameters": [key_parameter()],
}
POLICY_OPERATION: Schema = {
    "requestBody": body_of(
        ref("PolicyQuestion"),
        what_it_expects={"run": SPOT_RUN_EXAMPLE},
        what_to_do_now={"run": SPOT_RUN_EXAMPLE, "now": _NOW_EXAMPLE},
    )
}
SIMULATION_OPERATION: Schema = {
    "requestBody": body_of(
        ref("SimulationQuestion"),
        two_zones={"run": SPOT_RUN_EXAMPLE | {"step": "30min"}, "traces": _TRACE_EXAMPLES, "starts": 10},
    )
}


def started_or_answered(schema: str, *problems: int) -> dict[int | str, dict[str, Any]]:
    """The responses of a long operation: 200 with this schema, or 202 with the run that will have the answer."""
    responses = document_responses(schema, *problems)
    where = {"description": "the address of the run", "schema": {"type": "string"}}
    responses[202] = {
        "description": "The run continues; Location is its address",
        "headers": {"Location": where},
        "content": {"application/json": {"schema": ref("Run")}},
    }
    return responses
