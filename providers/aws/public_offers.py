"""Offers of a region from public AWS sources: list prices, savings plan rates, and modelled spot prices."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache

from gpuplan.catalog.model.interruption_rates import DEFAULT_INTERRUPTIONS_PER_HOUR
from gpuplan.catalog.model.offer import Implausible, InstanceType, Offer
from gpuplan.catalog.model.spot_discount import SPOT_PRICE_IS_MODELLED, doubt_of_saving, spot_usd_micros
from gpuplan.catalog.model.unavailable_machines import left_out
from gpuplan.catalog.snapshots.embedded_snapshot import embedded_instance_types
from gpuplan.providers.aws.price_rows import LOCAL_ZONE, PriceRow
from gpuplan.providers.aws.savings_plan_files import PlanRate
from gpuplan.providers.contract import Quarantined

PROVIDER = "aws"
SOURCE = "AWS price list files"
PLAN_SOURCE = "AWS savings plan price files"
SPOT_SOURCE = "AWS Spot Instance Advisor, saving over the on-demand price of the AWS price list files"
RATE_IS_MODELLED = ("interruption_rate",)
type Place = tuple[str, str]


@cache
def hardware() -> dict[str, InstanceType]:
    """The AWS machines with known hardware, by name: the price list does not name accelerators."""
    return {row.name: row for row in embedded_instance_types() if row.provider == PROVIDER}


@dataclass(slots=True, kw_only=True)
class RegionOffers:
    """The offers of a region and of the Local Zones read with it, during collection.

    Quarantined rows have their reasons.
    """

    region: str
    zones: frozenset[str] = frozenset()
    read_at: datetime
    offers: list[Offer] = field(default_factory=list)
    quarantined: list[Quarantined] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def instance_types(self) -> tuple[InstanceType, ...]:
        """The hardware of every type that has an offer, by name."""
        return tuple(hardware()[name] for name in sorted({offer.instance_type for offer in self.offers}))

    def add_listed(self, rows: Iterable[PriceRow]) -> None:
        """On-demand and reserved prices; an unknown machine is quarantined and noted once."""
        unknown = set()
        for row in rows:
            if row.instance_type in hardware():
                self._add(row.region, row.instance_type, row.price_kind, row.usd_micros_per_hour, source=SOURCE)
            elif row.instance_type not in left_out():
                unknown.add((row.instance_type, row.region))
        for name, region in sorted(unknown):
            reason = (
                "it has a price, but gpuplan does not know its hardware and the price files do not name accelerators"
            )
            self.quarantined.append(Quarantined(what=f"{name} in {region}", reason=reason))
            self.notes.append(f"unknown accelerator type {name}: priced by AWS, its hardware is in no table of gpuplan")

    def add_plan_rates(self, rates: Iterable[PlanRate]) -> None:
        """Savings plan rates of these places."""
        for rate in rates:
            if rate.region == self.region or rate.region in self.zones:
                source = f"{PLAN_SOURCE} ({rate.plan})"
                self._add(rate.region, rate.instance_type, rate.price_kind, rate.usd_micros_per_hour, source=source)

    def add_spot(self, savings_pct: Mapping[Place, int], rates: Mapping[Place, float]) -> None:
        """Model a regional spot price per on-demand price with a saving; quarantine savings that are no discount or at the
        floor.
        """
        for base in [offer for offer in self.offers if offer.price_kind == "on_demand"]:
            place = (base.region, base.instance_type)
            if place not in savings_pct:
                continue
            if doubt := doubt_of_saving(savings_pct[place]):
                what = f"{base.instance_type} in {base.region}, spot at {savings_pct[place]} % below on-demand"
                self.quarantined.append(Quarantined(what=what, reason=doubt))
                continue
            self._add(
                base.region,
                base.instance_type,
                "spot",
                spot_usd_micros(base.usd_micros_per_hour, savings_pct[place]),
                source=SPOT_SOURCE,
                interruptions_per_hour=rates.get(place, DEFAULT_INTERRUPTIONS_PER_HOUR),
                modelled=SPOT_PRICE_IS_MODELLED + (() if place in rates else RATE_IS_MODELLED),
            )

    def _add(
        self,
        region: str,
        instance_type: str,
        price_kind: str,
        usd_micros_per_hour: int,
        *,
        source: str,
        interruptions_per_hour: float | None = None,
        modelled: tuple[str, ...] = (),
    ) -> None:
        """Add an offer. A Local Zone is priced as a region: its rows name it as region and as zone."""
        try:
            offer = Offer(
                provider=PROVIDER,
                region=region,
                zone=region if LOCAL_ZONE.search(region) else "",
                instance_type=instance_type,
                price_kind=price_kind,
                usd_micros_per_hour=usd_micros_per_hour,
                observed_at=self.read_at,
                interruptions_per_hour=interruptions_per_hour,
                modelled=modelled,
                source=source,
            )
        except Implausible as implausible:
            what = f"{instance_type} in {region}, {price_kind}"
            self.quarantined.append(Quarantined(what=what, reason=str(implausible)))
        else:
            self.offers.append(offer)
