"""A replanned job as the JSON object of every interface; it does not depend on the clock.

Cost, hours and probabilities are those from `now` on, and shares are of the remaining work.
"""

import hashlib
import json
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from gpuplan.catalog.model.money import usd_text
from gpuplan.planner.model.outcome import CostMicros, NoPlan, Planned
from gpuplan.planner.replan.replan_answer import GoingOn, Replanned
from gpuplan.planner.replan.replan_text import in_all, summary
from gpuplan.planner.replan.running_job import UnderWay
from gpuplan.planner.serialization.phase_document import choice_document
from gpuplan.planner.serialization.plan_document import document
from gpuplan.planner.serialization.rounded_figures import moment

Document = dict[str, Any]

#: Fields of a plan's document that the replan states once for all, or that would mislead for a running job.
_OMITTED = (
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
    "actions",
)
_PARTS = ("compute", "storage", "egress", "power", "setup")
#: The label of alternatives without a move: continuing is one case, a single move another.
_ONE_CONFIGURATION = "on one configuration from now"


def replan_document(replanned: Replanned, job: Document, *, version: str) -> Document:
    """`{"outcome": "replanned" | "infeasible", "replan": {...}}`; `job` is the echoed job document."""
    whole = document(replanned.best, job, version=version)
    body = whole.get("plan") or whole["infeasible"]
    setup = f"{body['settings']['setup_hours']:g} h of paid set-up"
    goes_on = replanned.action == "continue"
    assumptions = [
        assumption for assumption in body.get("assumptions", []) if not (goes_on and assumption.startswith(setup))
    ]
    answer = {
        "job": job,
        "snapshot_id": body["snapshot_id"],
        "version": version,
        "settings": body["settings"],
        **({"learned": body["learned"]} if "learned" in body else {}),
        "currency": "USD",
        "start": moment(replanned.left.start),
        "now": moment(replanned.running.now),
        "running": _running(replanned),
        "left": _left(replanned),
        "summary": list(summary(replanned)),
        "action": replanned.action,
        "continue": None if replanned.going_on is None else _going_on(replanned.going_on, replanned.running),
        "best": _best(body) if isinstance(replanned.best, Planned) else None,
        "difference": _difference(replanned),
        "holds": _stays_optimal(replanned),
        "infeasible": _infeasible(replanned, replanned.best, body) if isinstance(replanned.best, NoPlan) else None,
        "assumptions": [*replanned.assumptions, *assumptions],
        "warnings": body["warnings"],
    }
    digest = hashlib.sha256(json.dumps(answer, sort_keys=True).encode()).hexdigest()
    outcome = "replanned" if isinstance(replanned.best, Planned) else "infeasible"
    return {"outcome": outcome, "replan": {"id": f"replan-{digest[:20]}"} | answer}


def _running(replanned: Replanned) -> Document:
    """The state of the job as it was understood."""
    given, seen = replanned.running, replanned.measured
    return {
        "on": None if replanned.machines is None else _machines(choice_document(replanned.machines)),
        "up": given.up and given.on is not None,
        "done": _round(replanned.left.done),
        "kept": _round(replanned.left.saved_share),
        "elapsed_hours": _round(replanned.left.elapsed_hours),
        "spent_usd": usd_text(round(given.spent_usd * 1e6)),
        "measured": None
        if seen is None
        else {name: value if isinstance(value, str) else _round(value) for name, value in asdict(seen).items()},
    }


def _machines(choice: Document) -> Document:
    """The machines, without the cost and time of doing all the work on them."""
    return {name: value for name, value in choice.items() if not name.startswith(("cost_", "hours"))}


def _left(replanned: Replanned) -> Document:
    job = replanned.left.job
    return {
        "share": _round(replanned.left.share),
        "deadline_hours": None if job.deadline_hours is None else _round(job.deadline_hours),
        "budget_usd": None if replanned.job.budget_usd is None else usd_text(_budget_left(replanned)),
    }


def _budget_left(replanned: Replanned) -> int:
    """The remaining budget; negative if more was spent."""
    return round(((replanned.job.budget_usd or 0.0) - replanned.running.spent_usd) * 1e6)


def _going_on(stays: GoingOn, running: UnderWay) -> Document:
    schedule = stays.schedule
    phase = schedule.phases[0]
    return choice_document(phase.choice) | {
        "possible": stays.possible,
        "breaks": list(stays.breaks),
        "breakdown": _parts(schedule.cost),
        "finishes_at": moment(running.now + timedelta(hours=schedule.hours.expected)),
        "deadline_probability": None
        if schedule.deadline_probability is None
        else _round(schedule.deadline_probability),
        "throughput": {"value": _round(phase.throughput), "unit": phase.unit},
        "carbon_kg": None if phase.carbon_kg is None else _round(phase.carbon_kg),
    }


def _best(body: Document) -> Document:
    plan = {name: value for name, value in body.items() if name not in _OMITTED}
    for alternative in plan["alternatives"]:
        if alternative["label"] == "without a move":
            alternative["label"] = _ONE_CONFIGURATION
    return plan


def _difference(replanned: Replanned) -> Document | None:
    """The best plan minus continuing, part by part: negative is a saving."""
    if replanned.going_on is None or not isinstance(replanned.best, Planned):
        return None
    stays, best = replanned.going_on.schedule, replanned.best
    chances = stays.deadline_probability, best.deadline_probability
    return {
        "usd": usd_text(best.cost.expected - stays.cost.expected),
        "breakdown": {name: usd_text(getattr(best.cost, name) - getattr(stays.cost, name)) for name in _PARTS},
        "hours": _round(best.hours.expected - stays.hours.expected),
        "hours_confident": _round(best.hours.confident - stays.hours.confident),
        "deadline_probability": None if chances[0] is None or chances[1] is None else _round(chances[1] - chances[0]),
    }


def _stays_optimal(replanned: Replanned) -> Document | None:
    if replanned.stays_optimal is None:
        return None
    price, slower = replanned.stays_optimal.price, replanned.stays_optimal.slower
    return {
        "usd_per_node_hour": None if price is None else usd_text(price),
        "times_slower": None if slower is None else _round(slower),
    }


def _infeasible(replanned: Replanned, best: NoPlan, body: Document) -> Document:
    """As in a plan; each relaxation also states the value for the job itself, whose limits count from its start."""
    ways = [
        shown | {"in_all": "; ".join(in_all(replanned, relaxation.requirements, relaxation.needed, relaxation.choice))}
        for relaxation, shown in zip(best.relaxations, body["relaxations"], strict=True)
    ]
    shared = ("conflicts", "searched_nodes", "nearest_plan", "offers_considered", "rejected")
    return {name: body[name] for name in shared} | {"relaxations": ways}


def _parts(cost: CostMicros) -> Document:
    return {name: usd_text(getattr(cost, name)) for name in _PARTS}


def _round(value: float) -> float:
    return float(f"{value:.9g}")
