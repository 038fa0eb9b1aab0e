"""What a plan can be handed over to: each tool that takes a phase of it, and why the others do not."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from api.export.formats import PER_PHASE, WHOLE, one_export
from api.export.launcher import read_wishes
from catalog.errors import UnusableInput

Document = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """What can be had of one phase, or of the whole plan (`phase` is None), and the reasons for what cannot."""

    phase: int | None
    formats: tuple[tuple[str, str], ...]
    refused: tuple[tuple[str, str], ...] = ()


def handovers(answer: Document) -> list[Offered]:
    """Every phase with the formats that take it, by name and address, then those of the whole plan.

    Each is tried, which takes a millisecond: so no link leads to a refusal.
    """
    plan = answer["plan"]
    several = len(plan["phases"]) > 1
    found = [_phase(answer, number, several=several) for number in range(1, len(plan["phases"]) + 1)]
    whole = tuple((name, address(plan["id"], name)) for name in WHOLE)
    return [*found, Offered(phase=None, formats=whole)]


def _phase(answer: Document, number: int, *, several: bool) -> Offered:
    formats, refused = [], []
    wishes = read_wishes(command="python train.py")
    for name in PER_PHASE:
        try:
            one_export(answer, to=name, phase=number, wishes=wishes)
        except UnusableInput as error:
            reason = error.faults[0].message.removeprefix(f"phase {number} cannot be exported: ")
            refused.append((name, reason))
        else:
            formats.append((name, address(answer["plan"]["id"], name, phase=number if several else None)))
    return Offered(phase=number, formats=tuple(formats), refused=tuple(refused))


def address(plan_id: str, name: str, **query: object) -> str:
    """Where a plan can be had in a format."""
    given = {key: value for key, value in query.items() if value is not None}
    return f"/v1/plans/{plan_id}/export/{name}" + (f"?{urlencode(given)}" if given else "")
