"""Answers about refreshes of prices: how far one is, its report, and the list of those that ended."""

from dataclasses import dataclass, field
from typing import Literal

from gpuplan.api.schemas.watch_answers import WatchCheck
from gpuplan.planner.model.shared import MAY_BE_ABSENT, Moment

type RefreshOutcome = Literal["whole", "partial", "refused", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionMessage:
    """A message about regions; none where it is about the provider as a whole."""

    message: str
    regions: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderReport:
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
    regions_failed: tuple[RegionMessage, ...]
    failure: str | None
    refused: tuple[str, ...]
    calls_failed: tuple[RegionMessage, ...]
    notes: tuple[RegionMessage, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantined:
    """A row that was set aside, and why."""

    provider: str
    region: str
    what: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Regions of a provider that are done, and in all (null while it is not known)."""

    done: int
    total: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshWithoutReport:
    """A refresh that runs, or that failed before it had a report."""

    id: str
    status: Literal["running", "failed"]
    started_at: Moment
    asked: tuple[str, ...]
    progress: dict[str, Progress] | None = field(default=None, metadata=MAY_BE_ABSENT)
    """By provider."""
    error: str | None = field(default=None, metadata=MAY_BE_ABSENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshReport:
    """What a refresh of prices read, and what became of it."""

    id: str
    status: Literal["done"]
    started_at: Moment
    asked: tuple[str, ...]
    outcome: RefreshOutcome
    finished_at: Moment
    seconds: float
    snapshot_id: str
    previous_snapshot_id: str
    providers: tuple[ProviderReport, ...]
    quarantined: tuple[Quarantined, ...]
    quarantined_left_out: int
    """How many of them are not stored."""
    unknown_accelerators: tuple[str, ...]
    hints: tuple[str, ...]
    warnings: tuple[str, ...]
    watches: WatchCheck | None
    """What became of watched jobs on its prices; null where they were not checked."""
    summary: str
    """One line for alerting; it begins with `refresh:`."""


type Refresh = RefreshReport | RefreshWithoutReport


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshSummary:
    """A refresh that ended, in short."""

    id: str
    status: Literal["done", "failed"]
    outcome: RefreshOutcome
    started_at: Moment
    finished_at: Moment
    seconds: float
    snapshot_id: str | None = field(default=None, metadata=MAY_BE_ABSENT)
    summary: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshes:
    """Refreshes in short, the newest first."""

    refreshes: tuple[RefreshSummary, ...]
