"""Sections for a plan of several phases: start, machines, share of the work, and data moved."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from gpuplan.api.presentation.phrases import machines, node_price, offer, place_and_kind, rented
from gpuplan.api.presentation.sections import Block, Heading
from gpuplan.api.presentation.text_formatting import (
    chance,
    done_below,
    duration,
    layout,
    located,
    number,
    percent,
    usd,
    when,
)
from gpuplan.api.presentation.text_tables import bullets, cell, facts, heading, listing
from gpuplan.planner.model.shared import ContingencyStandby, Move, Phase


def render_schedule(phases: Sequence[Phase], start: datetime | None = None) -> list[Block | Heading]:
    """One row per phase in order of start, and one sentence per move; empty for a plan without moves.

    `start` is the start of the plan, if it differs from the start of its first machines.
    """
    if len(phases) < 2:
        return []
    titles = ("starts", "on", "share of the work", "takes", "costs")
    ends = _ends(phases, start)
    rows = [_row(phase, end) for phase, end in zip(phases, ends, strict=True)]
    moves = [_move(phase, phase.moved, end) for phase, end in zip(phases[1:], ends, strict=False) if phase.moved]
    return [heading("Schedule", "schedule"), listing(titles, rows, right=(2, 3, 4)), *bullets(moves)]


def _ends(phases: Sequence[Phase], start: datetime | None) -> list[datetime]:
    """Expected end of each phase. Hours count from the end of the previous phase and include waiting for machines."""
    at, steps = start or phases[0].starts_at, []
    for phase in phases:
        at += timedelta(hours=phase.hours)
        steps.append(at)
    return steps


def _row(phase: Phase, end: datetime) -> tuple[object, ...]:
    return (
        when(phase.starts_at),
        offer(phase),
        percent(phase.share, 1),
        duration(max((end - phase.starts_at).total_seconds() / 3600, 0.0)),
        usd(phase.cost_usd.expected),
    )


def _move(phase: Phase, moved: Move, before_ends: datetime) -> str:
    """The steps and the cost of moving from the previous phase to this one."""
    origin = moved.from_
    what = f"checkpoint of {number(moved.checkpoint_gb)} GB"
    came_from = f"{origin.instance_type} in {origin.provider} {located(origin.region, origin.zone)}"
    given_back = when(before_ends)
    step = f"at {given_back}, {came_from} writes a {what} and is released"
    if (origin.provider, origin.region) != (phase.provider, phase.region):
        step += f"; it goes to {phase.provider} {phase.region}"
        if moved.data_gb:
            step += f", where {number(moved.data_gb)} GB of data are copied beforehand"
        step += f", for {usd(moved.egress_usd)} of egress"
    later = "" if when(phase.starts_at) == given_back else f" at {when(phase.starts_at)}"
    return f"{step}; {rented(phase)} reads it and continues{later}"


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
    by = f"{when(switch.switch_by)} ({duration(switch.switch_by_hours)} from the start)"
    to = f"{machines(switch)} in {place_and_kind(switch)}"
    return f"If by {by} {done_below(switch.switch_share)} is done, switch to {to}."
