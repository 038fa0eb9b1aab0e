"""Instance types and offers: a machine shape, and its price in one place.

Both reject implausible values on construction, so later code need not check again.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime
from fractions import Fraction

#: A higher price per node-hour is a mistake in the source: 16 B300 nodes of the dearest region stay below 200 USD each per
#: hour.
MAX_USD_MICROS_PER_HOUR = 5_000 * 1_000_000
MAX_ACCELERATORS_PER_NODE = 64
#: The fabric of machines whose nodes share nothing but their provider's ordinary network.
PLAIN_NETWORK = "plain"


class Implausible(ValueError):
    """A row that cannot be true; the message names the row, the field and the bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceType:
    """One machine that can be rented or owned: a node of a cluster.

    `accelerator_count` counts devices as a training framework sees them. Below 1 it is a slice of one card (one device per
    node, `accelerator_memory_mib` its memory). Unknown is None, never 0. `intranode_gbs` is GB/s per accelerator in one
    direction to its peers in the node; `scaleup_domain` is how many accelerators share that link (72 across the nodes of an
    NVL72 rack, all chips of a TPU slice); `network_gbps` is Gbit/s of the node towards other nodes, all NICs. `fixed_nodes`
    is set where the machine is rented only in groups of that many nodes (hosts of a TPU slice).
    """

    provider: str
    name: str
    accelerator: str
    accelerator_count: Fraction
    accelerator_memory_mib: int | None = None
    vcpus: float | None = None
    ram_gib: float | None = None
    local_disk_gb: float | None = None
    intranode_link: str = ""
    intranode_gbs: float | None = None
    scaleup_domain: int = 1
    network_gbps: float | None = None
    fabric: str = ""
    clusters: bool = False
    fixed_nodes: int | None = None
    sold_on_demand: bool = True
    retired: bool = False
    source: str = ""
    as_of: str = ""

    def __post_init__(self) -> None:
        if not self.provider or not self.name or not self.accelerator:
            raise Implausible(f"instance type {self.provider}/{self.name}: provider, name and accelerator are needed")
        if not 0 < self.accelerator_count <= MAX_ACCELERATORS_PER_NODE:
            raise Implausible(
                f"instance type {self.name}: accelerator_count {self.accelerator_count} is outside 0..{MAX_ACCELERATORS_PER_NODE}"
            )
        for name in ("accelerator_memory_mib", "vcpus", "ram_gib", "local_disk_gb", "intranode_gbs", "network_gbps"):
            value = getattr(self, name)
            if value is not None and not 0 < value < 1e8:
                raise Implausible(
                    f"instance type {self.name}: {name} {value} is not a positive size (unknown is left out)"
                )

    @property
    def devices(self) -> int:
        """Devices a framework sees on one node: a slice of a card is one device."""
        return max(1, int(self.accelerator_count))

    @property
    def is_slice(self) -> bool:
        """Whether the node has less than one whole card."""
        return self.accelerator_count < 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceEstimate:
    """How an expected price came about: the observed price, its age at the start, and the band of 80 % of prices.

    No price is above `most_usd_micros_per_hour`, the on-demand price of the machine; None if that is not known.
    """

    observed_usd_micros_per_hour: int
    low_usd_micros_per_hour: int
    high_usd_micros_per_hour: int
    most_usd_micros_per_hour: int | None
    age_days: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One price for one instance type in one place.

    `usd_micros_per_hour` is the effective price per node-hour over the term. `observed_at` is when the source was read,
    `observed_approximately` is True if the source gives a range or no date; `stale_since` is when a refresh first failed to
    confirm it. `interruptions_per_hour` is the expected rate for one node of an interruptible kind. `modelled` names
    figures that no source states. `partial` names the parts of the price that are missing: such an offer is shown but never
    planned on. `available` is False if availability in that place is not verified. `price_estimate` is set where the price
    is expected and not observed; no snapshot holds such a row.
    """

    provider: str
    region: str
    zone: str = ""
    instance_type: str
    price_kind: str
    usd_micros_per_hour: int
    observed_at: datetime
    observed_approximately: bool = False
    stale_since: datetime | None = None
    interruptions_per_hour: float | None = None
    modelled: tuple[str, ...] = ()
    partial: tuple[str, ...] = ()
    available: bool = True
    source: str = ""
    price_estimate: PriceEstimate | None = None

    def __post_init__(self) -> None:
        where = f"offer {self.provider}/{self.region}/{self.zone}/{self.instance_type}/{self.price_kind}"
        if not 0 <= self.usd_micros_per_hour <= MAX_USD_MICROS_PER_HOUR:
            raise Implausible(f"{where}: {self.usd_micros_per_hour} micro-dollars per hour is not a plausible price")
        if self.usd_micros_per_hour == 0 and self.price_kind != "owned":
            raise Implausible(f"{where}: a price of zero means unknown, and an unknown price is left out")
        if self.observed_at.tzinfo is None:
            raise Implausible(f"{where}: observed_at needs a time zone")
        if not self.region or not self.instance_type:
            raise Implausible(f"{where}: region and instance type are needed")
        rate = self.interruptions_per_hour
        if rate is not None and not 0 <= rate <= 60:
            raise Implausible(f"{where}: {rate} interruptions per hour is not plausible")

    @property
    def key(self) -> tuple[str, str, str, str, str]:
        """The unique key within a snapshot."""
        return (self.provider, self.region, self.zone, self.instance_type, self.price_kind)


def start_of_day(day: date) -> datetime:
    """The start of a source's date, as aware UTC time."""
    return datetime(day.year, day.month, day.day, tzinfo=UTC)
