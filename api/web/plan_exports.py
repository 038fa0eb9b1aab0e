"""Export links of a plan: the tools that accept a phase, and the reasons why others do not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from gpuplan.api.exports.export_formats import PER_PHASE, WHOLE, exported_phase
from gpuplan.api.exports.handover_reader import handover_of
from gpuplan.api.exports.launch_command import read_wishes
from gpuplan.api.exports.plan_handover import Handover, Phase
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.plan import Plan

#: Inputs that some formats need beside the plan: description and a sample value for trial exports.
ASKED = {"image": ("a container image", "registry.example/team/train:1.0"), "reservation": ("a reservation", "booked")}
#: Optional inputs of an exported file beside its command.
WISHES = (*ASKED, "run_limit", "checkpoints")


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """Formats available for one phase or the whole plan (`phase` is None), and reasons for unavailable ones.

    `needing_inputs` are formats that need further inputs: name and inputs to fill in.
    """

    phase: int | None
    formats: tuple[tuple[str, str], ...]
    needing_inputs: tuple[tuple[str, str], ...] = ()
    refused: tuple[tuple[str, str], ...] = ()


def handovers(plan: Plan) -> list[Offered]:
    """The formats of every phase by name and address, then those of the whole plan.

    Every export is tried, which takes a millisecond, so that no link leads to an error.
    """
    handover = handover_of(plan)
    whole = tuple((name, address(plan.id, name)) for name in WHOLE)
    return [*(_phase(handover, phase) for phase in handover.phases), Offered(phase=None, formats=whole)]


def wishable(offereds: Sequence[Offered], wishes: Mapping[str, str]) -> tuple[tuple[str, str, str], ...]:
    """Inputs of a download: field, label and example; a reservation only if needed or given."""
    booked = bool(wishes["reservation"]) or any(
        "reservation" in needed for offered in offereds for _, needed in offered.needing_inputs
    )
    fields = (
        ("command", "Command", "python train.py"),
        ("image", "Container image", ASKED["image"][1]),
        ("checkpoints", "Checkpoint location", "s3://my-bucket/llama-3-8b"),
        ("run_limit", "Run limit", "36h"),
    )
    return (*fields, ("reservation", "Reservation", "cr-0123456789abcdef0")) if booked else fields


def _phase(handover: Handover, phase: Phase) -> Offered:
    formats, needing, refused = [], [], []
    number = phase.number if len(handover.phases) > 1 else None
    for name in PER_PHASE:
        try:
            needed = _needed(handover, phase, name)
        except UnusableInput as error:
            reason = error.faults[0].message.removeprefix(f"phase {phase.number} cannot be exported: ")
            refused.append((name, reason))
            continue
        if needed:
            needing.append((name, " and ".join(ASKED[field][0] for field in needed)))
        else:
            formats.append((name, address(handover.plan_id, name, phase=number)))
    return Offered(phase=phase.number, formats=tuple(formats), needing_inputs=tuple(needing), refused=tuple(refused))


def _needed(handover: Handover, phase: Phase, name: str, given: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Inputs required beside `given` to export a phase in a format. Raises `UnusableInput` if it is impossible."""
    wishes = read_wishes(command="python train.py", **{field: ASKED[field][1] for field in given})
    try:
        exported_phase(handover, phase, name, wishes)
    except UnusableInput as error:
        field = str(error.faults[0].path[0]) if error.faults[0].path else ""
        if field not in ASKED or field in given:
            raise
        return _needed(handover, phase, name, (*given, field))
    return given


def address(plan_id: str, name: str, **query: object) -> str:
    """The address of a plan's export in a format."""
    given = {key: value for key, value in query.items() if value is not None}
    return f"/v1/plans/{plan_id}/export/{name}" + (f"?{urlencode(given)}" if given else "")
