"""A job planned anew as the JSON object that every door gives; nothing in it changes by the clock.

Cost, hours and chances are those from `now` on, and shares those of the work that is left.
"""

import hashlib
import json
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from catalog.money import usd_text
from planner.answer import Cost, Infeasible, Planned
from planner.document import document
from planner.document_figures import moment
from planner.phase_document import choice_document
from planner.replan.answer import GoingOn, Replanned
from planner.replan.under_way import UnderWay
from planner.replan.words import in_all, summary

Document = dict[str, Any]

#: Of the answer of a plan, what is said once for all of a replan, or what a running job makes misleading.
_SAID_APART = (
    "id",
    "job",
    "snapshot_id",
    "version",
    "settings",
    "learned",
    "start",
    "currency",
    "commitments",
    "sensitivity",
    "assumptions",
    "warnings",
)
_PARTS = ("compute", "storage", "egress", "power", "setup")
#: What alternatives without a move are called where going on is one thing and a single move another.
_ONE_CONFIGURATION = "on one configuration from now"


def replan_document(found: Replanned, job: Document, *, version: str) -> Document:
    """`{"outcome": "replanned" | "infeasible", "replan": {...}}`; `job` is the job's document as it is echoed."""
    whole = document(found.best, job, version=version)
    body = whole.get("plan") or whole["infeasible"]
    setup = f"{body['settings']['setup_hours']:g} h of paid set-up"
    goes_on = found.action == "continue"
    assumptions = [each for each in body.get("assumptions", []) if not (goes_on and each.startswith(setup))]
    answer = {
        "job": job,
        "snapshot_id": body["snapshot_id"],
        "version": version,
        "settings": body["settings"],
        **({"learned": body["learned"]} if "learned" in body else {}),
        "currency": "USD",
        "start": moment(found.left.start),
        "now": moment(found.running.now),
        "running": _running(found),
        "left": _left(found),
        "summary": list(summary(found)),
        "action": found.action,
        "continue": None if found.going_on is None else _going_on(found.going_on, found.running),
        "best": _best(body) if isinstance(found.best, Planned) else None,
        "difference": _difference(found),
        "holds": _holds(found),
        "infeasible": _infeasible(found, found.best, body) if isinstance(found.best, Infeasible) else None,
        "assumptions": [*found.assumptions, *assumptions],
        "warnings": body["warnings"],
    }
    digest = hashlib.sha256(json.dumps(answer, sort_keys=True).encode()).hexdigest()
    outcome = "replanned" if isinstance(found.best, Planned) else "infeasible"
    return {"outcome": outcome, "replan": {"id": f"replan-{digest[:20]}"} | answer}


def _running(found: Replanned) -> Document:
    """Where the job stands, as it was understood."""
    given, seen = found.running, found.measured
    return {
        "on": None if found.machines is None else _machines(choice_document(found.machines)),
        "up": given.up and given.on is not None,
        "done": _round(found.left.done),
        "kept": _round(found.left.kept),
        "elapsed_hours": _round(found.left.elapsed_hours),
        "spent_usd": usd_text(round(given.spent_usd * 1e6)),
        "measured": None
        if seen is None
        else {name: value if isinstance(value, str) else _round(value) for name, value in asdict(seen).items()},
    }


def _machines(choice: Document) -> Document:
    """What runs, without the cost and time of doing all the work there."""
    return {name: value for name, value in choice.items() if not name.startswith(("cost_", "hours"))}


def _left(found: Replanned) -> Document:
    job = found.left.job
    return {
        "share": _round(found.left.share),
        "deadline_hours": None if job.deadline_hours is None else _round(job.deadline_hours),
        "budget_usd": None if found.job.budget_usd is None else usd_text(_budget_left(found)),
    }


def _budget_left(found: Replanned) -> int:
    """Below zero where more was spent than there is."""
    return round(((found.job.budget_usd or 0.0) - found.running.spent_usd) * 1e6)


def _going_on(stays: GoingOn, running: UnderWay) -> Document:
    course = stays.course
    phase = course.phases[0]
    return choice_document(phase.choice) | {
        "possible": stays.possible,
        "breaks": list(stays.breaks),
        "breakdown": _parts(course.cost),
        "finishes_at": moment(running.now + timedelta(hours=course.hours.expected)),
        "deadline_probability": None if course.deadline_probability is None else _round(course.deadline_probability),
        "throughput": {"value": _round(phase.throughput), "unit": phase.unit},
        "carbon_kg": None if phase.carbon_kg is None else _round(phase.carbon_kg),
    }


def _best(body: Document) -> Document:
    plan = {name: value for name, value in body.items() if name not in _SAID_APART}
    for each in plan["alternatives"]:
        if each["label"] == "without a move":
            each["label"] = _ONE_CONFIGURATION
    return plan


def _difference(found: Replanned) -> Document | None:
    """The best less going on, part by part: negative is saved."""
    if found.going_on is None or not isinstance(found.best, Planned):
        return None
    stays, best = found.going_on.course, found.best
    chances = stays.deadline_probability, best.deadline_probability
    return {
        "usd": usd_text(best.cost.expected - stays.cost.expected),
        "breakdown": {name: usd_text(getattr(best.cost, name) - getattr(stays.cost, name)) for name in _PARTS},
        "hours": _round(best.hours.expected - stays.hours.expected),
        "hours_confident": _round(best.hours.confident - stays.hours.confident),
        "deadline_probability": None if chances[0] is None or chances[1] is None else _round(chances[1] - chances[0]),
    }


def _holds(found: Replanned) -> Document | None:
    if found.holds is None:
        return None
    price, slower = found.holds.price, found.holds.slower
    return {
        "usd_per_node_hour": None if price is None else usd_text(price),
        "times_slower": None if slower is None else _round(slower),
    }


def _infeasible(found: Replanned, best: Infeasible, body: Document) -> Document:
    """As a plan says it, each way out also as it would stand in the job, whose limits count from its start."""
    ways = [
        shown | {"in_all": "; ".join(in_all(found, each.requirements, each.needed, each.choice))}
        for each, shown in zip(best.relaxations, body["relaxations"], strict=True)
    ]
    kept = ("conflicts", "searched_nodes", "nearest_plan", "offers_considered", "rejected")
    return {name: body[name] for name in kept} | {"relaxations": ways}


def _parts(cost: Cost) -> Document:
    return {name: usd_text(getattr(cost, name)) for name in _PARTS}


def _round(value: float) -> float:
    return float(f"{value:.9g}")
