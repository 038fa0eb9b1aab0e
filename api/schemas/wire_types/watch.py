"""Watched jobs: what is told when they become cheaper, dearer or impossible."""

from typing import Literal, NotRequired, TypedDict

from gpuplan.api.schemas.json_types import JsonObject, Moment, Usd


class ComparedAnswer(TypedDict):
    """The answer that changes are told against."""

    outcome: Literal["planned", "infeasible"]
    plan_id: str
    snapshot_id: str
    at: Moment
    cost_usd: NotRequired[Usd]
    hours: NotRequired[float]
    choice: NotRequired[str]
    """Machines and place in one line."""
    offers: NotRequired[list[JsonObject]]
    conflicts: NotRequired[list[list[str]]]
    searched_nodes: NotRequired[int]


class Notification(TypedDict):
    """One thing that was told to one channel."""

    id: str
    event: Literal["cheaper", "dearer", "offer_gone", "infeasible", "feasible", "deadline_passed"]
    channel: str
    snapshot_id: str
    summary: str
    created_at: Moment
    state: Literal["waiting", "delivered", "given_up"]
    delivered_at: Moment | None
    attempts: int
    last_error: str | None


class Watch(TypedDict):
    """A job that is planned again after each refresh."""

    id: str
    name: str
    channels: list[str]
    cheaper_by_percent: float
    created_at: Moment
    state: Literal["watching", "ended"]
    """ended: its deadline has passed."""
    ended_at: Moment | None
    checked_at: Moment | None
    problem: str | None
    """Why it could not be planned when it was last looked at."""
    last_told: ComparedAnswer
    warnings: NotRequired[list[str]]
    job: NotRequired[JsonObject]
    """In the answer for one watch."""
    notifications: NotRequired[list[Notification]]
    """All that was told, the newest first; in the answer for one watch."""


class Watches(TypedDict):
    """Every watch, the oldest first."""

    watches: list[Watch]
