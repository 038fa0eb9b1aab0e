"""Watches: what is told when jobs become cheaper, dearer or impossible, and when machines can be obtained."""

from typing import Literal, NotRequired, TypedDict

from gpuplan.api.schemas.json_types import Moment, Usd
from gpuplan.catalog.parsing.json_object import JsonObject


class WantedCapacity(TypedDict):
    """Machines to wait for, with the chance and the price wanted."""

    machine: str
    nodes: int
    kind: str
    region: list[str]
    """Empty: wherever it has a price."""
    least_chance: float
    under_usd_per_node_hour: Usd | None


class ComparedAnswer(TypedDict):
    """The answer that changes are told against: a plan, or what clouds said of the machines."""

    outcome: Literal["planned", "infeasible", "obtainable", "not_obtainable"]
    plan_id: NotRequired[str]
    """Of a watched job."""
    snapshot_id: str
    at: Moment
    cost_usd: NotRequired[Usd]
    hours: NotRequired[float]
    choice: NotRequired[str]
    """Machines and place in one line."""
    offers: NotRequired[list[JsonObject]]
    conflicts: NotRequired[list[list[str]]]
    searched_nodes: NotRequired[int]
    chance: NotRequired[float]
    """The best that a cloud gave at the wanted price; with what it published, and when it was asked."""
    published: NotRequired[str]
    source: NotRequired[str]
    asked_at: NotRequired[Moment]
    starts_at: NotRequired[Moment | None]
    """For machines that can be booked from then on."""
    usd_per_node_hour: NotRequired[Usd | None]
    """Null where the snapshot has no price in that place."""


class Notification(TypedDict):
    """One thing that was told to one channel."""

    id: str
    event: Literal[
        "cheaper", "dearer", "offer_gone", "infeasible", "feasible", "deadline_passed", "obtainable", "not_obtainable"
    ]
    channel: str
    snapshot_id: str
    summary: str
    created_at: Moment
    state: Literal["waiting", "delivered", "given_up"]
    delivered_at: Moment | None
    attempts: int
    last_error: str | None


class Watch(TypedDict):
    """A job that is planned again after each refresh, or machines that clouds are asked about at each check."""

    id: str
    name: str
    channels: list[str]
    cheaper_by_percent: NotRequired[float]
    """Of a watched job."""
    capacity: NotRequired[WantedCapacity]
    """Of watched machines."""
    created_at: Moment
    state: Literal["watching", "ended"]
    """ended: its deadline has passed."""
    ended_at: Moment | None
    checked_at: Moment | None
    problem: str | None
    """Why it could not be planned, or nothing was learned, when it was last looked at."""
    last_told: ComparedAnswer
    warnings: NotRequired[list[str]]
    job: NotRequired[JsonObject]
    """In the answer for one watched job."""
    notifications: NotRequired[list[Notification]]
    """All that was told, the newest first; in the answer for one watch."""


class Watches(TypedDict):
    """Every watch, the oldest first."""

    watches: list[Watch]
