"""What stands behind machines that may be taken away: where to go, by when, and how likely that is."""

from collections.abc import Mapping
from typing import Any

from rich.console import RenderableType

from api.render.machines import machines, place, price
from api.render.tables import cell, facts, heading
from api.render.text import chance, duration, layout, percent, usd, when

Part = Mapping[str, Any]


def is_standby(phase: Part) -> bool:
    """Whether a phase runs only if the one before falls behind."""
    return phase.get("role") == "standby"


def render_standby(phase: Part) -> list[RenderableType]:
    """A phase that is planned for the case that the one before falls behind."""
    cost = phase["cost_usd"]["expected"]
    return [
        heading(f"What stands by: {machines(phase)}"),
        cell(_sentence(phase)),
        facts(
            [
                ("price", f"{price(phase)}, {place(phase)}"),
                ("used in", f"{chance(phase['probability'])} of runs"),
                ("adds", f"{usd(cost)} and {duration(phase['hours'])} on average over all runs, used or not"),
                ("would do all work in", duration(phase["hours_with_goodput"])),
                ("precision", phase.get("precision")),
                ("layout", layout(phase["layout"])),
            ]
        ),
    ]


def render_fallback(plan: Part) -> list[RenderableType]:
    """Where a plan on interruptible machines goes if it falls behind; nothing for plans without."""
    back = plan.get("fallback")
    if not back:
        return []
    return [
        heading("If it falls behind"),
        cell(_sentence(back)),
        facts(
            [
                (
                    "that happens in",
                    f"{chance(back['probability'])} of runs, which adds {usd(back['extra_usd'])} on average",
                ),
                ("in time with it", chance(back["deadline_probability"])),
                ("price", f"{price(back)}, {place(back)}"),
                (
                    "at any time",
                    f"go once what is left is {duration(back['ready_hours'])} and, times the share not saved, "
                    + duration(back["hours_with_goodput"]),
                ),
            ]
        ),
    ]


def _sentence(switch: Part) -> str:
    saved = percent(switch["switch_share"]) if switch.get("switch_share") is not None else "enough"
    return (
        f"If by {when(switch['switch_by'])} ({duration(switch['switch_by_hours'])} from the start) less than {saved} is "
        f"done, go to {machines(switch)} in {place(switch)}."
    )
