"""What if: the job of a saved answer with one thing changed, named by a link rather than written into it.

Each change is named by what the answer itself offers (a point of its frontier, an alternative, a way out), so a
link cannot ask for anything that the answer does not hold.
"""

import math
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from api.questions.opened import body_of
from catalog.errors import UnusableInput
from planner.job import REQUIREMENTS

Document = dict[str, Any]
#: Requirements that are lists of names: giving way adds to them.
_LISTS = frozenset({"providers", "accelerators", "vendors", "instance_types", "regions", "geography", "price_kinds"})


def by_deadline(answer: Document, hours: float) -> Document:
    """The job with another deadline, in hours from its start."""
    return _job(answer) | {"deadline": hours}


def any_speed(answer: Document) -> Document:
    """The job without a deadline and budget: the cheapest at any speed."""
    return {name: value for name, value in _job(answer).items() if name not in {"deadline", "budget_usd"}}


def from_now(answer: Document) -> Document:
    """The job as if it were asked for now: with its start left out, if that has a place in the past."""
    return {name: value for name, value in _job(answer).items() if name != "start"}


def at_point(answer: Document, number: int) -> Document:
    """The job for least cost with the deadline that a point of the frontier keeps, and no budget in its way."""
    point = _picked(body_of(answer).get("frontier") or (), number, "point")
    job = by_deadline(answer, rounded_up(point["hours_confident"]))
    return _within_budget(job, point) | {"objective": "cost"}


def as_alternative(answer: Document, number: int) -> Document:
    """The job on exactly what an alternative rents, with as much time and money as that takes."""
    chosen = _picked(body_of(answer).get("alternatives") or (), number, "alternative")
    job = _within_budget(_job(answer), chosen)
    if job.get("deadline") is not None:
        job["deadline"] = max(job["deadline"], rounded_up(chosen["hours_confident"]))
    constraints = job.setdefault("constraints", {})
    hosts = int(chosen.get("slice_hosts") or 1)
    constraints |= {
        "providers": [chosen["provider"]],
        # Own machines stand in no region that a job could name.
        "regions": [f"{chosen['provider']}:{chosen['region']}"] if chosen["price_kind"] != "owned" else [],
        "instance_types": [chosen["instance_type"]],
        "price_kinds": [chosen["price_kind"]],
        "accelerators": [],
        "vendors": [],
        "geography": [],
        "max_nodes": max(int(chosen["nodes"]), hosts),
        "max_phases": 1,
    }
    constraints.pop("max_accelerators", None)
    return job


def by_way_out(answer: Document, number: int) -> Document:
    """The job with what has to give way given way, as an answer without a plan proposes."""
    way = _picked(body_of(answer).get("relaxations") or (), number, "way_out")
    job = _job(answer)
    for name, needed in zip(str(way["requirement"]).split(" + "), str(way["to"]).split("; "), strict=True):
        _give_way(job, name, needed)
    return job


def _give_way(job: Document, name: str, needed: str) -> None:
    """One requirement of a job set to what it would have to be."""
    if name not in REQUIREMENTS:
        raise UnusableInput.at("way_out", message=f"gives way in {name!r}, which this release does not know; plan anew")
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


def _within_budget(job: Document, chosen: Mapping[str, Any]) -> Document:
    """The job without its budget, if what is chosen costs more than that."""
    budget = job.get("budget_usd")
    if budget is not None and float(chosen["cost_usd"]) > float(budget):
        return {name: value for name, value in job.items() if name != "budget_usd"}
    return job


def rounded_up(hours: float) -> float:
    """Four digits, rounded up: a deadline that reads well and that these hours keep."""
    scale = 10.0 ** (3 - math.floor(math.log10(hours)))
    return math.ceil(hours * scale) / scale


def _job(answer: Document) -> Document:
    job: Document = deepcopy(body_of(answer)["job"])
    return job


def _picked(among: Sequence[Document], number: int, name: str) -> Document:
    if not 0 <= number < len(among):
        accepted = f"0 to {len(among) - 1}" if among else "none, since this answer has no such list"
        raise UnusableInput.at(name, message=f"{number} is not among what the plan offers; accepted: {accepted}")
    return among[number]
