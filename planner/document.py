"""A plan as the JSON object that every door gives: the shapes of the interface, nothing clock-bound.

Money is a decimal string of dollars, times are ISO 8601 in UTC. `id` is a hash of everything else
in the plan, so the same job, start, snapshot, settings and version give the same id.
"""

import hashlib
import json
from dataclasses import asdict, fields
from datetime import timedelta
from typing import Any

from catalog.money import usd_text
from planner.answer import (
    Alternative,
    Commitment,
    Infeasible,
    Planned,
    Relaxation,
)
from planner.credits import Credited, after_credits
from planner.document_figures import maybe_rounded, moment, rounded, summed
from planner.enumeration_document import enumeration_document
from planner.estimate.learned import Learned
from planner.optimise.single import Certificate
from planner.phase_document import (
    choice_document,
    correction_document,
    cost_document,
    fallback_document,
    phase_document,
)
from planner.run_limit import with_run_limits
from planner.settings import PlannerSettings

Document = dict[str, Any]


def document(outcome: Planned | Infeasible, job: Document, *, version: str, inventory: str = "") -> Document:
    """`{"outcome": "planned", "plan": ...}` or `{"outcome": "infeasible", "infeasible": ...}`.

    `job` is the job's document as it is echoed, `version` that of gpuplan, `inventory` the id of the user's own
    machines, if there are any: whoever verifies the answer needs the same ones.
    """
    own = {"inventory": inventory} if inventory else {}
    if isinstance(outcome, Planned):
        plan = with_run_limits(_plan(outcome, job, version), job.get("deadline"))
        return {"outcome": "planned", "plan": _identified(plan | own, "plan")}
    return {"outcome": "infeasible", "infeasible": _identified(_infeasible(outcome, job, version) | own, "none")}


#: As ids are made from documents: keys in order, whatever order they were put in.
_ORDERED = json.JSONEncoder(sort_keys=True)


def _identified(body: Document, prefix: str) -> Document:
    digest = hashlib.sha256(_ORDERED.encode(body).encode()).hexdigest()
    return {"id": f"{prefix}-{digest[:20]}"} | body


def _plan(plan: Planned, job: Document, version: str) -> Document:
    certificate = plan.proof.certificate
    credited = after_credits(plan) if plan.settings.credits else None
    return {
        "job": job,
        "snapshot_id": plan.snapshot_id,
        "version": version,
        "settings": _settings(plan.settings),
        **_learned(plan.learned),
        "start": moment(plan.start),
        "currency": "USD",
        "cost_usd": cost_document(plan.cost),
        "hours": {
            "expected": rounded(plan.hours.expected),
            "median": rounded(plan.hours.median),
            "confident": rounded(plan.hours.confident),
            "p95": rounded(plan.hours.p95),
        },
        "finishes_at": moment(plan.start + timedelta(hours=plan.hours.expected)),
        "deadline_probability": maybe_rounded(plan.deadline_probability),
        "carbon_kg": maybe_rounded(summed([phase.carbon_kg for phase in plan.phases])),
        "phases": [phase_document(phase, plan.start) for phase in plan.phases],
        **fallback_document(plan.fallback, plan.start),
        "certificate": {
            "objective_usd": usd_text(round(certificate.objective_usd * 1e6)),
            "bound_usd": usd_text(round(certificate.bound_usd * 1e6)),
            "gap": certificate.gap,
            **_objective(certificate),
            "offers_considered": plan.proof.offers_considered,
            "configurations_considered": plan.proof.configurations_considered,
            "columns": certificate.columns,
            "rejected": dict(sorted(plan.proof.rejected.items())),
            "enumeration": enumeration_document(plan.job),
            "solver": certificate.solver,
            **({"over": list(certificate.over)} if certificate.over else {}),
        },
        "sensitivity": {
            "deadline_usd_per_hour": rounded(plan.sensitivity.deadline_usd_per_hour),
            "next_cheaper": _step(plan.sensitivity.next_cheaper, "saves_usd"),
            "next_faster": _step(plan.sensitivity.next_faster, "costs_usd"),
            "holds_until_usd_per_node_hour": None
            if plan.sensitivity.holds_until is None
            else usd_text(plan.sensitivity.holds_until),
        },
        "alternatives": [_alternative(each) for each in plan.alternatives],
        "commitments": [_commitment(each) for each in plan.commitments],
        **({} if plan.frontier is None else {"frontier": [choice_document(each) for each in plan.frontier]}),
        **({} if credited is None else {"credits": _credits(credited)}),
        "assumptions": [*plan.assumptions, *_about_money(plan.settings, credited)],
        "warnings": list(plan.warnings),
    }


#: In what each objective is counted.
UNITS = {"cost": "USD", "time": "hours", "carbon": "kg CO2e"}


def _objective(proof: Certificate) -> Document:
    """What was made least, in its own unit; a plan of least cost has the figures that stand beside it."""
    value = proof.objective_usd if proof.objective is None else proof.objective
    bound = proof.bound_usd if proof.bound is None else proof.bound
    return {"objective": {"of": proof.of, "unit": UNITS[proof.of], "value": rounded(value), "bound": rounded(bound)}}


def _credits(found: Credited) -> Document:
    """What is left to pay once credits are used up, and the alternative that leaves less, if any."""
    least = found.least
    return {
        "applied_usd": usd_text(found.applied),
        "out_of_pocket_usd": usd_text(found.out_of_pocket),
        "least_out_of_pocket": None if least is None else {"label": least[0], "out_of_pocket_usd": usd_text(least[1])},
    }


def _about_money(settings: PlannerSettings, credited: Credited | None) -> list[str]:
    """What the user's own contracts change, as sentences."""
    said = []
    if settings.discounts:
        said.append(
            "prices are the negotiated ones where a discount holds; the source of such a price names its list price"
        )
    return said if credited is None else [*said, credited.sentence]


def _infeasible(answer: Infeasible, job: Document, version: str) -> Document:
    nearest = answer.nearest
    return {
        "job": job,
        "snapshot_id": answer.snapshot_id,
        "version": version,
        "settings": _settings(answer.settings),
        **_learned(answer.learned),
        "start": moment(answer.start),
        "conflicts": [list(names) for names in answer.conflicts],
        "searched_nodes": answer.searched_nodes,
        "relaxations": [_relaxation(each) for each in answer.relaxations],
        "nearest_plan": None if nearest is None else choice_document(nearest) | {"breaks": list(answer.nearest_breaks)},
        "offers_considered": answer.offers_considered,
        "rejected": dict(sorted(answer.rejected.items())),
        "warnings": list(answer.warnings),
    }


def _alternative(each: Alternative) -> Document:
    return (
        {"label": each.label}
        | choice_document(each.choice)
        | {
            "extra_usd": usd_text(each.extra),
            "meets_deadline": each.meets_deadline,
            "meets_budget": each.meets_budget,
        }
    )


def _commitment(each: Commitment) -> Document:
    return {
        "price_kind": each.offer.price_kind,
        "instance_type": each.offer.instance_type,
        "region": each.offer.region,
        "nodes": each.nodes,
        "usd_per_node_hour": usd_text(each.offer.usd_micros_per_hour),
        "total_obligation_usd": usd_text(each.obligation),
        "break_even_hours": maybe_rounded(each.break_even_hours),
    }


def _relaxation(each: Relaxation) -> Document:
    return {
        "requirement": " + ".join(each.requirements),
        "from": "; ".join(each.asked),
        "to": "; ".join(each.needed),
        "cost_usd": usd_text(each.choice.cost.expected),
        "plan": choice_document(each.choice),
    }


def _settings(settings: PlannerSettings) -> Document:
    return {each.name: getattr(settings, each.name) for each in fields(PlannerSettings)} | {
        "held": [asdict(each) for each in settings.held],
        "held_spend": [asdict(each) for each in settings.held_spend],
        "discounts": [
            {name: value for name, value in asdict(each).items() if value not in ("", None)}
            for each in settings.discounts
        ],
        "credits": [
            {"provider": each.provider, "usd": each.usd}
            | ({} if each.expires is None else {"expires": moment(each.expires)})
            for each in settings.credits
        ],
    }


def _learned(learned: Learned) -> Document:
    """`{"learned": ...}`, what past runs teach of this class of work; nothing where there are none."""
    if not learned:
        return {}
    found = (*learned.corrections, learned.others)
    return {"learned": {"task": learned.task, "corrections": [correction_document(each) for each in found]}}


def _step(step: tuple[float, int] | None, money: str) -> Document | None:
    return None if step is None else {"deadline_hours": rounded(step[0]), money: usd_text(step[1])}
