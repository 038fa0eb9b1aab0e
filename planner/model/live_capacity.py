"""What clouds answered about machines while a plan was made, as the plan states it."""

from dataclasses import dataclass

from gpuplan.planner.model.shared import Moment


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveAnswer:
    """One cloud's answer for `nodes` machines of one type in one place."""

    provider: str
    region: str
    zone: str
    """Empty: the region."""
    instance_type: str
    nodes: int
    price_kind: str
    probability: float
    """0 to 1, read from `published`."""
    published: str
    """The cloud's own score, share or word."""
    asked_at: Moment
    source: str
    scored_types: tuple[str, ...]
    """The types that the cloud scored together."""
    quota_available: bool | None
    """False: the account may not start the machines, so the chance is 0."""
    starts_at: Moment | None
    """For machines that can be booked from then on; the chance is 0 where that is after the first try."""
    modelled: tuple[str, ...]
    """The keys that gpuplan derived."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotAnswered:
    """What a cloud was asked about without learning it; an empty region or instance type means all that were asked."""

    provider: str
    region: str
    instance_type: str
    what: str
    """capacity, or price_kind if the cloud publishes nothing about machines of that kind."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveCapacity:
    """The answers that the chances of a plan rest on, under a hash of their own; whatever is not here is modelled."""

    id: str
    answers: tuple[LiveAnswer, ...]
    not_learned: tuple[NotAnswered, ...]
