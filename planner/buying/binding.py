"""Which of the limits at home, in the lab or of the budget hold the answer back, and what each costs.

A limit binds where the best answer without it, all others kept, costs less. Two that say the same (power and cooling of
one machine) may bind only together; then they are named together, with what the answer without both saves.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from planner.buying.answer import Binding
from planner.buying.forecast import Machine
from planner.buying.model import Model
from planner.buying.sensitivity import MOST_SHARES
from planner.buying.served import Served
from planner.buying.words import source_name
from planner.optimise.buying import Expanded, expand

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


def binding(given: Served, model: Model, best: Expanded, words: Callable[[Floats], str]) -> tuple[Binding, ...]:
    """The limits that bind, in the order in which they are stated; those that bind together as one."""
    names = model.limits
    found = [b for k in range(len(names)) if (b := _freed(given, model, best, (k,), words)) is not None]
    if found or len(names) < 2:
        return tuple(found)
    together = _freed(given, model, best, tuple(range(len(names))), words)
    if together is None:
        return ()
    tight = tuple(k for k in range(len(names)) if _short(given, model, best, k))
    fewer = _freed(given, model, best, tight, words) if len(tight) > 1 else None
    return (together if fewer is None else fewer,)


def _freed(
    given: Served, model: Model, best: Expanded, limits: tuple[int, ...], words: Callable[[Floats], str]
) -> Binding | None:
    """What the answer would be without these limits; None if it would cost no less."""
    data = model.expansion
    kept = np.array([k not in limits for k in range(len(model.limits))], np.bool_)
    other = expand(
        replace(data, uses=data.uses[kept], available=data.available[kept]),
        likely=best.units > 0,
        most_shares=MOST_SHARES,
    )
    if other is None or best.objective_usd - other.objective_usd <= _TOLERANCE * max(1.0, abs(best.objective_usd)):
        return None
    k = next((each for each in limits if _short(given, model, best, each)), limits[0])
    return Binding(
        limit=" and ".join(model.limits[each] for each in limits),
        used=float(data.uses[k] @ best.units),
        available=float(data.available[k]),
        short=_short(given, model, other, k, best),
        instead=words(other.units),
        saves_usd=best.objective_usd - other.objective_usd,
    )


def _short(given: Served, model: Model, wanted: Expanded, k: int, best: Expanded | None = None) -> str:
    """What one more of a machine in the answer would need of limit `k`; empty where there is room for it."""
    data = model.expansion
    have = wanted if best is None else best
    used, most = float(data.uses[k] @ have.units), float(data.available[k])
    for u, unit in enumerate(model.units):
        source, needs = given.sources[unit.source], float(data.uses[k, u])
        more = wanted.units[u] > have.units[u] if best is not None else wanted.units[u] > 0
        if needs and more and used + needs > most * (1 + 1e-9):
            name = source_name(given, source)
            what = "machine" if isinstance(source, Machine) else "node"
            number = round(float(have.units[u])) + 1
            return (
                f"{what} number {number} of {name} would bring the need to {used + needs:,.0f} {UNITS[model.limits[k]]}, "
                f"and there are {most:,.0f}"
            )
    return ""
