"""Answers about watches: what jobs and machines are watched, what was last reported of them, and what a check found."""

from dataclasses import dataclass, field
from typing import Literal

from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.planner.model.shared import MAY_BE_ABSENT, Moment, Usd

#: The last two are of watched machines.
type WatchEvent = Literal[
    "cheaper", "dearer", "offer_gone", "infeasible", "feasible", "deadline_passed", "obtainable", "not_obtainable"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedCapacity:
    """Machines to wait for, with the chance and the price wanted."""

    machine: str
    nodes: int
    kind: str
    region: tuple[str, ...]
    """Empty: wherever it has a price."""
    least_chance: float
    under_usd_per_node_hour: Usd | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedOffer:
    """An offer that a reported plan uses."""

    provider: str
    region: str
    zone: str
    instance_type: str
    price_kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedPlan:
    """The plan that was last reported, which later ones are compared with."""

    outcome: Literal["planned"]
    plan_id: str
    snapshot_id: str
    at: Moment
    cost_usd: Usd
    hours: float
    choice: str
    """Machines and place in one line."""
    offers: tuple[WatchedOffer, ...] | None = field(default=None, metadata=MAY_BE_ABSENT)
    """Not in messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedConflicts:
    """Why the job was last reported to have no plan."""

    outcome: Literal["infeasible"]
    plan_id: str
    snapshot_id: str
    at: Moment
    conflicts: tuple[tuple[str, ...], ...]
    searched_nodes: int | None = field(default=None, metadata=MAY_BE_ABSENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedCapacity:
    """The best answer of a cloud at the wanted price, as last reported."""

    outcome: Literal["obtainable", "not_obtainable"]
    snapshot_id: str
    at: Moment
    choice: str
    """Machines and place in one line."""
    chance: float
    published: str
    """What the cloud published."""
    source: str
    asked_at: Moment
    starts_at: Moment | None
    """For machines that can be booked from then on."""
    usd_per_node_hour: Usd | None
    """Null where the snapshot has no price in that place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoCapacityAnswer:
    """No cloud gave an answer at the wanted price."""

    outcome: Literal["not_obtainable"]
    snapshot_id: str
    at: Moment


#: What later answers are compared with, of a watched job and of watched machines.
type ReportedJob = ReportedPlan | ReportedConflicts
type ReportedMachines = ReportedCapacity | NoCapacityAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """One event that one channel was notified of."""

    id: str
    event: WatchEvent
    channel: str
    snapshot_id: str
    summary: str
    created_at: Moment
    state: Literal["waiting", "delivered", "given_up"]
    delivered_at: Moment | None
    attempts: int
    last_error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchRecord:
    """What every watch has."""

    id: str
    name: str
    channels: tuple[str, ...]
    created_at: Moment
    state: Literal["watching", "ended"]
    """ended: its deadline has passed."""
    ended_at: Moment | None
    checked_at: Moment | None
    problem: str | None
    """Why it could not be planned, or nothing was learned, at the last check."""
    warnings: tuple[str, ...] | None = field(default=None, metadata=MAY_BE_ABSENT)
    """In the answer to adding a watch."""
    notifications: tuple[Notification, ...] | None = field(default=None, metadata=MAY_BE_ABSENT)
    """The newest first; in the answer for one watch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobWatch(WatchRecord):
    """A job that is planned again after each refresh."""

    cheaper_by_percent: float
    last_told: ReportedJob
    job: JsonObject | None = field(default=None, metadata=MAY_BE_ABSENT)
    """In the answer for one watch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityWatch(WatchRecord):
    """Machines that clouds are asked about at each check."""

    capacity: WantedCapacity
    last_told: ReportedMachines


type Watch = JobWatch | CapacityWatch


@dataclass(frozen=True, slots=True, kw_only=True)
class Watches:
    """Every watch, the oldest first."""

    watches: tuple[Watch, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchChange:
    """A change that a check found."""

    watch_id: str
    watch: str
    """Its name."""
    event: WatchEvent
    summary: str
    plan_id: str | None
    channels: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchProblem:
    """A watch that could not be checked."""

    watch_id: str
    watch: str
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedDelivery:
    """A notification that was not delivered; it is tried again at the next check unless this is final."""

    notification_id: str
    watch_id: str
    watch: str
    channel: str
    event: WatchEvent
    error: str
    final: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Deliveries:
    """How many notifications were sent, and how many another process is sending; those that failed."""

    sent: int
    held_elsewhere: int
    failed: tuple[FailedDelivery, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckMeta:
    """What a check took."""

    planning_milliseconds: float
    sending_milliseconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchCheck:
    """What a check of all watches found and sent."""

    snapshot_id: str
    checked: int
    told: tuple[WatchChange, ...]
    problems: tuple[WatchProblem, ...]
    deliveries: Deliveries
    meta: CheckMeta

    @property
    def failures(self) -> int:
        """How many plans and deliveries failed."""
        return len(self.deliveries.failed) + len(self.problems)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelTest:
    """A test message that a channel accepted."""

    channel: str
    kind: str
    delivered: bool
    attempts: int
