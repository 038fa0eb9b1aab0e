"""Requirements as text: the stated value, and the value that would allow a configuration."""

import math

from gpuplan.catalog.model.money import usd_display, usd_micros
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.catalog.parsing.quantities import MAX_HOURS
from gpuplan.planner.model.job import TrainingJob
from gpuplan.planner.verify.eligibility_check import values_of
from gpuplan.planner.verify.named_offers import Named

MICROS_PER_CENT = 10_000


def asked(job: TrainingJob, name: str) -> str:
    """The value that a job states for a requirement."""
    match name:
        case "deadline":
            return f"{job.deadline_hours:.6g} h"
        case "budget_usd":
            return usd_display(usd_micros(job.budget_usd or 0.0))
        case "training.precision":
            return job.training.precision
        case "training.framework":
            return job.training.framework
        case "objective":
            return job.objective
        case "constraints.carbon_budget_kg":
            return f"{job.constraints.carbon_budget_kg:.6g} kg"
        case "constraints.price_kinds":
            kinds = job.constraints.price_kinds or [row.name for row in price_kinds().values() if row.in_default]
            return ", ".join(sorted(kinds))
    value = getattr(job.constraints, name.removeprefix("constraints."))
    return ", ".join(value) if isinstance(value, tuple) else str(value)


def needed(name: str, named: Named, micros: int, confident_hours: float, carbon_kg: float | None) -> str:
    """The value of the requirement that would allow this configuration."""
    offer_group = named.offer_group
    words = values_of(offer_group.machine.type, offer_group.place, offer_group.kind) | {
        "deadline": "none" if confident_hours > MAX_HOURS else f"{_four_digits_up(confident_hours)} h",
        "budget_usd": usd_display(math.ceil(micros / MICROS_PER_CENT) * MICROS_PER_CENT),
        "training.precision": "auto",
        "objective": "cost",
        "constraints.carbon_budget_kg": "none" if carbon_kg is None else f"{_four_digits_up(carbon_kg)} kg",
        "constraints.max_nodes": str(named.nodes),
        "constraints.max_accelerators": str(named.nodes * offer_group.machine.type.devices),
        "constraints.quotas": "ignore",
    }
    return words[name]


def _four_digits_up(value: float) -> str:
    scale = 10.0 ** (3 - math.floor(math.log10(value)))
    return f"{math.ceil(value * scale) / scale:.6g}"
