"""Sections for the standby behind interruptible machines: machines, switch time and probability."""

from gpuplan.api.presentation.phrases import machines, node_price, place_and_kind
from gpuplan.api.presentation.sections import Block, Heading
from gpuplan.api.presentation.text_formatting import chance, duration, layout, percent, usd, when
from gpuplan.api.presentation.text_tables import cell, facts, heading
from gpuplan.planner.model.shared import ContingencyStandby, Phase


def render_standby(phase: Phase) -> list[Block | Heading]:
    """A standby phase, which takes over if the previous one falls behind."""
    cost = phase.cost_usd.expected
    return [
        heading(f"Standby: {machines(phase)}", "runs"),
        cell(_sentence(phase)),
        facts(
            [
                ("price", f"{node_price(phase)}, {place_and_kind(phase)}"),
                ("used in", f"{chance(phase.probability)} of runs"),
                ("adds", f"{usd(cost)} and {duration(phase.hours)} on average over all runs"),
                ("time for all work", duration(phase.hours_with_goodput)),
                ("precision", phase.precision),
                ("layout", layout(phase.layout)),
            ]
        ),
    ]


def render_contingency_standby(back: ContingencyStandby | None) -> list[Block | Heading]:
    """The standby of a plan on interruptible machines that falls behind; empty for plans without one."""
    if back is None:
        return []
    return [
        heading("If it falls behind", "fallback"),
        cell(_sentence(back)),
        facts(
            [
                (
                    "probability",
                    f"{chance(back.probability)} of runs, which adds {usd(back.extra_usd)} on average",
                ),
                ("probability of meeting the deadline", chance(back.deadline_probability)),
                ("price", f"{node_price(back)}, {place_and_kind(back)}"),
                (
                    "at any time",
                    f"switch once the time left is {duration(back.ready_hours)} plus the unsaved share of "
                    + duration(back.hours_with_goodput),
                ),
            ]
        ),
    ]


def _sentence(switch: Phase | ContingencyStandby) -> str:
    saved = percent(switch.switch_share) if switch.switch_share is not None else "enough"
    return (
        f"If by {when(switch.switch_by)} ({duration(switch.switch_by_hours)} from the start) less than {saved} is "
        f"done, switch to {machines(switch)} in {place_and_kind(switch)}."
    )
