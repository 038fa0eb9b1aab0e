"""What a plan of several phases does when: which machines start, how much of the work they do, and what is moved."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from rich.console import RenderableType

from api.render.machines import place, rented
from api.render.tables import bullets, heading, listing
from api.render.text import duration, located, number, percent, usd, when

Part = Mapping[str, Any]


def render_schedule(phases: Sequence[Part], start: str | None = None) -> list[RenderableType]:
    """A row per phase in the order of their start, and a sentence per move; nothing for a plan that never moves.

    `start` is when the plan begins, if that is not when its first machines do.
    """
    if len(phases) < 2:
        return []
    titles = ("starts", "on", "share of the work", "takes", "costs")
    ends = _ends(phases, start)
    rows = [_row(phase, end) for phase, end in zip(phases, ends, strict=True)]
    moves = [_move(phase, end) for phase, end in zip(phases[1:], ends, strict=False) if phase.get("moved")]
    return [heading("What happens when"), listing(titles, rows, right=(2, 3, 4)), *bullets(moves)]


def _ends(phases: Sequence[Part], start: str | None) -> list[datetime]:
    """When each phase is expected to end: its hours count from the end of the one before, waits for machines included."""
    at, found = datetime.fromisoformat(start or phases[0]["starts_at"]), []
    for phase in phases:
        at += timedelta(hours=phase["hours"])
        found.append(at)
    return found


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
    """What must be done for a phase to take over once the one before has ended, and what that costs."""
    moved = phase["moved"]
    origin = moved["from"]
    what = f"checkpoint of {number(moved['checkpoint_gb'])} GB"
    came_from = f"{origin['instance_type']} in {origin['provider']} {located(origin['region'], origin.get('zone'))}"
    given_back = when(before_ends.isoformat())
    said = f"at {given_back}, {came_from} has written a {what} and is given back"
    if (origin["provider"], origin["region"]) != (phase["provider"], phase["region"]):
        said += f"; it goes to {phase['provider']} {phase['region']}"
        if moved["data_gb"]:
            said += f", where {number(moved['data_gb'])} GB of data are brought beforehand"
        said += f", for {usd(moved['egress_usd'])} of egress"
    later = "" if when(phase["starts_at"]) == given_back else f" at {when(phase['starts_at'])}"
    return f"{said}; {rented(phase)} reads it and goes on{later}"
