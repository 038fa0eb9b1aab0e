"""A plan as the JSON object that every door gives: the shapes of the interface, nothing clock-bound.

Money is a decimal string of dollars, times are ISO 8601 in UTC. `id` is a hash of everything else
in the plan, so the same job, start, snapshot, settings and version give the same id.
"""

import hashlib
import json
import math
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

from catalog.money import usd_text
from planner.answer import (
    Alternative,
    Choice,
    Commitment,
    Cost,
    Fallback,
    Infeasible,
    Moved,
    Phase,
    Planned,
    Relaxation,
)
from planner.credits import Credited, after_credits
from planner.estimate.learned import NO_CORRECTION, Correction, Learned
from planner.optimise.single import Certificate
from planner.settings import PlannerSettings

Document = dict[str, Any]


def document(outcome: Planned | Infeasible, job: Document, *, version: str, inventory: str = "") -> Document:
    """`{"outcome": "planned", "plan": ...}` or `{"outcome": "infeasible", "infeasible": ...}`.

    `job` is the job's document as it is echoed, `version` that of gpuplan, `inventory` the id of the user's own
    machines, if there are any: whoever verifies the answer needs the same ones.
    """
    own = {"inventory": inventory} if inventory else {}
    if isinstance(outcome, Planned):
        return {"outcome": "planned", "plan": _identified(_plan(outcome, job, version) | own, "plan")}
    return {"outcome": "infeasible", "infeasible": _identified(_infeasible(outcome, job, version) | own, "none")}


def _identified(body: Document, prefix: str) -> Document:
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
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
        "cost_usd": _cost(plan.cost),
        "hours": {
            "expected": _round(plan.hours.expected),
            "confident": _round(plan.hours.confident),
            "p95": _round(plan.hours.p95),
        },
        "finishes_at": moment(plan.start + timedelta(hours=plan.hours.expected)),
        "deadline_probability": _maybe(plan.deadline_probability),
        "carbon_kg": _maybe(_sum([phase.carbon_kg for phase in plan.phases])),
        "phases": [_phase(phase, plan.start) for phase in plan.phases],
        **_fallback(plan.fallback, plan.start),
        "certificate": {
            "objective_usd": usd_text(round(certificate.objective_usd * 1e6)),
            "bound_usd": usd_text(round(certificate.bound_usd * 1e6)),
            "gap": certificate.gap,
            **_objective(certificate),
            "offers_considered": plan.proof.offers_considered,
            "configurations_considered": plan.proof.configurations_considered,
            "columns": certificate.columns,
            "rejected": dict(sorted(plan.proof.rejected.items())),
            "solver": certificate.solver,
            **({"over": list(certificate.over)} if certificate.over else {}),
        },
        "sensitivity": {
            "deadline_usd_per_hour": _round(plan.sensitivity.deadline_usd_per_hour),
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
    return {"objective": {"of": proof.of, "unit": UNITS[proof.of], "value": _round(value), "bound": _round(bound)}}


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
        "relaxations": [_relaxation(each) for each in answer.relaxations],
        "nearest_plan": None if nearest is None else choice_document(nearest) | {"breaks": list(answer.nearest_breaks)},
        "offers_considered": answer.offers_considered,
        "rejected": dict(sorted(answer.rejected.items())),
        "warnings": list(answer.warnings),
    }


def choice_document(choice: Choice) -> Document:
    """One configuration with its cost and time, as alternatives and frontier points show it."""
    return _where(choice) | {
        "cost_usd": usd_text(choice.cost.expected),
        "cost_p95_usd": usd_text(choice.cost.p95),
        "hours": _round(choice.hours.expected),
        "hours_confident": _round(choice.hours.confident),
    }


def _where(choice: Choice) -> Document:
    offer = choice.offer
    return {
        "provider": offer.provider,
        "region": offer.region,
        "zone": offer.zone,
        "instance_type": offer.instance_type,
        "accelerator": choice.accelerator,
        "accelerators_per_node": _count(choice.accelerators_per_node),
        "nodes": choice.nodes,
        "slice_hosts": choice.instance_type.fixed_nodes,
        "price_kind": offer.price_kind,
        "usd_per_node_hour": usd_text(offer.usd_micros_per_hour),
    }


def _phase(phase: Phase, start: datetime) -> Document:
    choice, offer = phase.choice, phase.choice.offer
    return _where(choice) | {
        "role": phase.role,
        "starts_at": moment(start + timedelta(hours=phase.begins_hours)),
        "share": _round(phase.share),
        "cost_usd": _expected(choice.cost),
        "moved": None if phase.moved is None else _moved(phase.moved),
        **_standby(phase, start),
        "price_observed_at": moment(offer.observed_at),
        "price_observed_approximately": offer.observed_approximately,
        "price_source": offer.source,
        "hours": _round(choice.hours.expected),
        "training_hours": _round(phase.training_hours),
        "hours_with_goodput": _round(phase.hours_with_goodput),
        "precision": phase.precision,
        "layout": phase.layout,
        "throughput": {"value": _round(phase.throughput), "unit": phase.unit},
        "mfu": _round(phase.mfu),
        "memory_gib_per_accelerator": _round(phase.memory_gib),
        "capacity_gib_per_accelerator": _round(phase.capacity_gib),
        "log_sigma": _round(phase.log_sigma),
        "interruptions_per_node_hour": _round(phase.interruptions_per_hour),
        "checkpoint_interval_hours": _maybe(phase.checkpoint_interval_hours),
        "expected_preemptions": _round(phase.expected_preemptions),
        "modelled": list(offer.modelled),
        **_corrected(phase),
    }


def _moved(moved: Moved) -> Document:
    """Where a phase takes over from, and what is brought for it."""
    names = ("provider", "region", "zone", "instance_type")
    return {
        "from": {name: getattr(moved.origin, name) for name in names},
        "checkpoint_gb": _round(moved.checkpoint_gb),
        "data_gb": _round(moved.data_gb),
        "egress_usd": usd_text(moved.egress),
    }


def _standby(phase: Phase, start: datetime) -> Document:
    """How likely machines that stand by are used, and until when they must be taken; nothing of those that surely run."""
    if phase.probability is None or phase.switch_by_hours is None:
        return {}
    return {
        "probability": _round(phase.probability),
        "switch_by": moment(start + timedelta(hours=phase.switch_by_hours)),
        "switch_by_hours": _round(phase.switch_by_hours),
        **({} if phase.switch_share is None else {"switch_share": _round(phase.switch_share)}),
    }


def _fallback(fallback: Fallback | None, start: datetime) -> Document:
    """`{"fallback": ...}`: where a run on interruptible machines goes if it falls behind; nothing where none is known."""
    if fallback is None:
        return {}
    names = _where(fallback.standby.choice)
    return {
        "fallback": names
        | {
            "hours_with_goodput": _round(fallback.standby.hours_with_goodput),
            "ready_hours": _round(fallback.ready_hours),
            "switch_by": moment(start + timedelta(hours=fallback.switch_by_hours)),
            "switch_by_hours": _round(fallback.switch_by_hours),
            "switch_share": _round(fallback.switch_share),
            "probability": _round(fallback.probability),
            "deadline_probability": _round(fallback.in_time),
            "extra_usd": usd_text(fallback.extra),
        }
    }


def _cost(cost: Cost) -> Document:
    return _expected(cost) | {"p95": usd_text(cost.p95)}


def _expected(cost: Cost) -> Document:
    parts = ("compute", "storage", "egress", "power", "setup")
    return {
        "expected": usd_text(cost.expected),
        "breakdown": {part: usd_text(getattr(cost, part)) for part in parts},
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
        "break_even_hours": _maybe(each.break_even_hours),
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
    return asdict(settings) | {
        "held": [asdict(each) for each in settings.held],
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


def correction_document(each: Correction) -> Document:
    """What is learned of one accelerator, null for all those without runs: factors, and how many runs say so."""
    return {
        "accelerator": each.accelerator or None,
        "hours_factor": _round(each.hours.factor),
        "hours_runs": each.hours.runs,
        "memory_factor": _round(each.memory.factor),
        "memory_runs": each.memory.runs,
        "variance_removed": _round(each.variance_removed),
    }


def _corrected(phase: Phase) -> Document:
    """What of a phase's figures is learned, so that its runs can be held against the plain ones."""
    each = phase.correction
    if each is NO_CORRECTION:
        return {}
    before = math.sqrt(phase.log_sigma**2 + each.variance_removed)
    return {
        "learned": {
            "hours_factor": _round(each.hours.factor),
            "memory_factor": _round(each.memory.factor),
            "log_sigma_before": _round(before),
        }
    }


def _step(step: tuple[float, int] | None, money: str) -> Document | None:
    return None if step is None else {"deadline_hours": _round(step[0]), money: usd_text(step[1])}


def moment(time: datetime) -> str:
    """A time as ISO 8601 in UTC to the second, `2026-11-21T08:00:00Z`."""
    return time.astimezone(UTC).replace(microsecond=0).isoformat().replace("+00:00", "Z")


def _sum(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _maybe(value: float | None) -> float | None:
    return None if value is None else _round(value)


def _round(value: float) -> float:
    """Nine significant digits: more than any input has, few enough that every machine prints the same."""
    return float(f"{value:.9g}")


def _count(value: float) -> float | int:
    return int(value) if value == int(value) else round(value, 4)
