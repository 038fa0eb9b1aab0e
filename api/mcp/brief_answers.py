"""Answers shortened to what an agent needs: the same keys and values without the long parts.

`left_out` names what was removed; nothing is renamed, rounded or added.
"""

from collections.abc import Iterable
from typing import Any

Document = dict[str, Any]

_PLAN = ("job", "settings", "commitments", "assumptions", "frontier")
_PHASE = (
    "price_source",
    "price_observed_approximately",
    "log_sigma",
    "capacity_gib_per_accelerator",
    "mfu",
    "starts_at",
)
_INFEASIBLE = ("job", "settings", "assumptions")
_WHY = ("job", "frontier", "steps", "assumptions")
_REPLAN = ("job", "settings", "assumptions", "frontier")
_ALTERNATIVES = 3


def brief_plan(answer: Document) -> Document:
    """An answer of `plan` with phases, cost, proof, warnings and the first alternatives."""
    left: list[str] = []
    short = dict(answer)
    if "plan" in answer:
        plan = _without(answer["plan"], _PLAN, "plan", left)
        plan["phases"] = [_without(phase, _PHASE, "plan.phases", left) for phase in plan["phases"]]
        plan["alternatives"] = _first(plan["alternatives"], "plan.alternatives", left)
        plan["certificate"] = _without(plan["certificate"], ("rejected", "columns"), "plan.certificate", left)
        if "live_capacity" in plan:
            plan["live_capacity"] = _without(plan["live_capacity"], ("answers",), "plan.live_capacity", left)
        short["plan"] = plan
    if "infeasible" in answer:
        short["infeasible"] = _without(answer["infeasible"], _INFEASIBLE, "infeasible", left)
    return _named(short, left)


def brief_why(answer: Document) -> Document:
    """An answer of `why` with its summary, the subject of the question, and the binding requirements."""
    left: list[str] = []
    short = dict(answer)
    if "why" in answer:
        short["why"] = _without(answer["why"], _WHY, "why", left)
    return _named(short, left)


def brief_replan(answer: Document) -> Document:
    """An answer of `replan` with its advice."""
    left: list[str] = []
    short = dict(answer)
    if "replan" in answer:
        short["replan"] = _without(answer["replan"], _REPLAN, "replan", left)
    return _named(short, left)


def _without(document: Document, keys: Iterable[str], where: str, left: list[str]) -> Document:
    gone = [key for key in keys if document.get(key)]
    left += [f"{where}.{key}" for key in gone]
    return {key: value for key, value in document.items() if key not in gone}


def _first(rows: list[Any], where: str, left: list[str]) -> list[Any]:
    if len(rows) > _ALTERNATIVES:
        left.append(f"{where} after the first {_ALTERNATIVES} of {len(rows)}")
    return rows[:_ALTERNATIVES]


def _named(short: Document, left: list[str]) -> Document:
    return short | {"left_out": sorted(set(left))} if left else short
