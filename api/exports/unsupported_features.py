"""Refuses features that a tool lacks, with the reason."""

from collections.abc import Mapping

from gpuplan.api.exports.plan_handover import CLOUDS, Phase, Wishes, seller
from gpuplan.catalog.runtime.errors import UnusableInput

#: Price kinds that need the name of a booking.
BOOKED = {
    "capacity_block": "buy the block first (aws ec2 describe-capacity-block-offerings, then purchase-capacity-block)"
    " and give the id of its capacity reservation, cr-...",
    "calendar": "request the machines first (gcloud compute future-reservations create) and give the reservation's name",
}
#: The provider of price kinds that only one sells.
SOLD_BY = {"capacity_block": "aws", "flex_start": "gcp", "calendar": "gcp"}


def refuse(phase: Phase, reason: str) -> UnusableInput:
    """The error for a phase that cannot be exported."""
    return UnusableInput.at("phase", message=f"phase {phase.number} cannot be exported: {reason}")


def need_cloud(phase: Phase, tool: str, *providers: str) -> None:
    """Refuse phases of other providers than the tool drives."""
    if phase.provider == "local" and "local" not in providers:
        raise refuse(phase, f"it runs on owned machines, which {tool} does not start; export it to kubernetes or slurm")
    if phase.provider not in providers:
        accepted = ", ".join(CLOUDS.get(provider, "own machines") for provider in providers)
        by_hand = "" if phase.provider in {"aws", "gcp", "azure"} else "; export it to docker"
        raise refuse(phase, f"it runs on {seller(phase.provider)}, but {tool} supports only {accepted}{by_hand}")
    sold_by = SOLD_BY.get(phase.kind.name)
    if sold_by is not None and sold_by != phase.provider:
        raise refuse(phase, f"{phase.kind.name} is sold by {CLOUDS[sold_by]}, not by {seller(phase.provider)}")


def need_no_slice(phase: Phase, tool: str) -> None:
    """Refuse TPU slices, which start as a whole and do not run torchrun."""
    if phase.is_slice:
        raise refuse(
            phase,
            f"it is a slice of {phase.accelerator.name}, which {tool} does not support; export it to gcloud, skypilot or jobset",
        )


def need_kind(phase: Phase, tool: str, unsupported: Mapping[str, str]) -> None:
    """Refuse price kinds that the tool lacks; `unsupported` has the reasons by kind."""
    reason = unsupported.get(phase.kind.name)
    if reason is not None:
        raise refuse(phase, f"{tool} {reason}; export it to {'aws-cli' if phase.provider == 'aws' else 'gcloud'}")


def need_nothing(wishes: Wishes, what: str, why: str) -> None:
    """Refuse an image or a reservation that the tool cannot use."""
    for field in ("image", "reservation"):
        if getattr(wishes, field) is not None:
            raise UnusableInput.at(field, message=f"is not accepted for {what}: {why}; leave it out")


def booked(phase: Phase, wishes: Wishes) -> str | None:
    """The booking of a booked price kind; refused if missing, or given for another kind."""
    how = BOOKED.get(phase.kind.name)
    if how is None:
        if wishes.reservation is not None:
            message = f"belongs to {' and '.join(BOOKED)}; leave it out for {phase.kind.name}"
            raise UnusableInput.at("reservation", message=message)
        return None
    if wishes.reservation is None:
        raise UnusableInput.at("reservation", message=f"is missing: a {phase.kind.name} must be booked; {how}")
    return wishes.reservation
