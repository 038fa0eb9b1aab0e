"""What-if links: the job of a saved answer with one change.

A link names a change by an item of the answer (frontier point, alternative, relaxation), so it cannot request anything
that the answer does not contain.
"""

import math
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import fields

from gpuplan.catalog.model.regions import is_place_unknown
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.job import REQUIREMENTS, Constraints
from gpuplan.planner.model.plan import InfeasibleAnswer, PlanAnswer, PlannedAnswer
from gpuplan.planner.model.shared import Configuration

#: Requirements that are lists of names: relaxing them adds names.
_LISTS = frozenset(field.name for field in fields(Constraints) if isinstance(field.default, tuple))


def by_deadline(answer: PlanAnswer, hours: float) -> JsonObject:
    """The job with another deadline, in hours from its start; for least cost if it was for least time."""
    job = _job(answer) | {"deadline": hours}
    return job | {"objective": "cost"} if job.get("objective") == "time" else job


def by_budget(answer: PlanAnswer, usd: float) -> JsonObject:
    """The job for the fastest plan within a budget."""
    job = {name: value for name, value in _job(answer).items() if name != "deadline"}
    return job | {"budget_usd": usd, "objective": "time"}


def any_speed(answer: PlanAnswer) -> JsonObject:
    """The job without a deadline and budget: the cheapest at any speed."""
    return {name: value for name, value in _job(answer).items() if name not in {"deadline", "budget_usd"}}


def for_other_framework(answer: PlanAnswer) -> JsonObject:
    """The job for code of the framework on which it would cost least."""
    other = answer.plan.other_framework if isinstance(answer, PlannedAnswer) else None
    if other is None:
        raise UnusableInput.at("framework", message="the plan names no other framework")
    job = _job(answer)
    return job | {"training": (job.get("training") or {}) | {"framework": other.framework}}


def from_now(answer: PlanAnswer) -> JsonObject:
    """The job to plan now, without a start in the past."""
    return {name: value for name, value in _job(answer).items() if name != "start"}


def at_point(answer: PlanAnswer, number: int) -> JsonObject:
    """The job for least cost with the deadline of a frontier point, without budget."""
    point = _picked((answer.plan.frontier or ()) if isinstance(answer, PlannedAnswer) else (), number, "point")
    job = by_deadline(answer, rounded_up(point.hours_confident))
    return _within_budget(job, point) | {"objective": "cost"}


def as_alternative(answer: PlanAnswer, number: int) -> JsonObject:
    """The job on exactly the machines of an alternative, with the time and money it takes."""
    chosen = _picked(answer.plan.alternatives if isinstance(answer, PlannedAnswer) else (), number, "alternative")
    job = _within_budget(_job(answer), chosen)
    if job.get("deadline") is not None:
        job["deadline"] = max(job["deadline"], rounded_up(chosen.hours_confident))
    constraints = job.setdefault("constraints", {})
    hosts = chosen.slice_hosts or 1
    constraints |= {
        "providers": [chosen.provider],
        "regions": [f"{chosen.provider}:{chosen.region}"] if _has_a_named_region(chosen) else [],
        "instance_types": [chosen.instance_type],
        "price_kinds": [chosen.price_kind],
        "accelerators": [],
        "vendors": [],
        "geography": [],
        "max_nodes": max(chosen.nodes, hosts),
        "max_phases": 1,
    }
    constraints.pop("max_accelerators", None)
    return job


def _has_a_named_region(chosen: Configuration) -> bool:
    """Whether a job can name the region: owned machines have none, and some providers do not state theirs."""
    return chosen.price_kind != "owned" and not is_place_unknown(chosen.region)


def by_way_out(answer: PlanAnswer, number: int) -> JsonObject:
    """The job with a relaxation proposed by an infeasible answer."""
    way = _picked(answer.infeasible.relaxations if isinstance(answer, InfeasibleAnswer) else (), number, "way_out")
    job = _job(answer)
    for name, _, needed in way.one_by_one():
        _give_way(job, name, needed)
    return job


def _give_way(job: JsonObject, name: str, needed: str) -> None:
    """Set one requirement of a job to the needed value."""
    if name not in REQUIREMENTS:
        raise UnusableInput.at("way_out", message=f"relaxes {name!r}, which this release does not know; plan again")
    *within, field = name.split(".")
    holder = job
    for part in within:
        holder = holder.setdefault(part, {})
    if needed == "none" or needed.startswith("that of "):
        holder.pop(field, None)
    elif field in _LISTS:
        holder[field] = [*holder.get(field, ()), needed]
    else:
        holder[field] = needed


def _within_budget(job: JsonObject, chosen: Configuration) -> JsonObject:
    """The job without its budget if the choice costs more."""
    budget = job.get("budget_usd")
    if budget is not None and float(chosen.cost_usd) > float(budget):
        return {name: value for name, value in job.items() if name != "budget_usd"}
    return job


def rounded_up(hours: float) -> float:
    """Four digits, rounded up: a readable deadline that these hours meet."""
    scale = 10.0 ** (3 - math.floor(math.log10(hours)))
    return math.ceil(hours * scale) / scale


def _job(answer: PlanAnswer) -> JsonObject:
    job: JsonObject = deepcopy(answer.body.job)
    return job


def _picked[Item](among: Sequence[Item], number: int, name: str) -> Item:
    if not 0 <= number < len(among):
        accepted = f"0 to {len(among) - 1}" if among else "none, because this answer has no such list"
        raise UnusableInput.at(name, message=f"{number} is not an item of the plan; accepted: {accepted}")
    return among[number]
