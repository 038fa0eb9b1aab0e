"""Capacity blocks: the price per node-hour of a one-day booking, the cheapest of the coming weeks per zone."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

from gpuplan.catalog.model.money import MICROS_PER_USD
from gpuplan.catalog.model.offer import Implausible, Offer
from gpuplan.providers.aws.api_calls import CallFailed, Calls
from gpuplan.providers.aws.regions_and_zones import Place
from gpuplan.providers.contract import Quarantined

KIND = "capacity_block"
SOURCE = "EC2 DescribeCapacityBlockOfferings"
#: Blocks start up to eight weeks ahead; a day is the shortest duration and available everywhere.
LOOK_AHEAD = timedelta(weeks=8)
DURATION_HOURS = 24
#: EC2's error code for a type that is not sold in blocks in a region: nothing is missing then.
NOT_SOLD = frozenset(
    {
        "InvalidInstanceType",
        "InvalidParameterCombination",
        "InvalidParameterValue",
        "Unsupported",
        "UnsupportedOperation",
    }
)


@dataclass(slots=True, kw_only=True)
class BlockRows:
    """The cheapest block per zone and type, and the quarantined rows."""

    offers: list[Offer] = field(default_factory=list)
    quarantined: list[Quarantined] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


def read_capacity_blocks(calls: Calls, place: Place, types: frozenset[str], *, read_at: datetime) -> BlockRows:
    """One node for one day of each type; stops after a refusal that applies to every type."""
    block_rows = BlockRows()
    cheapest: dict[tuple[str, str], Offer] = {}
    for name in sorted(types):
        try:
            rows = block_offerings(calls, place.region, name, read_at)
        except CallFailed as failure:
            if failure.code in NOT_SOLD:
                continue
            block_rows.failures.append(f"{failure}; its capacity block prices stay as they were")
            break
        for row in rows:
            offer = _offer(block_rows, place, name, row, read_at)
            if offer and offer.usd_micros_per_hour < _micros_of(cheapest.get((offer.zone, offer.instance_type))):
                cheapest[offer.zone, offer.instance_type] = offer
    block_rows.offers = [cheapest[key] for key in sorted(cheapest)]
    return block_rows


def block_offerings(calls: Calls, region: str, name: str, read_at: datetime, *, nodes: int = 1) -> list[Any]:
    """EC2's offers of one-day blocks of `nodes` machines that start in the coming weeks. Raises `CallFailed`."""
    return calls.every(
        "ec2",
        region,
        "describe_capacity_block_offerings",
        "CapacityBlockOfferings",
        InstanceType=name,
        InstanceCount=nodes,
        CapacityDurationHours=DURATION_HOURS,
        StartDateRange=read_at,
        EndDateRange=read_at + LOOK_AHEAD,
        MaxResults=100,
    )


def _offer(block_rows: BlockRows, place: Place, asked: str, row: Mapping[str, Any], read_at: datetime) -> Offer | None:
    """The fee covers the whole block: all of its machines, all of its hours."""
    name = str(row.get("InstanceType") or asked)
    if name != asked or str(row.get("CurrencyCode") or "USD") != "USD" or row.get("UltraserverCount"):
        return None
    zone_name = str(row.get("AvailabilityZone") or "")
    if zone_name in place.wavelength_zones:
        return None
    zone = place.zone_id(zone_name)
    what = f"capacity block {name} in {zone_name or place.region}"
    try:
        if not zone:
            raise Implausible(
                "its zone has no id that other accounts know (DescribeAvailabilityZones does not list it)"
            )
        per_hour = _fee(row) / (_count(row) * _hours(row))
        return Offer(
            provider="aws",
            region=place.region,
            zone=zone,
            instance_type=name,
            price_kind=KIND,
            usd_micros_per_hour=round(per_hour * MICROS_PER_USD),
            observed_at=read_at,
            source=SOURCE,
        )
    except (InvalidOperation, ValueError, ZeroDivisionError) as problem:
        block_rows.quarantined.append(
            Quarantined(what=what, reason=str(problem) or f"{row.get('UpfrontFee')!r} is no price")
        )
        return None


def _fee(row: Mapping[str, Any]) -> Fraction:
    text = row.get("UpfrontFee")
    try:
        return Fraction(Decimal(str(text)))
    except (InvalidOperation, ValueError, OverflowError) as error:
        raise Implausible(f"an upfront fee of {text!r} is no price") from error


def _count(row: Mapping[str, Any]) -> int:
    return int(row.get("InstanceCount") or 1)


def _hours(row: Mapping[str, Any]) -> Fraction:
    """As stated (the minutes are in addition to the hours), else from start to end, else as requested."""
    hours, minutes = int(row.get("CapacityBlockDurationHours") or 0), int(row.get("CapacityBlockDurationMinutes") or 0)
    if hours or minutes:
        return hours + Fraction(minutes % 60 if hours else minutes, 60)
    start, end = row.get("StartDate"), row.get("EndDate")
    if isinstance(start, datetime) and isinstance(end, datetime) and end > start:
        return Fraction(int((end - start).total_seconds()), 3600)
    return Fraction(DURATION_HOURS)


def _micros_of(offer: Offer | None) -> float:
    return offer.usd_micros_per_hour if offer else float("inf")
