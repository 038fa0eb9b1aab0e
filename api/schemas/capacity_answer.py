"""What clouds say about getting machines, and what was not learned."""

from dataclasses import dataclass
from typing import Literal

from gpuplan.api.schemas.json_types import Moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
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
    interruptions_per_hour: float | None
    """Of one machine."""
    interruptions_published: str
    uptime_hours: float | None
    """The cloud's own estimate of the time until the loss."""
    quota_available: bool | None
    starts_at: Moment | None
    """For machines that can be booked from then on."""
    modelled: tuple[str, ...]
    """The keys that gpuplan derived."""
    wait_hours: float | None
    """From `asked_at` to `starts_at`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotLearned:
    """A part of the question without an answer; an empty region or instance type means all that were asked about."""

    provider: str
    reason: str
    region: str
    instance_type: str
    what: str
    """capacity; price_kind if the cloud publishes nothing about such machines; interruptions if only these are missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityMeta:
    """When it was asked, and how many answers are of the last minutes or new."""

    asked_at: Moment
    reused: int
    asked: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityAnswers:
    """All answers, the most likely first."""

    outcome: Literal["asked"]
    answers: tuple[Capacity, ...]
    not_learned: tuple[NotLearned, ...]
    meta: CapacityMeta
