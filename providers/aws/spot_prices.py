"""Spot prices: the newest per zone and type from EC2's history, under account-independent zone ids."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from gpuplan.catalog.model.interruption_rates import DEFAULT_INTERRUPTIONS_PER_HOUR
from gpuplan.catalog.model.money import usd_micros
from gpuplan.catalog.model.offer import Implausible, Offer
from gpuplan.providers.aws import price_rows
from gpuplan.providers.aws.api_calls import Calls
from gpuplan.providers.aws.regions_and_zones import AVAILABILITY_ZONE, WAVELENGTH_ZONE, Place, Zone
from gpuplan.providers.contract import Quarantined

KIND = "spot"
SOURCE = "EC2 DescribeSpotPriceHistory"
NOTHING = "ec2 describe_spot_price_history: no price, although EC2 sells machines as spot there"
#: The history has both names, depending on the age of the account and the type.
LINUX = ("Linux/UNIX", "Linux/UNIX (Amazon VPC)")
PAGE = 1000


@dataclass(slots=True, kw_only=True)
class SpotRows:
    """Offers without an interruption rate, quarantined rows, and names by id of zones that a price states with both."""

    offers: list[Offer] = field(default_factory=list)
    quarantined: list[Quarantined] = field(default_factory=list)
    zones: dict[str, Zone] = field(default_factory=dict)


def read_spot(calls: Calls, place: Place, types: frozenset[str], *, read_at: datetime) -> SpotRows:
    """The current price in each zone of the place for each of the types. Raises `CallFailed`."""
    if not types:
        return SpotRows()
    rows = calls.every(
        "ec2",
        place.region,
        "describe_spot_price_history",
        "SpotPriceHistory",
        InstanceTypes=sorted(types),
        ProductDescriptions=list(LINUX),
        StartTime=read_at,
        EndTime=read_at,
        MaxResults=PAGE,
    )
    spot_rows = SpotRows(zones=_zones(rows, place))
    place = place if place.zones is not None or not spot_rows.zones else replace(place, zones=spot_rows.zones)
    for (zone, name), row in sorted(_newest(rows, place, types).items()):
        try:
            spot_rows.offers.append(_offer(place, zone, name, row, read_at))
        except Implausible as problem:
            what = f"spot {name} in {zone or place.region}"
            spot_rows.quarantined.append(Quarantined(what=what, reason=str(problem)))
    return spot_rows


def with_interruption_rate(offer: Offer, rates: Mapping[tuple[str, str], float]) -> Offer:
    """The offer with the rate of its band, else that of the measured traces, marked as modelled."""
    rate = rates.get((offer.region, offer.instance_type))
    if rate is not None:
        return replace(offer, interruptions_per_hour=rate)
    modelled = (*offer.modelled, "interruption_rate")
    return replace(offer, interruptions_per_hour=DEFAULT_INTERRUPTIONS_PER_HOUR, modelled=modelled)


def _newest(rows: list[Any], place: Place, types: frozenset[str]) -> dict[tuple[str, str], Mapping[str, Any]]:
    """The last change by (zone id, or else name; type), for Linux and zones outside carriers' networks."""
    newest: dict[tuple[str, str], Mapping[str, Any]] = {}
    for row in rows:
        name, description = row.get("InstanceType"), row.get("ProductDescription", LINUX[0])
        zone_name = str(row.get("AvailabilityZone") or "")
        zone = str(row.get("AvailabilityZoneId") or "") or place.zone_id(zone_name) or zone_name
        if name not in types or description not in LINUX or {zone, zone_name} & place.wavelength_zones:
            continue
        key = (zone, str(name))
        if key not in newest or _time(row) > _time(newest[key]):
            newest[key] = row
    return newest


def _zones(rows: list[Any], place: Place) -> dict[str, Zone]:
    names_by_id = {str(row.get("AvailabilityZoneId") or ""): str(row.get("AvailabilityZone") or "") for row in rows}
    return {
        zone_id: Zone(
            name=name,
            id=zone_id,
            kind=WAVELENGTH_ZONE if price_rows.WAVELENGTH_ZONE.search(name) else AVAILABILITY_ZONE,
            group=place.region,
        )
        for zone_id, name in names_by_id.items()
        if zone_id and name
    }


def _time(row: Mapping[str, Any]) -> datetime:
    at = row.get("Timestamp")
    if not isinstance(at, datetime):
        return datetime.min.replace(tzinfo=UTC)
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _offer(place: Place, zone: str, name: str, row: Mapping[str, Any], read_at: datetime) -> Offer:
    """Raises `Implausible`."""
    if not row.get("AvailabilityZoneId") and not place.zone_id(zone):
        raise Implausible("its zone has no id that other accounts know (DescribeAvailabilityZones does not list it)")
    return Offer(
        provider="aws",
        region=place.region,
        zone=zone,
        instance_type=name,
        price_kind=KIND,
        usd_micros_per_hour=_micros(row.get("SpotPrice")),
        observed_at=read_at,
        available=_on_sale(place, zone, name),
        source=SOURCE,
    )


def _micros(text: Any) -> int:
    try:
        return usd_micros(Decimal(str(text)))
    except (InvalidOperation, ValueError) as error:
        raise Implausible(f"{text!r} is no price") from error


def _on_sale(place: Place, zone: str, name: str) -> bool:
    """Whether the type is sold in that zone, if EC2 lists it by zone; history outlives a type."""
    zones = {zone for zone, types in (place.offered_in or {}).items() if name in types}
    if zones:
        return zone in zones
    return place.offered is None or name in place.offered
