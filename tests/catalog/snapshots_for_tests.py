"""Small snapshots to store."""

from collections.abc import Mapping
from datetime import UTC, datetime
from fractions import Fraction

from gpuplan.catalog.model.offer import InstanceType, Offer
from gpuplan.catalog.snapshots.embedded_snapshot import embedded_instance_types
from gpuplan.catalog.snapshots.snapshot import Snapshot, snapshot_of

NIGHT = datetime(2026, 11, 1, 3, 15, 7, 123456, tzinfo=UTC)
TYPES = (
    InstanceType(
        provider="aws", name="p5.48xlarge", accelerator="H100-80GB-SXM", accelerator_count=Fraction(8), vcpus=192
    ),
    InstanceType(
        provider="azure", name="NV6ads_A10_v5", accelerator="A10-24GB", accelerator_count=Fraction(1, 6), ram_gib=55.5
    ),
)


def offer(usd_micros: int = 98_320_000, **changes: object) -> Offer:
    """One offer for a p5.48xlarge, unless said otherwise."""
    values: dict[str, object] = {
        "provider": "aws",
        "region": "us-east-1",
        "instance_type": "p5.48xlarge",
        "price_kind": "on_demand",
        "usd_micros_per_hour": usd_micros,
        "observed_at": NIGHT,
        "source": "https://prices.example.org/",
    }
    return Offer(**values | changes)  # type: ignore[arg-type]


def snapshot(*offers: Offer) -> Snapshot:
    """A snapshot of both machine shapes and these offers."""
    return snapshot_of(TYPES, offers or (offer(),))


def t4_on_spot(observed_at: datetime) -> Snapshot:
    """A T4 machine of Azure on spot in two regions."""
    [machine] = [row for row in embedded_instance_types() if row.name == "Standard_NC4as_T4_v3"]
    about = {"provider": "azure", "instance_type": machine.name, "price_kind": "spot", "observed_at": observed_at}
    return snapshot_of([machine], [offer(200_000, region="eastus", **about), offer(210_000, region="westus2", **about)])


def many_offers(count: int, changes: Mapping[int, int] | None = None, *, observed_at: datetime = NIGHT) -> Snapshot:
    """A snapshot of `count` offers over ten regions; `changes` gives some of them another price."""
    prices = {i: 1_000_000 + i for i in range(count)} | dict(changes or {})
    return snapshot(
        *(offer(prices[i], region=f"region-{i % 10}", zone=f"zone-{i}", observed_at=observed_at) for i in range(count))
    )
