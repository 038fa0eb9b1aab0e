"""Oracle Cloud: a public price list per GPU, and the public list of shapes of Oracle's cost estimator; no account is needed.

A shape costs its number of GPUs times the price of its part, although the shape calls the part one of OCPUs. Both lists
hold for all commercial regions and say nothing about stock or places: offers have an unknown place and modelled
obtainability. Where a shape may be preemptible, it costs half of that.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from gpuplan.catalog.model.exchange_rates import USD
from gpuplan.catalog.runtime.errors import ProviderFailure
from gpuplan.providers.cloud_endpoints import Sources, rest_account
from gpuplan.providers.contract import Provider
from gpuplan.providers.feed_client import get_json, web_client
from gpuplan.providers.price_lists.field_reading import (
    WrongField,
    accelerator_names,
    documented,
    mapping,
    number,
    number_if_stated,
    read_each,
    sequence,
    stated,
    text,
    whole,
)
from gpuplan.providers.price_lists.list_provider import ListProvider
from gpuplan.providers.price_lists.listed_machines import ListedMachine, Listing
from gpuplan.providers.price_lists.rest_client import RestClient

NAME = "oci"
PRODUCTS = "/products/"
#: No rate is documented; there are two calls.
CALLS_PER_SECOND = 2
#: Other categories with GPUs are VMware, Cloud@Customer and Roving Edge.
CATEGORY, METRIC, MODEL = "Compute - GPU", "GPU Per Hour", "PAY_AS_YOU_GO"
ON_DEMAND, SPOT = "on_demand", "spot"
#: Preemptible capacity costs 50 % less: https://docs.oracle.com/en-us/iaas/Content/Compute/Concepts/preemptible.htm
PREEMPTIBLE_SHARE = Decimal("0.5")
#: Gbit/s between machines that gpuplan's own table lacks.
NETWORK_GBPS = 10.0


def provider(sources: Sources, *, read_at: datetime) -> Provider:
    """Oracle Cloud through `sources`, every offer observed at `read_at`."""
    account = rest_account(sources, NAME)
    client = RestClient(account, calls_per_second=CALLS_PER_SECOND, paced=sources.paced, key_header=None)
    return ListProvider(
        name=NAME,
        read=lambda: listing(client.get(PRODUCTS, currencyCode=USD), _shapes(sources.oci_shapes_url)),
        read_at=read_at,
        source=f"{account.endpoint.rstrip('/')}{PRODUCTS}",
        network_gbps=NETWORK_GBPS,
    )


def listing(products: Mapping[str, Any], shapes: Mapping[str, Any]) -> Listing:
    """Both lists as one. Raises `ProviderFailure` with the field if a shape of the answers has changed."""
    with documented(NAME, "the price list or the list of shapes"):
        parts: dict[str, list[Any]] = {}
        for row in sequence(products, "items"):
            if text(row, "serviceCategory") == CATEGORY:
                parts.setdefault(text(row, "partNumber"), []).append(row)
        rows = sequence(shapes, "items")
    machines, unread = read_each(((stated(row, "name"), row) for row in rows), lambda row: _machines(row, parts))
    return Listing(
        regions=(),
        machines=machines,
        quarantined=unread,
        notes=("neither regions nor stock are public: offers have an unknown place",),
    )


def _shapes(url: str) -> dict[str, Any]:
    """The list of shapes. Raises `ProviderFailure`."""
    with web_client() as client:
        document, _ = get_json(client, url)
    if not isinstance(document, dict):
        raise ProviderFailure(f"{url}: answered with JSON that is no object; check GPUPLAN_OCI_SHAPES_URL")
    return document


def _machines(row: Any, parts: Mapping[str, list[Any]]) -> Iterator[ListedMachine]:
    """One shape on demand and, where Oracle allows it, preemptible; nothing for others. Raises `WrongField`."""
    row = mapping({"shape": row}, "shape")
    if row.get("hidden") or row.get("status") != "ACTIVE" or _word(row, "subType") != "gpu":
        return
    name, devices = text(row, "name"), whole(row, "gpuQty")
    numbers = [text(part, "partNumber") for part in sequence(row, "products")]
    if len(numbers) != 1 or numbers[0] not in parts:
        raise WrongField(
            f"products is {', '.join(numbers) or 'empty'}, not one part that the list prices as {CATEGORY}"
        )
    (part,) = numbers
    usd, gb = _usd(parts[part]) * devices, number_if_stated(row, "gpuMemoryQty")
    prices = {ON_DEMAND: usd} | ({SPOT: usd * PREEMPTIBLE_SHARE} if row.get("allowPreemptible") is True else {})
    for kind, price in prices.items():
        yield ListedMachine(
            name=name,
            accelerator=accelerator_names(__name__).get(part, text(parts[part][0], "displayName")),
            devices=devices,
            usd_per_hour=price,
            price_kind=kind,
            conversion="half of the price on demand (preemptible)" if kind == SPOT else "",
            in_stock=True,
            stock_known=False,
            ram_gib=float(number(row, "bundleMemoryQty")),
            gib_per_device=float(gb) / devices if gb and devices else None,
        )


def _usd(rows: list[Any]) -> Decimal:
    """US dollars per GPU and hour of a part. Raises `WrongField` for another metric, currency, or several prices."""
    prices: set[Decimal] = set()
    for row in rows:
        if text(row, "metricName") != METRIC:
            raise WrongField(f"metricName is {row['metricName']!r:.40}, not {METRIC}")
        for localized in sequence(row, "currencyCodeLocalizations"):
            if text(localized, "currencyCode") == USD:
                prices |= {
                    number(price, "value") for price in sequence(localized, "prices") if text(price, "model") == MODEL
                }
    if len(prices) != 1:
        raise WrongField(f"currencyCodeLocalizations has {len(prices)} prices of {MODEL} in {USD}, not one")
    return prices.pop()


def _word(row: Mapping[str, Any], name: str) -> str:
    """A word that some lists wrap in an object with its `value`. Raises `WrongField`."""
    return text(mapping(row, name), "value") if isinstance(row.get(name), dict) else text(row, name)
