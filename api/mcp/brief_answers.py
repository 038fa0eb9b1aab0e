"""Answers shortened to what an agent needs: the same keys and values without the long parts.

`left_out` names what was removed; nothing is renamed, rounded or added.
"""

from collections.abc import Mapping
from typing import Any

from gpuplan.catalog.parsing.json_object import JsonObject

#: The keys that a short answer lacks, by the part that has them.
_LEFT_OUT: Mapping[str, tuple[str, ...]] = {
    "plan": ("job", "settings", "commitments", "assumptions", "frontier"),
    "plan.phases": (
        *("price_source", "price_observed_approximately", "log_sigma", "capacity_gib_per_accelerator", "mfu"),
        "starts_at",
    ),
    "plan.certificate": ("rejected", "columns"),
    "plan.live_capacity": ("answers",),
    "infeasible": ("job", "settings", "assumptions"),
    "why": ("job", "frontier", "steps", "assumptions"),
    "replan": ("job", "settings", "assumptions", "frontier"),
}
#: The lists of which a short answer has the first rows alone.
_FIRST_ROWS = {"plan.alternatives": 3}


def brief(answer: JsonObject) -> JsonObject:
    """An answer of `plan`, `why` or `replan` with its outcome, decisions, figures, proof and warnings."""
    left: set[str] = set()
    short: JsonObject = _short(answer, "", left)
    return short | {"left_out": sorted(left)} if left else short


def _short(part: Any, where: str, left: set[str]) -> Any:
    if isinstance(part, list):
        most = _FIRST_ROWS.get(where, len(part))
        if len(part) > most:
            left.add(f"{where} after the first {most} of {len(part)}")
        return [_short(row, where, left) for row in part[:most]]
    if not isinstance(part, dict):
        return part
    gone = [key for key in _LEFT_OUT.get(where, ()) if part.get(key)]
    left |= {f"{where}.{key}" for key in gone}
    within = f"{where}." if where else ""
    return {key: _short(value, f"{within}{key}", left) for key, value in part.items() if key not in gone}
