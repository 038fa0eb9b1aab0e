"""Sections for the standby behind interruptible machines: machines, switch time and probability."""

from collections.abc import Mapping
from typing import Any

from gpuplan.api.presentation.machine_phrases import machines, place, price
from gpuplan.api.presentation.sections import Block, Heading
from gpuplan.api.presentation.text_formatting import chance, duration, layout, percent, usd, when
from gpuplan.api.presentation.text_tables import cell, facts, heading

Part = Mapping[str, Any]


def is_standby(phase: Part) -> bool:
    """Whether the phase runs only if the previous one falls behind."""
    return phase.get("role") == "standby"


def render_standby(phase: Part) -> list[Block | Heading]:
    """A standby phase, which takes over if the previous one falls behind."""
    cost = phase["cost_usd"]["expected"]
    return [
        heading(f"Standby: {machines(phase)}", "runs"),
        cell(_sentence(phase)),
        facts(
            [
                ("price", f"{price(phase)}, {place(phase)}"),
                ("used in", f"{chance(phase['probability'])} of runs"),
                ("adds", f"{usd(cost)} and {duration(phase['hours'])} on average over all runs"),
                ("time for all work", duration(phase["hours_with_goodput"])),
                ("precision", phase.get("precision")),
                ("layout", layout(phase["layout"])),
            ]
        ),
    ]


def render_contingency_standby(plan: Part) -> list[Block | Heading]:
    """The standby of a plan on interruptible machines that falls behind; empty for plans without one."""
    back = plan.get("fallback")
    if not back:
        return []
    return [
        heading("If it falls behind", "fallback"),
        cell(_sentence(back)),
        facts(
            [
                (
                    "probability",
                    f"{chance(back['probability'])} of runs, which adds {usd(back['extra_usd'])} on average",
                ),
                ("probability of meeting the deadline", chance(back["deadline_probability"])),
                ("price", f"{price(back)}, {place(back)}"),
                (
                    "at any time",
                    f"switch once the time left is {duration(back['ready_hours'])} plus the unsaved share of "
                    + duration(back["hours_with_goodput"]),
                ),
            ]
        ),
    ]


def _sentence(switch: Part) -> str:
    saved = percent(switch["switch_share"]) if switch.get("switch_share") is not None else "enough"
    return (
        f"If by {when(switch['switch_by'])} ({duration(switch['switch_by_hours'])} from the start) less than {saved} is "
        f"done, switch to {machines(switch)} in {place(switch)}."
    )
