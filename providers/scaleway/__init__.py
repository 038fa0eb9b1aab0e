"""Scaleway: instance types, prices and stock by zone, in euros.

`/products/servers` does not name its currency. The public catalogue does, with a price per minute for GPU types and per hour
for others, so that both prices must agree. Stock is a word per type and zone; a type in shortage stays listed. All three
answer without a key; a key is sent if there is one.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import cache
from typing import Any

import httpx

from gpuplan.catalog.runtime.errors import ProviderFailure
from gpuplan.providers.cloud_endpoints import Sources, rest_account
from gpuplan.providers.contract import Provider
from gpuplan.providers.price_lists.currencies import EUR, Rates, current_rates
from gpuplan.providers.price_lists.field_reading import (
    WrongField,
    accelerator_names,
    documented,
    mapping,
    number,
    number_if_stated,
    read_each,
    sequence,
    text,
    whole,
    word,
)
from gpuplan.providers.price_lists.list_provider import RegionalListProvider
from gpuplan.providers.price_lists.listed_machines import ListedMachine, Listing, StockLevel, stock_note
from gpuplan.providers.price_lists.rest_client import RestClient

NAME = "scaleway"
#: The zones that sell machines with GPUs, and their regions. No call lists zones.
ZONES = {"fr-par-1": "fr-par", "fr-par-2": "fr-par", "pl-waw-2": "pl-waw"}
TYPES, STOCK = "/instance/v1/zones/{zone}/products/servers", "/instance/v1/zones/{zone}/products/servers/availability"
CATALOGUE = "/product-catalog/v2alpha1/public-catalog/products"
PER_PAGE = 50
#: No rate is documented.
CALLS_PER_SECOND = 5
IN_STOCK = {"available": True, "scarce": True, "shortage": False}
PER_HOUR = {"minute": 60, "hour": 1}
#: Prices per minute are rounded to nanos of a euro.
TOLERANCE = Decimal("0.01")
#: Gbit/s between machines whose network the list does not state.
NETWORK_GBPS = 10.0
NANOS = Decimal(10**9)
#: By which the API multiplies a price per hour for its price per month.
HOURS_PER_MONTH = 730
_SERIES = re.compile(r"(.+?)(?:-\d+-\d+G|-S)$")

Read = Callable[..., tuple[dict[str, Any], httpx.Headers]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneLists:
    """The answers about one zone: types, stock words and catalogue prices, each by type."""

    zone: str
    types: Mapping[str, Any]
    stock: Mapping[str, Any]
    prices: Mapping[str, Any]
    notes: tuple[str, ...] = ()


def provider(sources: Sources, *, read_at: datetime) -> Provider:
    """Scaleway through `sources`, every offer observed at `read_at`."""
    account = rest_account(sources, NAME)
    client = RestClient(
        account,
        calls_per_second=CALLS_PER_SECOND,
        paced=sources.paced,
        key_header="X-Auth-Token",
        needs_key=False,
    )
    rates = cache(lambda: current_rates(sources.ecb_rates_url, read_at))
    return RegionalListProvider(
        name=NAME,
        read_regions=lambda: sorted(set(ZONES.values())),
        read=lambda region: listing(region, [_lists(client.get_page, zone) for zone in _zones(region)], rates()),
        read_at=read_at,
        source=f"{account.endpoint.rstrip('/')}/instance/v1",
        network_gbps=NETWORK_GBPS,
    )


def listing(region: str, zones: list[ZoneLists], rates: Rates) -> Listing:
    """The answers about the zones of a region as one list."""
    entries = ((f"{name} in {lists.zone}", (name, lists)) for lists in zones for name in sorted(lists.types))
    machines, unread = read_each(entries, lambda entry: _machine(region, *entry, rates))
    return Listing(
        regions=(region,),
        machines=machines,
        quarantined=unread,
        kinds_by_place=frozenset({"on_demand"}),
        notes=(*stock_note(machines, f"in {region}"), *(note for lists in zones for note in lists.notes), *rates.notes),
    )


def _zones(region: str) -> Iterator[str]:
    return (zone for zone, of in ZONES.items() if of == region)


def _lists(read: Read, zone: str) -> ZoneLists:
    """All pages about a zone. Raises `ProviderFailure`, with the field if a shape has changed."""
    with documented(NAME, f"the answer about {zone}"):
        types, stock = _servers(read, TYPES.format(zone=zone)), _servers(read, STOCK.format(zone=zone))
    try:
        return ZoneLists(zone=zone, types=types, stock=stock, prices=_catalogue(read, zone))
    except (ProviderFailure, WrongField) as failure:
        note = f"the catalogue that names the currency of {zone} cannot be read, so euros are assumed: {failure}"
        return ZoneLists(zone=zone, types=types, stock=stock, prices={}, notes=(note,))


def _servers(read: Read, path: str) -> dict[str, Any]:
    """The object of all pages. The number of entries is in a header, and the next page in another."""
    entries: dict[str, Any] = {}
    page, has_next = 1, True
    while has_next:
        document, headers = read(path, page=str(page), per_page=str(PER_PAGE))
        rows = mapping(document, "servers")
        has_new = bool(rows.keys() - entries.keys())
        twice = [name for name in rows.keys() & entries.keys() if rows[name] != entries[name]]
        entries |= rows | dict.fromkeys(twice)
        total, link = headers.get("x-total-count", ""), headers.get("link")
        is_last = len(rows) < PER_PAGE if link is None else 'rel="next"' not in link
        has_next = page * PER_PAGE < int(total) if total.isdecimal() else not is_last and has_new
        if has_next and not rows:
            raise ProviderFailure(
                f"{NAME}: page {page} of {path} is empty, but {total or 'more'} entries are announced"
            )
        page += 1
    return entries


def _catalogue(read: Read, zone: str) -> dict[str, Any]:
    """The rows of the public catalogue about a zone, by type."""
    by_type: dict[str, Any] = {}
    page, seen, total = 1, 0, 1
    while seen < total:
        document, _ = read(CATALOGUE, product_types="instance", zone=zone, page=str(page), page_size=str(PER_PAGE))
        rows, total = sequence(document, "products"), whole(document, "total_count")
        if not rows:
            break
        for row in rows:
            if (mapping(row, "locality").get("zone") or zone) == zone:
                by_type[text(mapping(mapping(row, "properties"), "instance"), "offer_id")] = row
        page, seen = page + 1, seen + len(rows)
    return by_type


def _machine(region: str, name: str, lists: ZoneLists, rates: Rates) -> Iterator[ListedMachine]:
    """One type in one zone; nothing for a machine without accelerators. Raises `WrongField`."""
    entry = lists.types[name]
    if entry is None:
        raise WrongField("the pages of the list describe it differently")
    if mapping({name: entry}, name).get("gpu") in (None, 0):
        return
    if entry.get("mig_profile"):
        raise WrongField(f"mig_profile is {entry['mig_profile']!r:.40}: a slice of a GPU, which is not read")
    gpu, devices = mapping(entry, "gpu_info"), whole(entry, "gpu")
    stock = word(lists.stock.get(name), "availability", IN_STOCK)
    usd, conversion = _price(name, entry, lists, rates)
    series = _SERIES.match(name)
    bits = number_if_stated(mapping(entry, "network"), "sum_internal_bandwidth")
    disk_bytes = number_if_stated(entry, "scratch_storage_max_size")
    yield ListedMachine(
        name=name,
        accelerator=accelerator_names(__name__).get(series[1] if series else name, text(gpu, "gpu_name")),
        devices=devices,
        usd_per_hour=usd,
        conversion=conversion,
        region=region,
        zone=lists.zone,
        in_stock=stock and not entry.get("end_of_service"),
        levels=(StockLevel(region=region, word=lists.stock[name]["availability"]),),
        vcpus=float(whole(entry, "ncpus")),
        ram_gib=round(whole(entry, "ram") / 2**30, 3),
        local_disk_gb=float(disk_bytes) / 1e9 if disk_bytes else None,
        gib_per_device=whole(gpu, "gpu_memory") / 2**30,
        network_gbps=float(bits) / 1e9 if bits else None,
    )


def _price(name: str, entry: Any, lists: ZoneLists, rates: Rates) -> tuple[Decimal, str]:
    """US dollars per hour. Raises `WrongField` if the catalogue contradicts the list or names another currency."""
    hourly, monthly = number(entry, "hourly_price"), number_if_stated(entry, "monthly_price")
    if monthly and not 0.5 < hourly * HOURS_PER_MONTH / monthly < 2:
        raise WrongField(f"hourly_price is {hourly}, but monthly_price is {monthly}")
    if name not in lists.prices:
        return rates.usd(hourly, EUR)
    row = lists.prices[name]
    retail, unit = mapping(mapping(row, "price"), "retail_price"), mapping(row, "unit_of_measure")
    units, nanos = (number_if_stated(retail, part) or 0 for part in ("units", "nanos"))
    per_hour = (units + nanos / NANOS) * word(unit, "unit", PER_HOUR) / (number_if_stated(unit, "size") or 1)
    if abs(per_hour - hourly) > TOLERANCE * hourly:
        raise WrongField(f"hourly_price is {hourly}, but the catalogue's price comes to {per_hour:f} an hour")
    return rates.usd(hourly, text(retail, "currency_code"))
