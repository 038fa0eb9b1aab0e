"""Refreshes of prices: how far one is, and its report."""

from typing import Literal, NotRequired, TypedDict

from gpuplan.api.schemas.json_types import Moment
from gpuplan.catalog.parsing.json_object import JsonObject


class RegionMessage(TypedDict):
    """A message about regions; none where it is about the provider as a whole."""

    message: str
    regions: list[str]


class ProviderReport(TypedDict):
    """One provider: its rows now, what changed in them, what failed, what is worth knowing."""

    provider: str
    outcome: str
    rows: int
    new: int
    vanished: int
    changed: int
    quarantined: int
    stale: int
    unconfirmed: int
    stale_since: Moment | None
    oldest_observed_at: Moment | None
    newest_observed_at: Moment | None
    instance_types: int
    regions: int
    regions_read: int
    regions_failed: list[RegionMessage]
    failure: str | None
    refused: list[str]
    calls_failed: list[RegionMessage]
    notes: list[RegionMessage]
    warnings: list[str]


class Quarantined(TypedDict):
    """A row that was set aside, and why."""

    provider: str
    region: str
    what: str
    reason: str


class Progress(TypedDict):
    """Regions of a provider that are done, and in all (null while it is not known)."""

    done: int
    total: int | None


class Refresh(TypedDict):
    """A refresh of prices."""

    id: str
    status: Literal["running", "done", "failed"]
    started_at: Moment
    asked: NotRequired[list[str]]
    progress: NotRequired[dict[str, Progress]]
    error: NotRequired[str]
    outcome: NotRequired[Literal["whole", "partial", "refused", "failed"]]
    summary: NotRequired[str]
    """One line for alerting; it begins with `refresh:`."""
    finished_at: NotRequired[Moment]
    seconds: NotRequired[float]
    snapshot_id: NotRequired[str]
    previous_snapshot_id: NotRequired[str]
    providers: NotRequired[list[ProviderReport]]
    quarantined: NotRequired[list[Quarantined]]
    quarantined_left_out: NotRequired[int]
    unknown_accelerators: NotRequired[list[str]]
    hints: NotRequired[list[str]]
    warnings: NotRequired[list[str]]
    watches: NotRequired[JsonObject | None]
    """What became of watched jobs on its prices."""


class Refreshes(TypedDict):
    """Refreshes in short, the newest first."""

    refreshes: list[Refresh]
