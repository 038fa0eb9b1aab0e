"""One row of a list of rates as a machine and an offer: pure. A field that cannot be used is named."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

from gpuplan.catalog.model.accelerators import find_accelerator
from gpuplan.catalog.model.exchange_rates import USD
from gpuplan.catalog.model.money import usd_micros
from gpuplan.catalog.model.offer import PLAIN_NETWORK, InstanceType, Offer
from gpuplan.catalog.model.price_kinds import PriceKind, price_kinds
from gpuplan.catalog.model.regions import UNKNOWN_REGION
from gpuplan.providers.own_rates.document_rows import Row
from gpuplan.providers.price_lists.currencies import Rates
from gpuplan.providers.price_lists.field_reading import WrongField, amount, word
from gpuplan.providers.price_lists.listed_machines import OBTAINABILITY, is_about

#: Where only a plain network, and no rate, is known, one port of 10 Gbit/s is assumed, as for neoclouds.
NETWORK_GBPS = 10.0
#: Words for the link inside a machine and the fabric between machines, in lower case.
LINKS = {name: name for name in ("pcie", "nvlink", "nvlink-bridge", "infinity-fabric")}
FABRICS = {"plain": PLAIN_NETWORK, "infiniband": "InfiniBand", "roce": "RoCE", "efa": "EFA"}
#: A word for machines of third parties at a fixed price, as lists of marketplaces have it.
COMMUNITY, ON_DEMAND = "community", "on_demand"
#: The missing part of a price whose contract length is not stated.
TERM = "term"
_PLACE = re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9_.-]{0,59})?")
_MACHINE = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._+()-]{0,79}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RatesOrigin:
    """The provider of the list, where the list is (without secrets), and when it was read."""

    provider: str
    where: str
    read_at: datetime


def machine_of(row: Row, origin: RatesOrigin) -> InstanceType:
    """The machine of a row. Raises `ValueError` or `UnusableInput` with the field."""
    _check_provider(row, origin)
    device = find_accelerator(row["accelerator"])
    devices, stated_gib = _count(row, "accelerator_count"), _size(row, "accelerator_memory_gib")
    if stated_gib is not None and not is_about(stated_gib, device.device_memory_mib / 1024):
        has = f"{device.name} has {device.device_memory_mib / 1024:.0f}"
        raise ValueError(f"accelerator_memory_gib is {stated_gib:g}, but {has}: state that of one accelerator")
    if row.get("min_nodes", "") and _count(row, "min_nodes") > 1:
        raise ValueError("min_nodes above 1 cannot be planned on; list what one node costs, or leave the row out")
    clusters = not row.get("max_nodes") or _count(row, "max_nodes") > 1
    fabric, link = _word(row, "fabric", FABRICS) or PLAIN_NETWORK, _word(row, "intranode_link", LINKS)
    gbps = _size(row, "internode_gbps")
    if clusters and fabric != PLAIN_NETWORK and gbps is None:
        raise ValueError(f"internode_gbps is missing: state the rate of {fabric} between nodes")
    return InstanceType(
        provider=origin.provider,
        name=_matching(row, "instance_type", _MACHINE, "up to 80 letters, digits, blanks and ._+()-"),
        accelerator=device.name,
        accelerator_count=Fraction(devices),
        vcpus=_size(row, "vcpus"),
        ram_gib=_size(row, "memory_gib"),
        local_disk_gb=_size(row, "local_disk_gb"),
        intranode_link=link,
        intranode_gbs=device.pcie_gbs if link == "pcie" and 1 < devices <= device.link_domain else None,
        scaleup_domain=devices,
        network_gbps=(gbps or NETWORK_GBPS) if clusters else None,
        fabric=fabric if clusters else "",
        clusters=clusters,
        source=row.get("source") or origin.where,
        as_of=f"{origin.read_at:%Y-%m-%d}",
    )


def offer_of(row: Row, machine: InstanceType, origin: RatesOrigin, rates: Rates) -> Offer:
    """The price of a row, observed when the list was read. Raises `ValueError` with the field."""
    kind, day = _kind(row), stated_day(row, origin)
    usd, conversion = _usd(row, rates)
    region = _matching(row, "region", _PLACE, "up to 60 letters, digits and _.-") or UNKNOWN_REGION
    source = row.get("source") or origin.where
    return Offer(
        provider=origin.provider,
        region=region,
        zone=_matching(row, "zone", _PLACE, "up to 60 letters, digits and _.-"),
        instance_type=machine.name,
        price_kind=kind.name,
        usd_micros_per_hour=usd_micros(usd),
        observed_at=origin.read_at,
        modelled=(OBTAINABILITY,) if region == UNKNOWN_REGION else (),
        partial=() if kind.has_stated_term else (TERM,),
        source="; ".join(filter(None, (source, f"stated on {day}" if day else "", conversion))),
    )


def joined(earlier: InstanceType | None, later: InstanceType) -> InstanceType:
    """The machine with every size that either row states, of two statements the first.

    Raises `ValueError` if the rows disagree about its accelerators or its network.
    """
    if earlier is None:
        return later
    for name in ("accelerator", "accelerator_count", "fabric", "clusters"):
        if getattr(earlier, name) != getattr(later, name):
            raise ValueError(
                f"{later.name} has another {name.replace('clusters', 'max_nodes')} in an earlier row "
                f"({getattr(earlier, name)}, here {getattr(later, name)}): give each machine an instance_type of its own"
            )
    missing = [item.name for item in fields(InstanceType) if getattr(earlier, item.name) in {None, ""}]
    return replace(earlier, **{name: getattr(later, name) for name in missing})


def stated_day(row: Row, origin: RatesOrigin) -> date | None:
    """The day of the price as the list states it. Raises `ValueError` for one that is no day, or to come."""
    text = row.get("observed_at", "")
    if not text:
        return None
    try:
        day = date.fromisoformat(text[:10])
    except ValueError:
        raise ValueError(f"observed_at is {text!r:.40}, not a day such as 2026-10-01") from None
    if day > (origin.read_at + timedelta(days=1)).date():
        raise ValueError(f"observed_at is {day}, which is to come")
    return day


def _check_provider(row: Row, origin: RatesOrigin) -> None:
    stated = row.get("provider", "")
    if stated not in {"", origin.provider}:
        raise ValueError(f"provider is {stated!r:.40}, but the settings call this list {origin.provider}")


def _kind(row: Row) -> PriceKind:
    name = row["price_kind"].lower()
    kind = price_kinds().get(ON_DEMAND if name == COMMUNITY else name)
    if kind is None or kind.owned:
        accepted = ", ".join(kind.name for kind in price_kinds().values() if not kind.owned)
        raise WrongField(f"price_kind is {row['price_kind']!r:.40}, not one of {accepted}")
    return kind


def _usd(row: Row, rates: Rates) -> tuple[Decimal, str]:
    """US dollars per hour of the whole machine, and how another currency was converted."""
    currency, stated = row.get("currency", "") or USD, row.get("amount", "")
    if currency != USD:
        return rates.usd(amount({"amount": stated or None}, "amount"), currency)
    name = "usd_per_hour" if row.get("usd_per_hour") else "amount"
    return amount({name: row.get(name) or None}, name), ""


def _count(row: Row, name: str) -> int:
    value = amount({name: row[name] or None}, name)
    if value != int(value) or value < 1:
        raise WrongField(f"{name} is {row[name]!r:.40}, not a whole number from 1")
    return int(value)


def _size(row: Row, name: str) -> float | None:
    return float(amount(row, name)) if row.get(name) else None


def _word(row: Row, name: str, accepted: Mapping[str, str]) -> str:
    folded = row.get(name, "").lower().replace(" ", "-")
    return word({name: folded}, name, accepted) if folded else ""


def _matching(row: Row, name: str, pattern: re.Pattern[str], accepted: str) -> str:
    text = row.get(name, "")
    if not pattern.fullmatch(text):
        raise WrongField(f"{name} is {text!r:.40}; accepted: {accepted}")
    return text
