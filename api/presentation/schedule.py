"""Sections for a plan of several phases: start, machines, share of the work, and data moved."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from gpuplan.api.presentation.phrases import offer, rented
from gpuplan.api.presentation.sections import Block, Heading
from gpuplan.api.presentation.text_formatting import duration, located, number, percent, usd, when
from gpuplan.api.presentation.text_tables import bullets, heading, listing
from gpuplan.planner.model.shared import Move, Phase


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
