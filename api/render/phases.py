"""What a plan of several phases does when: which machines start, how much of the work they do, and what is moved."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import RenderableType

from api.render.machines import place, rented
from api.render.tables import bullets, heading, listing
from api.render.text import duration, located, number, percent, usd, when

Part = Mapping[str, Any]


def render_schedule(phases: Sequence[Part]) -> list[RenderableType]:
    """A row per phase in the order of their start, and a sentence per move; nothing for a plan that never moves."""
    if len(phases) < 2:
        return []
    titles = ("starts", "on", "share of the work", "takes", "costs")
    rows = [_row(phase) for phase in phases]
    moves = [_move(phase) for phase in phases if phase.get("moved")]
    return [heading("What happens when"), listing(titles, rows, right=(2, 3, 4)), *bullets(moves)]


def _row(phase: Part) -> tuple[object, ...]:
    on = f"{rented(phase)}, {place(phase)}"
    share, cost = phase.get("share"), phase.get("cost_usd") or {}
    return (
        when(phase.get("starts_at")),
        on,
        percent(share, 1),
        duration(phase["hours"]),
        usd(cost.get("expected")),
    )


def _move(phase: Part) -> str:
    """What must be done for a phase to take over, and what that costs."""
    moved = phase["moved"]
    origin = moved["from"]
    what = f"checkpoint of {number(moved['checkpoint_gb'])} GB"
    came_from = f"{origin['instance_type']} in {origin['provider']} {located(origin['region'], origin.get('zone'))}"
    said = f"at {when(phase.get('starts_at'))}, {came_from} has written a {what} and is given back"
    if (origin["provider"], origin["region"]) != (phase["provider"], phase["region"]):
        said += f"; it goes to {phase['provider']} {phase['region']}"
        if moved["data_gb"]:
            said += f", where {number(moved['data_gb'])} GB of data are brought beforehand"
        said += f", for {usd(moved['egress_usd'])} of egress"
    return f"{said}; {rented(phase)} reads it and goes on"
