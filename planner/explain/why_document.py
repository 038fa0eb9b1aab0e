"""An explanation as the JSON object that every door gives: nothing clock-bound, money as decimal strings of dollars."""

import hashlib
import json
from typing import Any

from catalog.money import usd_text
from planner.answer import Cost, Infeasible, Planned, Relaxation
from planner.candidates.carbon import ASSUMED
from planner.document import UNITS
from planner.document_figures import moment
from planner.explain.binding import Binding
from planner.explain.break_even import BreakEven, Joining
from planner.explain.frontier3 import Frontier3
from planner.explain.infeasible import searched_nodes
from planner.explain.steps import Change, Step, Steps, carbon_of
from planner.explain.why import About, Run, Why
from planner.explain.why_words import summary
from planner.job import TrainingJob
from planner.phase_document import choice_document

Document = dict[str, Any]

PARTS = ("compute", "storage", "egress", "power", "setup")
KNEE_RULE = (
    "the point that exceeds the least cost, the least time and the least carbon of the points considered by the smallest "
    "factor: no other stays within fewer times the best in all three"
)
#: Of one more unit of which, in the words of an answer.
_PER = {"deadline": "hour", "budget_usd": "usd", "constraints.carbon_budget_kg": "kg"}


def why_document(found: Why, job: Document, *, version: str) -> Document:
    """`{"outcome": "explained", "why": ...}`, or `infeasible` for a job without a plan; `job` as it is echoed."""
    chosen = found.chosen
    planned = isinstance(chosen, Planned)
    body = {
        "job": job,
        "snapshot_id": chosen.snapshot_id,
        "version": version,
        "start": moment(found.start),
        "currency": "USD",
        "objective": {"of": chosen.job.objective, "unit": UNITS[chosen.job.objective]},
        "summary": list(summary(found)),
        "plan": _plan(chosen) if isinstance(chosen, Planned) else None,
        "infeasible": _ruled_out(chosen, None) if isinstance(chosen, Infeasible) else None,
        "about": None if found.about is None else _about(found.about, chosen),
        "without_chosen": _other(found.without_chosen, chosen),
        "requirements": [_binding(each, chosen.job.objective) for each in found.bindings],
        "steps": None if found.steps is None else _steps(found.steps, chosen.job.objective),
        "frontier": _frontier(found.frontier),
        "assumptions": list(_assumptions(chosen.job)),
        "warnings": list(chosen.warnings),
    }
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    return {"outcome": "explained" if planned else "infeasible", "why": {"id": f"why-{digest[:20]}"} | body}


def _plan(plan: Run) -> Document:
    """A plan in short."""
    return {
        "cost_usd": usd_text(plan.cost.expected),
        "breakdown": _parts(plan.cost),
        "hours": _round(plan.hours.expected),
        "hours_confident": _round(plan.hours.confident),
        "carbon_kg": _maybe(carbon_of(plan.phases)),
        "phases": [
            choice_document(phase.choice) | {"role": phase.role, "share": _round(phase.share)} for phase in plan.phases
        ],
    }


def _parts(cost: Cost) -> Document:
    return {part: usd_text(getattr(cost, part)) for part in PARTS}


def _extra(other: Run, plan: Planned) -> Document:
    """What another plan costs and takes more, part by part; less is negative."""
    kg, mine = carbon_of(other.phases), carbon_of(plan.phases)
    return {
        "usd": usd_text(other.cost.expected - plan.cost.expected),
        "breakdown": {part: usd_text(getattr(other.cost, part) - getattr(plan.cost, part)) for part in PARTS},
        "hours_confident": _round(other.hours.confident - plan.hours.confident),
        "carbon_kg": None if kg is None or mine is None else _round(kg - mine),
    }


def _other(other: Run | Infeasible | None, plan: Planned | Infeasible) -> Document | None:
    """Another outcome of the same job beside the plan."""
    if other is None:
        return None
    if isinstance(other, Infeasible):
        return {"outcome": "infeasible", "plan": None, "extra": None, "ruled_out": _ruled_out(other, plan)}
    extra = _extra(other, plan) if isinstance(plan, Planned) else None
    return {"outcome": "planned", "plan": _plan(other), "extra": extra, "ruled_out": None}


def _about(about: About, plan: Planned | Infeasible) -> Document:
    named = about.named
    return {
        "named": {"text": named.text, "field": named.field, "names": list(named.names)},
        "verdict": about.verdict,
        "best": _other(about.best, plan),
        "wins_at": None if about.break_even is None else _wins_at(about.break_even),
        "joins_at": None if about.joining is None else _joins_at(about.joining),
        "without": _other(about.without, plan),
    }


def _wins_at(each: BreakEven) -> Document:
    return {
        "usd_per_node_hour": usd_text(each.wins_at),
        "now_usd_per_node_hour": usd_text(each.price),
        "discount_percent": _round(each.discount_percent),
        "on": choice_document(each.choice),
    }


def _joins_at(each: Joining) -> Document:
    return {
        "usd_per_node_hour": usd_text(each.joins_at),
        "now_usd_per_node_hour": usd_text(each.price),
        "on": choice_document(each.choice),
    }


def _ruled_out(found: Infeasible, plan: Planned | Infeasible | None) -> Document:
    """Which requirements leave no plan, and by how much each misses it."""
    return {
        "conflicts": [list(names) for names in found.conflicts],
        "searched_nodes": found.searched_nodes,
        "relaxations": [_relaxation(each, found.job, plan) for each in found.relaxations],
        "rejected": dict(sorted(found.rejected.items())),
        "warnings": list(found.warnings),
    }


def _relaxation(each: Relaxation, job: TrainingJob, plan: Planned | Infeasible | None) -> Document:
    cost = each.choice.cost.expected
    return {
        "requirement": " + ".join(each.requirements),
        "from": "; ".join(each.asked),
        "to": "; ".join(each.needed),
        "short_by": {name: short for name in each.requirements if (short := short_by(each, name, job)) is not None},
        "cost_usd": usd_text(cost),
        "extra_usd": usd_text(cost - plan.cost.expected) if isinstance(plan, Planned) else None,
        "plan": choice_document(each.choice),
    }


def short_by(each: Relaxation, name: str, job: TrainingJob) -> Document | None:
    """By how much a requirement that is a number is missed; None where it is none, or nobody knows."""
    choice, limits = each.choice, job.constraints
    misses: dict[str, tuple[float | None, float | None, str]] = {
        "deadline": (choice.hours.confident, job.deadline_hours, "hours"),
        "budget_usd": (choice.cost.expected / 1e6, job.budget_usd, "USD"),
        "constraints.max_nodes": (choice.nodes, limits.max_nodes, "nodes"),
        "constraints.max_accelerators": (
            choice.nodes * choice.instance_type.devices,
            limits.max_accelerators,
            "accelerators",
        ),
        "constraints.carbon_budget_kg": (each.carbon_kg, limits.carbon_budget_kg, "kg CO2e"),
    }
    took, limit, unit = misses.get(name, (None, None, ""))
    return None if took is None or limit is None else {"value": _round(took - limit), "unit": unit}


def _binding(each: Binding, objective: str) -> Document:
    return {
        "requirement": each.requirement,
        "asked": each.asked,
        "binds": each.gain > 0,
        "gain": {"value": _round(each.gain / 1e6), "unit": UNITS[objective]},
        "needed": each.needed,
        "plan": None if each.choice is None else choice_document(each.choice),
    }


def _steps(found: Steps, objective: str) -> Document:
    return {
        "slower": [_step(each) for each in found.slower],
        "faster": [_step(each) for each in found.faster],
        "changes": [_change(each) for each in found.changes],
        "duals": [
            {"requirement": name, "value": _round(worth), "unit": f"{UNITS[objective]} per {_PER[name]}"}
            for name, worth in found.duals.items()
        ],
    }


def _step(each: Step) -> Document:
    return {
        "deadline_hours": _round(each.deadline_hours),
        "extra_usd": usd_text(each.extra),
        "plan": choice_document(each.choice),
    }


def _change(each: Change) -> Document:
    in_hours = each.requirement == "deadline"
    return {
        "requirement": each.requirement,
        "by": {"value": each.by, "unit": "hours"} if in_hours else {"value": usd_text(round(each.by)), "unit": "USD"},
        "possible": each.extra is not None,
        "extra_usd": None if each.extra is None else usd_text(each.extra),
        "extra_hours": _maybe(each.extra_hours),
        "extra_carbon_kg": _maybe(each.extra_kg),
        "deadline_hours": _maybe(each.deadline_hours),
        "phases": [choice_document(choice) for choice in each.phases],
    }


def _frontier(found: Frontier3) -> Document:
    return {
        "points": [
            choice_document(each.choice)
            | {"carbon_kg": _round(each.carbon_kg), "within": each.within, "factor": _round(each.factor)}
            for each in found.points
        ],
        "knee": found.knee,
        "knee_rule": KNEE_RULE,
        "knee_among": found.among,
        "configurations": found.configurations,
        "unknown_carbon": list(found.unknown),
    }


def _assumptions(job: TrainingJob) -> tuple[str, ...]:
    """What the explanation itself takes for granted."""
    return (
        "the best plan on something named runs on it alone; the best plan without it uses none of it in any phase",
        "the price at which something wins, or is used in part, is that of one offer; the discount is off all its offers",
        f"what giving up a requirement gains is told over runs on one configuration of up to {searched_nodes(job):,} nodes",
        "moves between configurations may gain more than that by giving up a requirement",
        "steps, sums of money and the frontier are those of runs on one configuration; a day more or less is planned anew",
        "duals are those of the choice relaxed to a mix of configurations by share of the work",
        ASSUMED,
    )


def _maybe(value: float | None) -> float | None:
    return None if value is None else _round(value)


def _round(value: float) -> float:
    return float(f"{value:.9g}")
