"""Prices over time, and what one snapshot changes against another."""

from typing import Any, Literal, TypedDict

from gpuplan_client.answers.parts import Moment, Usd

SeenSpan = TypedDict("SeenSpan", {"from": Moment, "to": Moment, "times": int})
"""Reads of one price that no gap parts: a refresh that failed to confirm it, or found the offer gone, ends a span."""

Price = TypedDict(
    "Price",
    {
        "provider": str,
        "region": str,
        "zone": str,
        "instance_type": str,
        "price_kind": str,
        "usd_per_hour": Usd,
        "from": Moment,
        "until": Moment | None,
        "vanished": bool,
        "stale_since": Moment | None,
        "observed_at": Moment,
        "source": str,
        "modelled": list[str],
        "partial": list[str],
        "available": bool,
        "seen": list[SeenSpan],
    },
)
"""One price of one offer; `until` is null while it holds, `vanished` says that no other followed, `seen` when it was read."""


class Prices(TypedDict):
    """A page of the prices of one instance type."""

    snapshot_id: str
    instance_type: str
    total: int
    prices: list[Price]
    next_cursor: str | None


class ComparedSnapshot(TypedDict):
    """One of the two snapshots that are compared."""

    id: str
    created_at: Moment
    observed_at: Moment
    source: str


class OfferChange(TypedDict):
    """What changed of one offer; what a snapshot does not have is null."""

    provider: str
    region: str
    zone: str
    instance_type: str
    price_kind: str
    what: list[str]
    usd_per_hour_before: Usd | None
    usd_per_hour_after: Usd | None
    change_percent: float | None
    stale_since: Moment | None


class TypeChange(TypedDict):
    """What changed of one instance type: [old, new] of each fact."""

    provider: str
    instance_type: str
    what: Literal["new", "vanished", "changed"]
    fields: dict[str, list[Any]]


class SnapshotDiff(TypedDict):
    """What `after` changes against `before`, the largest moves of a price first."""

    before: ComparedSnapshot
    after: ComparedSnapshot
    providers: list[dict[str, Any]]
    """Counts of each kind of change per provider."""
    total: int
    changes: list[OfferChange]
    instance_types: list[TypeChange]
    next_cursor: str | None
