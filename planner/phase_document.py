"""A configuration as documents show it: alone, as a phase of a plan with what is moved, and as what stands behind one."""

import math
from datetime import datetime, timedelta
from typing import Any

from catalog.money import usd_text
from planner.answer import Choice, Cost, Fallback, Moved, Phase
from planner.document_figures import count, maybe_rounded, moment, rounded
from planner.estimate.learned import NO_CORRECTION, Correction

Document = dict[str, Any]


def choice_document(choice: Choice) -> Document:
    """One configuration with its cost and time, as alternatives and frontier points show it."""
    return _where(choice) | {
        "cost_usd": usd_text(choice.cost.expected),
        "cost_p95_usd": usd_text(choice.cost.p95),
        "hours": rounded(choice.hours.expected),
        "hours_confident": rounded(choice.hours.confident),
    }


def _where(choice: Choice) -> Document:
    offer = choice.offer
    return {
        "provider": offer.provider,
        "region": offer.region,
        "zone": offer.zone,
        "instance_type": offer.instance_type,
        "accelerator": choice.accelerator,
        "accelerators_per_node": count(choice.accelerators_per_node),
        "nodes": choice.nodes,
        "slice_hosts": choice.instance_type.fixed_nodes,
        "price_kind": offer.price_kind,
        "usd_per_node_hour": usd_text(offer.usd_micros_per_hour),
    }


def phase_document(phase: Phase, start: datetime) -> Document:
    """A phase of a plan that begins at `start`: what runs, at which price, how fast, its share, cost and what it takes over."""
    choice, offer = phase.choice, phase.choice.offer
    return _where(choice) | {
        "role": phase.role,
        "starts_at": moment(start + timedelta(hours=phase.begins_hours)),
        "share": rounded(phase.share),
        "cost_usd": _expected(choice.cost),
        "moved": None if phase.moved is None else _moved(phase.moved),
        **_standby(phase, start),
        "price_observed_at": moment(offer.observed_at),
        "price_observed_approximately": offer.observed_approximately,
        "price_source": offer.source,
        "hours": rounded(choice.hours.expected),
        "training_hours": rounded(phase.training_hours),
        "hours_with_goodput": rounded(phase.hours_with_goodput),
        "precision": phase.precision,
        "layout": phase.layout,
        "throughput": {"value": rounded(phase.throughput), "unit": phase.unit},
        "mfu": rounded(phase.mfu),
        "memory_gib_per_accelerator": rounded(phase.memory_gib),
        "capacity_gib_per_accelerator": rounded(phase.capacity_gib),
        "log_sigma": rounded(phase.log_sigma),
        "interruptions_per_node_hour": rounded(phase.interruptions_per_hour),
        "checkpoint_interval_hours": maybe_rounded(phase.checkpoint_interval_hours),
        "expected_preemptions": rounded(phase.expected_preemptions),
        "modelled": list(offer.modelled),
        **_corrected(phase),
    }


def _moved(moved: Moved) -> Document:
    """Where a phase takes over from, and what is brought for it."""
    names = ("provider", "region", "zone", "instance_type")
    return {
        "from": {name: getattr(moved.origin, name) for name in names},
        "checkpoint_gb": rounded(moved.checkpoint_gb),
        "data_gb": rounded(moved.data_gb),
        "egress_usd": usd_text(moved.egress),
    }


def _standby(phase: Phase, start: datetime) -> Document:
    """How likely machines that stand by are used, and until when they must be taken; nothing of those that surely run."""
    if phase.probability is None or phase.switch_by_hours is None:
        return {}
    return {
        "probability": rounded(phase.probability),
        "switch_by": moment(start + timedelta(hours=phase.switch_by_hours)),
        "switch_by_hours": rounded(phase.switch_by_hours),
        **({} if phase.switch_share is None else {"switch_share": rounded(phase.switch_share)}),
    }


def fallback_document(fallback: Fallback | None, start: datetime) -> Document:
    """`{"fallback": ...}`: where a run on interruptible machines goes if it falls behind; nothing where none is known."""
    if fallback is None:
        return {}
    names = _where(fallback.standby.choice)
    return {
        "fallback": names
        | {
            "hours_with_goodput": rounded(fallback.standby.hours_with_goodput),
            "ready_hours": rounded(fallback.ready_hours),
            "switch_by": moment(start + timedelta(hours=fallback.switch_by_hours)),
            "switch_by_hours": rounded(fallback.switch_by_hours),
            "switch_share": rounded(fallback.switch_share),
            "probability": rounded(fallback.probability),
            "deadline_probability": rounded(fallback.in_time),
            "extra_usd": usd_text(fallback.extra),
        }
    }


def cost_document(cost: Cost) -> Document:
    """Expected cost by part, and what half and 95 % of runs stay within, in USD."""
    return _expected(cost) | {"median": usd_text(cost.median), "p95": usd_text(cost.p95)}


def _expected(cost: Cost) -> Document:
    parts = ("compute", "storage", "egress", "power", "setup")
    return {
        "expected": usd_text(cost.expected),
        "breakdown": {part: usd_text(getattr(cost, part)) for part in parts},
    }


def correction_document(each: Correction) -> Document:
    """What is learned of one accelerator, null for all those without runs: factors, and how many runs say so."""
    return {
        "accelerator": each.accelerator or None,
        "hours_factor": rounded(each.hours.factor),
        "hours_runs": each.hours.runs,
        "memory_factor": rounded(each.memory.factor),
        "memory_runs": each.memory.runs,
        "variance_removed": rounded(each.variance_removed),
    }


def _corrected(phase: Phase) -> Document:
    """What of a phase's figures is learned, so that its runs can be held against the plain ones."""
    each = phase.correction
    if each is NO_CORRECTION:
        return {}
    before = math.sqrt(phase.log_sigma**2 + each.variance_removed)
    return {
        "learned": {
            "hours_factor": rounded(each.hours.factor),
            "memory_factor": rounded(each.memory.factor),
            "log_sigma_before": rounded(before),
        }
    }
