"""The outcome of each price row: an offer, a chip price for TPU slices, or a rejection with a reason."""

from collections import Counter
from dataclasses import dataclass, field

from gpuplan.catalog.model.offer import InstanceType, Offer

LEFT_OUT = "left out"
QUARANTINED = "quarantined"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAside:
    """A price row that is not offered: `fate` is left out or quarantined, `reason` says why."""

    provider: str
    region: str
    zone: str
    instance_type: str
    price_kind: str
    usd_per_hour: str
    as_of: str
    source: str
    fate: str
    reason: str


@dataclass(slots=True, kw_only=True)
class Harvest:
    """Offers with their machines, rejected rows, counts by name, and unusable rows."""

    offers: list[Offer] = field(default_factory=list)
    instance_types: list[InstanceType] = field(default_factory=list)
    set_aside: list[SetAside] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def add(self, other: "Harvest") -> None:
        """Add the contents of another harvest."""
        self.offers += other.offers
        self.instance_types += other.instance_types
        self.set_aside += other.set_aside
        self.counts += other.counts
        self.problems += other.problems
