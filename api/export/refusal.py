"""What a tool cannot do is refused with the reason: never written down wrong."""

from collections.abc import Mapping

from api.export.handover import CLOUDS, Phase, Wishes
from catalog.errors import UnusableInput

#: Kinds of machines that are booked before they start, and so need the name of what was booked.
BOOKED = {
    "capacity_block": "buy the block first (aws ec2 describe-capacity-block-offerings, then purchase-capacity-block)"
    " and give the id of its capacity reservation, cr-...",
    "calendar": "request the machines first (gcloud compute future-reservations create) and give the reservation's name",
}
#: Which provider sells each of the kinds that only one has.
SOLD_BY = {"capacity_block": "aws", "flex_start": "gcp", "calendar": "gcp"}


def refuse(phase: Phase, reason: str) -> UnusableInput:
    """The refusal of one phase."""
    return UnusableInput.at("phase", message=f"phase {phase.number} cannot be exported: {reason}")


def need_cloud(phase: Phase, tool: str, *providers: str, instead: str = "kubernetes or slurm") -> None:
    """Refuse phases of other providers than the tool drives."""
    if phase.provider == "local" and "local" not in providers:
        raise refuse(phase, f"it runs on own machines, which {tool} does not start; export it to {instead}")
    if phase.provider not in providers:
        accepted = ", ".join(CLOUDS.get(each, "own machines") for each in providers)
        raise refuse(phase, f"it runs on {CLOUDS[phase.provider]}, and {tool} is for {accepted}")
    seller = SOLD_BY.get(phase.kind.name)
    if seller is not None and seller != phase.provider:
        raise refuse(phase, f"{phase.kind.name} is sold by {CLOUDS[seller]}, not by {CLOUDS[phase.provider]}")


def need_no_slice(phase: Phase, tool: str) -> None:
    """Refuse TPU slices, which are started as a whole and run no torchrun."""
    if phase.is_slice:
        raise refuse(
            phase,
            f"it is a slice of {phase.accelerator.name}, which {tool} is not given; export it to gcloud, skypilot or jobset",
        )


def need_kind(phase: Phase, tool: str, unsupported: Mapping[str, str]) -> None:
    """Refuse price kinds that the tool has no word for; `unsupported` says by kind why."""
    reason = unsupported.get(phase.kind.name)
    if reason is not None:
        raise refuse(phase, f"{tool} {reason}; export it to {'aws-cli' if phase.provider == 'aws' else 'gcloud'}")


def need_nothing(wishes: Wishes, what: str, why: str) -> None:
    """Refuse an image or a reservation where there is no place for one."""
    for field in ("image", "reservation"):
        if getattr(wishes, field) is not None:
            raise UnusableInput.at(field, message=f"is not for {what}: {why}; leave it out")


def booked(phase: Phase, wishes: Wishes) -> str | None:
    """The name of what was booked, for kinds that are; refused without one, and for kinds that are not booked."""
    how = BOOKED.get(phase.kind.name)
    if how is None:
        if wishes.reservation is not None:
            message = f"belongs to {' and '.join(BOOKED)}; leave it out for {phase.kind.name}"
            raise UnusableInput.at("reservation", message=message)
        return None
    if wishes.reservation is None:
        raise UnusableInput.at("reservation", message=f"is missing: a {phase.kind.name} is booked; {how}")
    return wishes.reservation
