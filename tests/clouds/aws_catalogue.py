"""The AWS catalogue as the APIs can tell it: gpuplan's own, plus rows of every kind that it lacks."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from functools import cache

from gpuplan.catalog.model.interruption_rates import DEFAULT_INTERRUPTIONS_PER_HOUR
from gpuplan.catalog.model.offer import InstanceType, Offer
from gpuplan.catalog.model.price_kinds import PriceKind, price_kinds
from gpuplan.catalog.model.regions import regions
from gpuplan.catalog.snapshots.embedded_snapshot import embedded_snapshot
from gpuplan.catalog.snapshots.snapshot import Snapshot, snapshot_of
from gpuplan.providers.aws.price_rows import RESERVED_KINDS, WAVELENGTH_ZONE

MICROS = 1_000_000
#: What the shares of these kinds cost against the paid-monthly kind of the same term.
UPFRONT_PCT = {0.5: 96, 1: 93}
PLAN_PCT = {8760: 72, 26280: 55}
BLOCK_PCT = 60
SPOT_PCT = 40
#: Sold as capacity blocks by this server.
BLOCK_FAMILIES = ("p4d", "p4de", "p5", "p5e", "p5en", "p6-b200", "trn1", "trn2")


@cache
def aws_catalogue() -> Snapshot:
    """Embedded AWS machines and prices but for Wavelength, spot by zone throughout, and all kinds that AWS sells."""
    whole = embedded_snapshot()
    types = [instance_type for instance_type in whole.instance_types if instance_type.provider == "aws"]
    offers = [offer for offer in whole.offers if offer.provider == "aws" and not WAVELENGTH_ZONE.search(offer.region)]
    owned = [offer for offer in offers if offer.price_kind != "spot"]
    asked = [offer for offer in offers if offer.price_kind == "spot" and _has_own_ec2(offer)]
    asked += _spot_where_none_is_known(owned, asked)
    spot = [_plain(item, zone=item.zone or zone_id(item.region, 1)) for item in asked]
    remaining = {item.key: item for item in (*[_plain(item) for item in owned], *spot)}
    return snapshot_of(types, [*remaining.values(), *_lacking(owned)])


def smaller(snapshot: Snapshot, *regions: str) -> Snapshot:
    """The part of a catalogue that lies in these regions, for tests that need no more."""
    offers = [offer for offer in snapshot.offers if offer.region in regions]
    names = {offer.instance_type for offer in offers}
    return snapshot_of(
        [instance_type for instance_type in snapshot.instance_types if instance_type.name in names], offers
    )


def as_read(offer: Offer, read_at: datetime) -> Offer:
    """The offer without what depends on who read it, to compare a refresh with what was served."""
    return replace(offer, observed_at=read_at, observed_approximately=False, source="")


def zone_id(region: str, number: int) -> str:
    """A zone id as AWS forms them: use1-az4, apne2-az1, usgw1-az1."""
    first, *middle, last = region.split("-")
    short = {"northeast": "ne", "southeast": "se", "northwest": "nw"}
    return f"{first}{''.join(short.get(part, part[0]) for part in middle)}{last}-az{number}"


def upfront_usd(offer: Offer, kind: PriceKind) -> int:
    """The fee that is paid at the start of the term: whole dollars, as AWS states it."""
    return round(offer.usd_micros_per_hour * kind.term_hours * kind.upfront_share / MICROS)


def _plain(offer: Offer, zone: str | None = None) -> Offer:
    """As an API would say it: nothing modelled but the rate of interruptions where AWS publishes no band."""
    modelled = tuple(item for item in offer.modelled if item == "interruption_rate")
    return replace(offer, zone=offer.zone if zone is None else zone, modelled=modelled)


def _has_own_ec2(offer: Offer) -> bool:
    """Whether a commercial account may ask EC2 there: no Local Zone, which its parent answers for, no other partition."""
    place = regions()["aws", offer.region]
    return place.partition == "commercial" and not place.parent_region


def _spot_where_none_is_known(offers: list[Offer], known: list[Offer]) -> list[Offer]:
    """EC2 sells spot in each of its regions, also in those of which the embedded catalogue has no spot price."""
    regions_known = {offer.region for offer in known}
    missing = (offer for offer in offers if offer.price_kind == "on_demand" and offer.region not in regions_known)
    return [
        replace(
            _priced(item, "spot", item.usd_micros_per_hour * SPOT_PCT // 100),
            interruptions_per_hour=DEFAULT_INTERRUPTIONS_PER_HOUR,
            modelled=("interruption_rate",),
        )
        for item in missing
        if _has_own_ec2(item)
    ]


def _lacking(offers: list[Offer]) -> Iterator[Offer]:
    """Reservations with money upfront, savings plans and capacity blocks, at made-up but exact prices."""
    kinds = price_kinds()
    monthly = {(offer.region, offer.instance_type, offer.price_kind): offer for offer in offers}
    for offer in offers:
        kind = kinds[offer.price_kind]
        for name in RESERVED_KINDS.values():
            other = kinds[name]
            alike = (other.term_hours, other.convertible) == (kind.term_hours, kind.convertible)
            if alike and other.upfront_share and not kind.upfront_share:
                yield _priced(offer, name, offer.usd_micros_per_hour * UPFRONT_PCT[other.upfront_share] // 100)
        if kind.is_plain and (offer.region, offer.instance_type, "reserved_1y") in monthly:
            for name in ("savings_plan_1y", "savings_plan_3y"):
                yield _priced(offer, name, offer.usd_micros_per_hour * PLAN_PCT[kinds[name].term_hours] // 100)
        if kind.is_plain and offer.instance_type.partition(".")[0] in BLOCK_FAMILIES and _has_own_ec2(offer):
            micros = offer.usd_micros_per_hour * BLOCK_PCT // 100
            yield replace(_priced(offer, "capacity_block", micros), zone=zone_id(offer.region, 1))


def _priced(offer: Offer, kind: str, micros: int) -> Offer:
    """A price that whole dollars upfront give back exactly."""
    made = replace(offer, price_kind=kind, usd_micros_per_hour=micros)
    row = price_kinds()[kind]
    if row.upfront_share == 1 and row.term_hours:
        made = replace(made, usd_micros_per_hour=round(upfront_usd(made, row) * MICROS / row.term_hours))
    return made


def machines_of(snapshot: Snapshot) -> dict[str, InstanceType]:
    """AWS machines by name."""
    return {
        instance_type.name: instance_type
        for instance_type in snapshot.instance_types
        if instance_type.provider == "aws"
    }
