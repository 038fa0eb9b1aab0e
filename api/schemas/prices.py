"""The answers on prices over time, and on what one snapshot changes against another.

Field names and their order are those of the JSON object; `from_` is the key `from`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from gpuplan.api.schemas.json_types import Moment, Usd
from gpuplan.planner.model.shared import RENAMED


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedSpan:
    """Observations of one price without a gap: a refresh that does not confirm the price ends the span."""

    __pydantic_config__: ClassVar[Mapping[str, object]] = RENAMED

    from_: Moment
    to: Moment
    times: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceRow:
    """One price of one offer."""

    __pydantic_config__: ClassVar[Mapping[str, object]] = RENAMED

    provider: str
    region: str
    zone: str
    instance_type: str
    price_kind: str
    usd_per_hour: Usd
    from_: Moment
    until: Moment | None
    """Null while the price holds."""
    vanished: bool
    """Whether no other price followed."""
    stale_since: Moment | None
    observed_at: Moment
    source: str
    modelled: tuple[str, ...]
    partial: tuple[str, ...]
    available: bool
    seen: tuple[ObservedSpan, ...]
    """When the price was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """A page of the prices of one instance type."""

    snapshot_id: str
    instance_type: str
    total: int
    prices: tuple[PriceRow, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedSnapshot:
    """One of the two snapshots that are compared."""

    id: str
    created_at: Moment
    observed_at: Moment
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferChangeRow:
    """What changed of one offer; what a snapshot does not have is null."""

    provider: str
    region: str
    zone: str
    instance_type: str
    price_kind: str
    what: tuple[str, ...]
    usd_per_hour_before: Usd | None
    usd_per_hour_after: Usd | None
    change_percent: float | None
    stale_since: Moment | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeChangeRow:
    """What changed of one instance type: [old, new] of each fact."""

    provider: str
    instance_type: str
    what: Literal["new", "vanished", "changed"]
    fields: dict[str, tuple[Any, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderChanges:
    """How many offers of a provider changed, by kind of change."""

    provider: str
    new: int
    vanished: int
    changed: int
    became_unavailable: int
    available_again: int
    became_stale: int
    fresh_again: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotComparison:
    """What `after` changes against `before`, the largest moves of a price first."""

    before: ComparedSnapshot
    after: ComparedSnapshot
    providers: tuple[ProviderChanges, ...]
    total: int
    changes: tuple[OfferChangeRow, ...]
    instance_types: tuple[TypeChangeRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotDiff(SnapshotComparison):
    """A page of a comparison. Counts and instance types are those of all pages."""

    next_cursor: str | None
