"""Examples in the OpenAPI document for operations without a body: the ids in their paths, and a short response."""

from dataclasses import asdict
from typing import Any

from gpuplan.api.http.openapi_bodies import Schema
from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.planner.workload.presets import presets

_SNAPSHOT = "c7d92d374907695d66b10ab6c0a42b43"
_REFRESH = "refresh-20261121T020000-41328e248343"

#: Values of path parameters by name, in the format of the ids that the service creates.
NAMES = {
    "plan_id": "plan-751d7a5c37e52c2c94da",
    "portfolio_id": "portfolio-20261121T080000-920d4b84e66e",
    "decision_id": "buy-751d7a5c37e52c2c94da",
    "run_id": "portfolio-20261121T080000-920d4b84e66e",
    "actual_id": "run-a0f01201eacf253b",
    "watch_id": "watch-a0f01201eacf253b",
    "refresh_id": _REFRESH,
    "key_id": "0a1b2c3d4e5f",
    "share_id": "0f1e2d3c4b5a",
    "snapshot_id": _SNAPSHOT,
    "format": "slurm",
}


def describe_examples(document: JsonObject) -> None:
    """Add the examples to the document."""
    answers = _answers()
    for operations in document["paths"].values():
        for operation in operations.values():
            for parameter in operation.get("parameters", ()):
                if parameter["in"] == "path":
                    parameter["example"] = NAMES[parameter["name"]]
            if (answer := answers.get(operation["operationId"])) is not None:
                kind, value = answer
                operation["responses"]["200"]["content"][kind]["example"] = value


def _answers() -> dict[str, tuple[str, Any]]:
    """The media type and a shortened response by operation."""
    as_json: Schema = {
        "healthz": {"status": "alive"},
        "readyz": {"status": "ready"},
        "accelerators": {"accelerators": [asdict(accelerators()["H100-80GB-SXM"])]},
        "presets": {"presets": [asdict(presets()["llama-3-8b"])]},
        "snapshots": {"snapshots": [_SNAPSHOT_ROW]},
        "refreshes": {"refreshes": [_REFRESH_ROW]},
        "watches": {"watches": [_WATCH_ROW]},
        "all_actuals": {"actuals": [], "learning": "on", "learned": []},
        "keys": {"keys": [_KEY_ROW]},
        "shares": {"shares": [_SHARE_ROW]},
    }
    text = "# TYPE gpuplan_store_up gauge\ngpuplan_store_up 1.0\n"
    return {name: ("application/json", value) for name, value in as_json.items()} | {"metrics": ("text/plain", text)}


_SNAPSHOT_ROW: Schema = {
    "id": _SNAPSHOT,
    "observed_at": "2026-07-30T00:00:00+00:00",
    "created_at": "2026-11-21T08:00:00+00:00",
    "source": "embedded",
    "offers": 10544,
    "current": True,
}
_REFRESH_ROW: Schema = {
    "id": _REFRESH,
    "status": "done",
    "outcome": "whole",
    "started_at": "2026-11-21T02:00:00+00:00",
    "finished_at": "2026-11-21T02:02:00+00:00",
    "seconds": 120.0,
    "snapshot_id": _SNAPSHOT,
    "summary": "refresh: whole; aws 6,054 rows, azure 1,044 rows, gcp 3,446 rows; snapshot c7d92d374907; 120 s",
}
_WATCH_ROW: Schema = {
    "id": NAMES["watch_id"],
    "name": "llama-3-8b",
    "channels": ["ops"],
    "cheaper_by_percent": 10.0,
    "created_at": "2026-11-21T08:00:00+00:00",
    "state": "watching",
    "ended_at": None,
    "checked_at": None,
    "problem": None,
    "last_told": {
        "outcome": "planned",
        "plan_id": NAMES["plan_id"],
        "snapshot_id": _SNAPSHOT,
        "at": "2026-11-21T08:00:00+00:00",
        "cost_usd": "549.7967",
        "hours": 126.1,
        "choice": "1 x tpu-v6e-8 (8 x TPU-v6e) in gcp us-central1-a, spot",
    },
}
_KEY_ROW: Schema = {
    "id": NAMES["key_id"],
    "name": "ci",
    "scope": "plan",
    "state": "holds",
    "created_at": "2026-11-21T08:00:00+00:00",
    "created_by": "root",
    "expires_at": "2027-02-21T08:00:00+00:00",
    "revoked_at": None,
    "last_used_at": None,
    "requests_per_minute": None,
    "plans_per_day": None,
}
_SHARE_ROW: Schema = {
    "id": NAMES["share_id"],
    "kind": "plan",
    "object_id": NAMES["plan_id"],
    "created_at": "2026-11-21T08:00:00+00:00",
    "created_by": "ci",
    "revoked_at": None,
}
