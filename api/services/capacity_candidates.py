"""What a question about capacity is about: one machine in one region."""

from dataclasses import dataclass

from gpuplan.catalog.model.capacity_answers import CapacityAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One machine in one region, as many nodes at one price kind."""

    provider: str
    instance_type: str
    region: str
    nodes: int
    kind: str


def candidate_of(answer: CapacityAnswer) -> Candidate:
    """What an answer is about."""
    return Candidate(
        provider=answer.provider,
        instance_type=answer.instance_type,
        region=answer.region,
        nodes=answer.nodes,
        kind=answer.price_kind,
    )
