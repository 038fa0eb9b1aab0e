"""Sections for a plan of several phases: start, machines, share of the work, and data moved."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from gpuplan.api.presentation.machine_phrases import place, rented
from gpuplan.api.presentation.sections import Block, Heading
from gpuplan.api.presentation.text_formatting import duration, located, number, percent, usd, when
from gpuplan.api.presentation.text_tables import bullets, heading, listing

Part = Mapping[str, Any]


def render_schedule(phases: Sequence[Part], start: str | None = None) -> list[Block | Heading]:
    """One row per phase in order of start, and one sentence per move; empty for a plan without moves.

    `start` is the start of the plan, if it differs from the start of its first machines.
    """
    if len(phases) < 2:
        return []
    titles = ("starts", "on", "share of the work", "takes", "costs")
    ends = _ends(phases, start)
    rows = [_row(phase, end) for phase, end in zip(phases, ends, strict=True)]
    moves = [_move(phase, end) for phase, end in zip(phases[1:], ends, strict=False) if phase.get("moved")]
    return [heading("Schedule", "schedule"), listing(titles, rows, right=(2, 3, 4)), *bullets(moves)]


def _ends(phases: Sequence[Part], start: str | None) -> list[datetime]:
    """Expected end of each phase. Hours count from the end of the previous phase and include waiting for machines."""
    at, steps = datetime.fromisoformat(start or phases[0]["starts_at"]), []
    for phase in phases:
        at += timedelta(hours=phase["hours"])
        steps.append(at)
    return steps


def _row(phase: Part, end: datetime) -> tuple[object, ...]:
    on = f"{rented(phase)}, {place(phase)}"
    share, cost = phase.get("share"), phase.get("cost_usd") or {}
    began = datetime.fromisoformat(phase["starts_at"])
    return (
        when(phase["starts_at"]),
        on,
        percent(share, 1),
        duration(max((end - began).total_seconds() / 3600, 0.0)),
        usd(cost.get("expected")),
    )


def _move(phase: Part, before_ends: datetime) -> str:
    """The steps and the cost of moving from the previous phase to this one."""
    moved = phase["moved"]
    origin = moved["from"]
    what = f"checkpoint of {number(moved['checkpoint_gb'])} GB"
    came_from = f"{origin['instance_type']} in {origin['provider']} {located(origin['region'], origin.get('zone'))}"
    given_back = when(before_ends.isoformat())
    step = f"at {given_back}, {came_from} writes a {what} and is released"
    if (origin["provider"], origin["region"]) != (phase["provider"], phase["region"]):
        step += f"; it goes to {phase['provider']} {phase['region']}"
        if moved["data_gb"]:
            step += f", where {number(moved['data_gb'])} GB of data are copied beforehand"
        step += f", for {usd(moved['egress_usd'])} of egress"
    later = "" if when(phase["starts_at"]) == given_back else f" at {when(phase['starts_at'])}"
    return f"{step}; {rented(phase)} reads it and continues{later}"
