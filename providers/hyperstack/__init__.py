"""Hyperstack: flavors per region, prices per GPU and hour in a price book, and stock per size.

The price book names GPU models; a flavor costs its number of GPUs times that price. A flavor is in stock in a region where
`stock_available` says so and `/core/stocks` has a configuration of its size. Spot and reserved prices are not in the price
book as far as documented, and are not read.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from gpuplan.providers.cloud_endpoints import Sources, rest_account
from gpuplan.providers.contract import Provider
from gpuplan.providers.price_lists.field_reading import (
    WrongField,
    accelerator_names,
    amount,
    documented,
    mapping,
    number,
    read_each,
    sequence,
    stated,
    text,
    whole,
    yes_no,
)
from gpuplan.providers.price_lists.list_provider import ListProvider
from gpuplan.providers.price_lists.listed_machines import (
    IN_STOCK,
    SOLD_OUT,
    ListedMachine,
    Listing,
    StockLevel,
    stock_note,
)
from gpuplan.providers.price_lists.rest_client import RestClient

NAME = "hyperstack"
FLAVORS, PRICES, STOCKS = "/core/flavors", "/pricebook", "/core/stocks"
#: 500 a minute for an address are documented.
CALLS_PER_SECOND = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Flavor:
    """A flavor of one region: a machine of `devices` GPUs of a model; `free` machines can be started, None if not stated."""

    name: str
    gpu: str
    region: str
    devices: int
    in_stock: bool
    free: int | None
    vcpus: float
    ram_gb: float


def provider(sources: Sources, *, read_at: datetime) -> Provider:
    """Hyperstack through `sources`, every offer observed at `read_at`."""
    account = rest_account(sources, NAME)
    client = RestClient(account, calls_per_second=CALLS_PER_SECOND, paced=sources.paced, key_header="api_key")
    return ListProvider(
        name=NAME,
        read=lambda: listing(client.get(FLAVORS), client.get_list(PRICES), client.get(STOCKS)),
        read_at=read_at,
        source=f"{account.endpoint.rstrip('/')}{PRICES}",
        network_gbps=None,
    )


def listing(flavors: Mapping[str, Any], prices: Sequence[Any], stocks: Mapping[str, Any]) -> Listing:
    """The answers as one list. Raises `ProviderFailure` with the field if a shape has changed."""
    with documented(NAME, f"{FLAVORS}, {PRICES} or {STOCKS}"):
        free = _free(stocks)
        rows = [
            (text(group, "region_name"), row)
            for group in sequence(flavors, "data")
            for row in sequence(group, "flavors")
        ]
        price_rows: dict[str, list[Any]] = {}
        for row in prices:
            price_rows.setdefault(text(row, "name"), []).append(row)
    named = ((f"{stated(row, 'name')} in {region}", (region, row)) for region, row in rows)
    flavors_read, unread = read_each(named, lambda entry: _flavor(*entry, free))
    by_name: dict[str, list[Flavor]] = {}
    for flavor in flavors_read:
        by_name.setdefault(flavor.name, []).append(flavor)
    machines, unpriced = read_each(sorted(by_name.items()), lambda alike: [_machine(alike, price_rows)])
    return Listing(
        regions=tuple(sorted({region for region, _ in rows})),
        machines=machines,
        quarantined=(*unread, *unpriced),
        notes=stock_note(machines),
    )


def _free(stocks: Mapping[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    """The configurations that can be started, such as `{"8x": 5}`, by region and model of GPU."""
    return {
        (text(place, "region"), text(model, "model")): mapping(model, "configurations")
        for place in sequence(stocks, "stocks")
        for model in sequence(place, "models")
    }


def _flavor(region: str, row: Any, free: Mapping[tuple[str, str], dict[str, Any]]) -> Iterator[Flavor]:
    """One flavor in a region; nothing for one without GPUs. Raises `WrongField`."""
    devices = whole(row, "gpu_count")
    if devices == 0:
        return
    gpu, size = text(row, "gpu"), f"{devices}x"
    configurations = free.get((region, gpu), {})
    left = int(number(configurations, size)) if size in configurations else None
    in_stock = yes_no(row, "stock_available") and left != 0
    yield Flavor(
        name=text(row, "name"),
        gpu=gpu,
        region=region,
        devices=devices,
        in_stock=in_stock,
        free=left if in_stock else 0,
        vcpus=float(number(row, "cpu")),
        ram_gb=float(number(row, "ram")),
    )


def _machine(alike: Sequence[Flavor], price_rows: Mapping[str, Sequence[Any]]) -> ListedMachine:
    """One flavor of all its regions. Raises `WrongField` if its model has no price, or its regions contradict."""
    first = alike[0]
    if any((flavor.gpu, flavor.devices) != (first.gpu, first.devices) for flavor in alike):
        raise WrongField("gpu and gpu_count differ between regions")
    if first.gpu not in price_rows:
        raise WrongField(f"gpu is {first.gpu!r:.40}, which {PRICES} does not price")
    usd_prices: set[Decimal] = {amount(row, "value") for row in price_rows[first.gpu]}
    if len(usd_prices) > 1:
        raise WrongField(f"gpu is {first.gpu!r:.40}, which {PRICES} lists twice at different prices")
    (price,) = usd_prices
    return ListedMachine(
        name=first.name,
        accelerator=accelerator_names(__name__).get(first.gpu, first.gpu),
        devices=first.devices,
        usd_per_hour=price * first.devices,
        regions_in_stock=tuple(dict.fromkeys(flavor.region for flavor in alike if flavor.in_stock)),
        levels=tuple(
            StockLevel(region=flavor.region, word=IN_STOCK if flavor.in_stock else SOLD_OUT, machines=flavor.free)
            for flavor in alike
        ),
        vcpus=first.vcpus,
        ram_gib=first.ram_gb,
    )
