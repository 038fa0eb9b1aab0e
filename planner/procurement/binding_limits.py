"""The limits on space, power and budget that bind the decision, and what each costs.

A limit binds if the best answer without it, under all other limits, costs less. Two limits that have the same effect
(power and cooling of one machine) may bind only together; they are then named together, with the saving without both.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.model.procurement import BindingLimit
from gpuplan.planner.procurement.capacity_expansion import Expanded, expand
from gpuplan.planner.procurement.forecast import Machine
from gpuplan.planner.procurement.procurement_model import Model
from gpuplan.planner.procurement.procurement_parts import source_name
from gpuplan.planner.procurement.procurement_sensitivity import MOST_SHARES
from gpuplan.planner.procurement.rounded_figures import money, six_digits
from gpuplan.planner.procurement.served_jobs import Served

Floats = NDArray[np.float64]

#: Savings below this share of the cost are the solver's tolerance.
_TOLERANCE = 1e-6
UNITS = {
    "slots": "slots",
    "power_watts": "W of power",
    "cooling_watts": "W of cooling",
    "upfront_usd": "USD upfront",
    "machines": "machines",
}


def binding(given: Served, model: Model, best: Expanded, words: Callable[[Floats], str]) -> tuple[BindingLimit, ...]:
    """The limits that bind, in the order in which they are stated. Limits that bind together form one entry."""
    names = model.limits
    limits_found = [b for k in range(len(names)) if (b := _freed(given, model, best, (k,), words)) is not None]
    if limits_found or len(names) < 2:
        return tuple(limits_found)
    together = _freed(given, model, best, tuple(range(len(names))), words)
    if together is None:
        return ()
    tight = tuple(k for k in range(len(names)) if _short(given, model, best, k))
    fewer = _freed(given, model, best, tight, words) if len(tight) > 1 else None
    return (together if fewer is None else fewer,)


def _freed(
    given: Served, model: Model, best: Expanded, limits: tuple[int, ...], words: Callable[[Floats], str]
) -> BindingLimit | None:
    """The answer without these limits; None if it would not cost less."""
    data = model.expansion
    remaining = np.array([k not in limits for k in range(len(model.limits))], np.bool_)
    other = expand(
        replace(data, uses=data.uses[remaining], available=data.available[remaining]),
        likely=best.units > 0,
        most_shares=MOST_SHARES,
    )
    if other is None or best.objective_usd - other.objective_usd <= _TOLERANCE * max(1.0, abs(best.objective_usd)):
        return None
    k = next((limit for limit in limits if _short(given, model, best, limit)), limits[0])
    return BindingLimit(
        limit=" and ".join(model.limits[limit] for limit in limits),
        used=six_digits(float(data.uses[k] @ best.units)),
        available=six_digits(float(data.available[k])),
        short=_short(given, model, other, k, best),
        without_it=words(other.units),
        would_save_usd=money(best.objective_usd - other.objective_usd),
    )


def _short(given: Served, model: Model, wanted: Expanded, k: int, best: Expanded | None = None) -> str:
    """How much of limit `k` one more machine of the answer would need; empty if it fits."""
    data = model.expansion
    have = wanted if best is None else best
    used, most = float(data.uses[k] @ have.units), float(data.available[k])
    for u, unit in enumerate(model.units):
        source, needs = given.sources[unit.source], float(data.uses[k, u])
        wants_more = wanted.units[u] > have.units[u] if best is not None else wanted.units[u] > 0
        if needs and wants_more and used + needs > most * (1 + 1e-9):
            name = source_name(given, source)
            what = "machine" if isinstance(source, Machine) else "node"
            number = round(float(have.units[u])) + 1
            return (
                f"{what} number {number} of {name} would bring the need to {used + needs:,.0f} {UNITS[model.limits[k]]}, "
                f"and there are {most:,.0f}"
            )
    return ""
