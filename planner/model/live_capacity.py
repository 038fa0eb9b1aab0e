"""What clouds answer about machines, as plans and `capacity` state it."""

from dataclasses import dataclass
from typing import Literal

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
class NotLearned:
    """A part of the question without an answer; an empty region or instance type means all that were asked about."""

    provider: str
    region: str
    instance_type: str
    what: str
    """capacity; price_kind if the cloud publishes nothing about such machines; interruptions if only these are missing."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveCapacity:
    """The answers that the chances of a plan rest on, under a hash of their own; whatever is not here is modelled."""

    id: str
    answers: tuple[LiveAnswer, ...]
    not_learned: tuple[NotLearned, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity(LiveAnswer):
    """One cloud's answer for `nodes` machines of one type in one place, with what it says about losing them."""

    interruptions_per_hour: float | None
    """Of one machine."""
    interruptions_published: str
    uptime_hours: float | None
    """The cloud's own estimate of the time until the loss."""
    wait_hours: float | None
    """From `asked_at` to `starts_at`."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityReport:
    """A try as it was stored, and all tries of the last days at the same machines and place."""

    outcome: Literal["reported"]
    provider: str
    region: str
    zone: str
    """Empty: the region."""
    instance_type: str
    nodes: int
    price_kind: str
    obtained: bool
    code: str
    """The cloud's error code; empty if the machines were obtained."""
    reported_at: Moment
    own_runs: str
    """As plans quote it: refused 3 of 5 times in the last 7 days."""
