"""What a plan can be handed over to: each tool that takes a phase of it, and why the others do not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from api.export.formats import PER_PHASE, WHOLE, one_export
from api.export.launcher import read_wishes
from catalog.errors import UnusableInput

Document = dict[str, Any]

#: What some formats need that no plan holds: in words, and one such to try them with.
ASKED = {"image": ("a container image", "registry.example/team/train:1.0"), "reservation": ("a reservation", "booked")}
#: What may be said of a file beside its command.
WISHES = (*ASKED, "run_limit", "checkpoints")


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """What can be had of one phase, or of the whole plan (`phase` is None), and the reasons for what cannot.

    `asking` are formats that need what is not in the plan: by name, with what has to be filled in.
    """

    phase: int | None
    formats: tuple[tuple[str, str], ...]
    asking: tuple[tuple[str, str], ...] = ()
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


def wishable(found: Sequence[Offered], wishes: Mapping[str, str]) -> tuple[tuple[str, str, str], ...]:
    """What may be filled in for a download: field, label and an example; a reservation only where one is needed or given."""
    booked = bool(wishes["reservation"]) or any("reservation" in needed for each in found for _, needed in each.asking)
    fields = (
        ("command", "Command", "python train.py"),
        ("image", "Container image", ASKED["image"][1]),
        ("checkpoints", "Checkpoints are kept in", "s3://my-bucket/llama-3-8b"),
        ("run_limit", "Run limit", "36h"),
    )
    return (*fields, ("reservation", "Reservation", "cr-0123456789abcdef0")) if booked else fields


def _phase(answer: Document, number: int, *, several: bool) -> Offered:
    formats, asking, refused = [], [], []
    for name in PER_PHASE:
        try:
            needed = _needed(answer, name, number)
        except UnusableInput as error:
            reason = error.faults[0].message.removeprefix(f"phase {number} cannot be exported: ")
            refused.append((name, reason))
            continue
        if needed:
            asking.append((name, " and ".join(ASKED[field][0] for field in needed)))
        else:
            formats.append((name, address(answer["plan"]["id"], name, phase=number if several else None)))
    return Offered(phase=number, formats=tuple(formats), asking=tuple(asking), refused=tuple(refused))


def _needed(answer: Document, name: str, number: int, given: tuple[str, ...] = ()) -> tuple[str, ...]:
    """What has to be filled in beside `given` for a phase to be had in a format. Raises `UnusableInput` if nothing helps."""
    wishes = read_wishes(command="python train.py", **{field: ASKED[field][1] for field in given})
    try:
        one_export(answer, to=name, phase=number, wishes=wishes)
    except UnusableInput as error:
        field = str(error.faults[0].path[0]) if error.faults[0].path else ""
        if field not in ASKED or field in given:
            raise
        return _needed(answer, name, number, (*given, field))
    return given


def address(plan_id: str, name: str, **query: object) -> str:
    """Where a plan can be had in a format."""
    given = {key: value for key, value in query.items() if value is not None}
    return f"/v1/plans/{plan_id}/export/{name}" + (f"?{urlencode(given)}" if given else "")
