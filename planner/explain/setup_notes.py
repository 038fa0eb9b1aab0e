"""The sentence on the set-up of a phase: stated, or modelled with its parts, band and sources."""

import math

from gpuplan.catalog.model.setup_times import SLOWEST, setup_times
from gpuplan.planner.candidates.setup_hours import parts_of_one_node
from gpuplan.planner.model.outcome import PhaseChoice

#: What the set-up of every phase is called.
PAID_SETUP = "h of paid set-up before the first step"


def setup_assumption(phase: PhaseChoice, stated_hours: float | None) -> str:
    """Hours of set-up of the phase's machines, and where they come from."""
    if stated_hours is not None:
        return f"{stated_hours:g} {PAID_SETUP} (boot, image, start)"
    choice, slowest = phase.choice, setup_times()[SLOWEST, "", ""]
    boot, image, start = parts_of_one_node(choice.offer.provider, choice.accelerator, choice.offer.price_kind)
    of_one_node, logarithm = (boot, image, start), math.log(choice.nodes)
    low, high = (
        (sum(getattr(part, name) for part in of_one_node) + getattr(slowest, name) * logarithm) / 60
        for name in ("low", "high")
    )
    parts = [
        f"{name} {part.minutes:g} min ({part.basis}: {part.source})"
        for name, part in zip(("boot", "image", "start"), of_one_node, strict=True)
        if part.minutes
    ]
    if choice.nodes > 1:
        parts.append(
            f"{slowest.minutes * logarithm:.2g} min for the slowest of {choice.nodes} nodes "
            f"({slowest.basis}: {slowest.source})"
        )
    return (
        f"{phase.setup_hours:.2g} {PAID_SETUP}, modelled (band {low:.2g} to {high:.2g} h): {'; '.join(parts)}; "
        "set setup_hours to change it"
    )
