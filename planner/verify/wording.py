"""A requirement in words: what the job asks for, and what it would have to allow."""

import math

from catalog.accelerators import accelerators
from catalog.money import usd_display, usd_micros
from catalog.price_kinds import price_kinds
from catalog.quantities import MAX_HOURS
from catalog.regions import regions
from planner.job import TrainingJob
from planner.verify.named import Named

MICROS_PER_CENT = 10_000


def asked(job: TrainingJob, name: str) -> str:
    """What a job asks for by a requirement."""
    match name:
        case "deadline":
            return f"{job.deadline_hours:.6g} h"
        case "budget_usd":
            return usd_display(usd_micros(job.budget_usd or 0.0))
        case "training.precision":
            return job.training.precision
        case "objective":
            return job.objective
        case "constraints.carbon_budget_kg":
            return f"{job.constraints.carbon_budget_kg:.6g} kg"
        case "constraints.price_kinds":
            kinds = job.constraints.price_kinds or [row.name for row in price_kinds().values() if row.in_default]
            return ", ".join(sorted(kinds))
    value = getattr(job.constraints, name.removeprefix("constraints."))
    return ", ".join(value) if isinstance(value, tuple) else str(value)


def needed(name: str, found: Named, micros: int, kept_hours: float, carbon_kg: float | None) -> str:
    """What the requirement would have to be for this configuration."""
    provider, region = found.lot.place
    each = found.lot.machine.type
    known = regions().get(found.lot.place)
    words = {
        "deadline": "none" if kept_hours > MAX_HOURS else f"{_four_digits_up(kept_hours)} h",
        "budget_usd": usd_display(math.ceil(micros / MICROS_PER_CENT) * MICROS_PER_CENT),
        "training.precision": "auto",
        "objective": "cost",
        "constraints.carbon_budget_kg": "none" if carbon_kg is None else f"{_four_digits_up(carbon_kg)} kg",
        "constraints.providers": provider,
        "constraints.accelerators": each.accelerator,
        "constraints.vendors": accelerators()[each.accelerator].vendor,
        "constraints.instance_types": each.name,
        "constraints.regions": f"{provider}:{region}",
        "constraints.geography": f"that of {provider}:{region}" if known is None else known.geography,
        "constraints.price_kinds": found.lot.kind.name,
        "constraints.max_nodes": str(found.nodes),
        "constraints.max_accelerators": str(found.nodes * each.devices),
    }
    return words[name]


def _four_digits_up(value: float) -> str:
    scale = 10.0 ** (3 - math.floor(math.log10(value)))
    return f"{math.ceil(value * scale) / scale:.6g}"
