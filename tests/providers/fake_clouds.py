"""Small clouds that answer from memory, and rows for them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fractions import Fraction

from gpuplan.catalog.model.offer import InstanceType, Offer
from gpuplan.catalog.snapshots.snapshot import Snapshot, snapshot_of
from gpuplan.providers.contract import Quarantined, Rows
from gpuplan.providers.refresh.refresh_run import CurrentRows

SHIPPED_AT = datetime(2026, 7, 30, tzinfo=UTC)
LAST_NIGHT = datetime(2026, 11, 20, 3, tzinfo=UTC)
TONIGHT = LAST_NIGHT + timedelta(days=1)
#: When refreshes read prices, as far as these tests know.
NIGHTS = frozenset({LAST_NIGHT, TONIGHT})
H100_MACHINE = "p5.48xlarge"
MACHINES = {
    H100_MACHINE: ("H100-80GB-SXM", 8, 12_000_000),
    "g6.xlarge": ("L4-24GB", 1, 800_000),
    "p4d.24xlarge": ("A100-40GB-SXM", 8, 4_000_000),
}


def machine(name: str = H100_MACHINE, provider: str = "aws", **changes: object) -> InstanceType:
    """One of `MACHINES`."""
    accelerator, count, _ = MACHINES.get(name, MACHINES[H100_MACHINE])
    values: dict[str, object] = {
        "provider": provider,
        "name": name,
        "accelerator": accelerator,
        "accelerator_count": Fraction(count),
        "source": "test",
        "as_of": "2026-11-20",
    }
    return InstanceType(**values | changes)  # type: ignore[arg-type]


def price(region: str = "r1", name: str = H100_MACHINE, usd_micros: int | None = None, **changes: object) -> Offer:
    """A price of a machine, the usual one unless said otherwise, as a refresh read it tonight."""
    _, count, item = MACHINES.get(name, MACHINES[H100_MACHINE])
    values: dict[str, object] = {
        "provider": "aws",
        "region": region,
        "instance_type": name,
        "price_kind": "on_demand",
        "usd_micros_per_hour": usd_micros or count * item,
        "observed_at": TONIGHT,
        "source": "live",
    }
    return Offer(**values | changes)  # type: ignore[arg-type]


def rows(
    *offers: Offer, whole: Iterable[str] = ("on_demand",), kinds: Iterable[InstanceType] = (), **extra: object
) -> Rows:
    """What a region gave, with the machines of its offers."""
    named = {offer.name: offer for offer in (*(machine(o.instance_type, o.provider) for o in offers), *kinds)}
    return Rows(instance_types=tuple(named.values()), offers=offers, whole_kinds=frozenset(whole), **extra)  # type: ignore[arg-type]


def unreadable(what: str) -> tuple[Quarantined, ...]:
    """A row that an adapter could not read."""
    return (Quarantined(what=what, reason="the price is no number"),)


def snapshot(*offers: Offer, kinds: Iterable[InstanceType] = ()) -> Snapshot:
    """A snapshot of these offers and their machines."""
    named = {(o.provider, o.instance_type): machine(o.instance_type, o.provider) for o in offers}
    return snapshot_of((named | {(kind.provider, kind.name): kind for kind in kinds}).values(), offers)


def current_rows(*offers: Offer, embedded: Snapshot | None = None, kinds: Iterable[InstanceType] = ()) -> CurrentRows:
    """A snapshot of live offers, with an embedded one that knows none of them."""
    shipped = embedded or snapshot(price("elsewhere", provider="azure", observed_at=SHIPPED_AT, source="shipped"))
    return CurrentRows(snapshot=snapshot(*offers, kinds=kinds), embedded=shipped, read_at=NIGHTS)


def last_night(*places: str, **changes: object) -> list[Offer]:
    """A live price of last night in each place."""
    return [price(place, **{"observed_at": LAST_NIGHT} | changes) for place in places]  # type: ignore[arg-type]


@dataclass(slots=True, kw_only=True)
class FakeCloud:
    """Answers with these rows by region; an exception in their place is raised, a callable called."""

    name: str = "aws"
    parallel: int = 4
    answers: Mapping[str, Rows | Exception | Callable[[], Rows]] = field(default_factory=dict)
    listing: Exception | None = None

    def regions(self) -> list[str]:
        if self.listing is not None:
            raise self.listing
        return list(self.answers)

    def fetch(self, region: str) -> Rows:
        answer = self.answers[region]
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, Rows) else answer()
