"""Vast.ai, a marketplace: every host is an offer of its own, and of alike ones per country the cheapest is taken.

Alike are verified hosts with the same GPU and number of GPUs. `dph_base` is the price per hour of the whole offer without
disk; `min_bid` is the least bid that runs now, taken as the spot price. A search gives the cheapest first and may be cut off,
so it goes on at the last price until nothing is new. It works without a key; a wrong key answers 404.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from gpuplan.catalog.model.regions import UNKNOWN_REGION
from gpuplan.catalog.runtime.errors import ProviderFailure
from gpuplan.providers.cloud_endpoints import Sources, rest_account
from gpuplan.providers.contract import Provider
from gpuplan.providers.price_lists.field_reading import (
    WrongField,
    accelerator_names,
    number,
    number_if_stated,
    read_each,
    text,
    whole,
)
from gpuplan.providers.price_lists.list_provider import ListProvider
from gpuplan.providers.price_lists.listed_machines import ListedMachine, Listing
from gpuplan.providers.price_lists.rest_client import RestClient

NAME = "vast"
SEARCH = "/api/v0/bundles/"
#: The description of the search says 10 a minute for an address.
CALLS_PER_MINUTE = 10
LIMIT = 3000
#: The fewest offers to which an answer was seen to be cut.
SMALLEST_CUT = 64
#: Six minutes at the documented rate.
MOST_PAGES = 60
ON_DEMAND, SPOT = "on_demand", "spot"
VERIFIED = "verified"
_COUNTRY = re.compile(r"(?:.*,\s*)?([A-Z]{2})")


def provider(sources: Sources, *, read_at: datetime) -> Provider:
    """Vast.ai through `sources`, every offer observed at `read_at`."""
    account = rest_account(sources, NAME)
    client = RestClient(
        account,
        calls_per_minute=CALLS_PER_MINUTE,
        paced=sources.paced,
        needs_key=False,
        refused_key=("HTTP 401", "HTTP 403", "HTTP 404"),
    )
    return ListProvider(
        name=NAME,
        read=lambda: listing(list(_offers(client))),
        read_at=read_at,
        source=f"{account.endpoint.rstrip('/')}{SEARCH}",
        network_gbps=None,
    )


def listing(offers: Sequence[Any]) -> Listing:
    """The cheapest offer of each GPU, number of GPUs and country, on demand and as a bid."""
    cheapest: dict[tuple[str, str, str], ListedMachine] = {}
    sold, unread = read_each(((_named(row), row) for row in offers), lambda row: [tuple(_machines(row))])
    for machine in (machine for machines in sold for machine in machines):
        key = machine.name, machine.price_kind, machine.region
        if key not in cheapest or machine.usd_per_hour < cheapest[key].usd_per_hour:
            cheapest[key] = machine
    left_out = sum(not machines for machines in sold)
    note = f"{left_out} of {len(offers)} offers are of hosts that are not verified or not free"
    return Listing(
        regions=tuple(sorted({machine.region for machine in cheapest.values()})),
        machines=tuple(cheapest.values()),
        quarantined=unread,
        kinds_by_place=frozenset({ON_DEMAND, SPOT}),
        notes=(note,) if left_out else (),
    )


def _offers(client: RestClient) -> Iterator[Any]:
    """Every offer once, cheapest first. Raises `ProviderFailure`, also if the pages do not end."""
    seen: set[Any] = set()
    price: float | None = None
    for _ in range(MOST_PAGES):
        rows = _page(client, price)
        new = [row for row in rows if not (isinstance(row, dict) and row.get("id") in seen)]
        yield from new
        seen |= {row.get("id") for row in new if isinstance(row, dict)}
        prices = [row["dph_total"] for row in rows if isinstance(row, dict) and _is_number(row.get("dph_total"))]
        if len(rows) < SMALLEST_CUT or not new or not prices or max(prices) == price:
            return
        price = max(prices)
    raise ProviderFailure(f"{NAME}: more than {MOST_PAGES} pages of offers; earlier prices stay")


def _page(client: RestClient, least_price: float | None) -> list[Any]:
    """The free offers of verified hosts from a price on."""
    asked: dict[str, Any] = {
        "limit": LIMIT,
        "type": "on-demand",
        "verified": {"eq": True},
        "rentable": {"eq": True},
        "rented": {"eq": False},
        "order": [["dph_total", "asc"]],
    }
    if least_price is not None:
        asked["dph_total"] = {"gte": least_price}
    offers = client.post(SEARCH, asked).get("offers")
    if isinstance(offers, dict):  # as the documentation shows a single one
        return [offers]
    if not isinstance(offers, list):
        raise ProviderFailure(f"{NAME}: {SEARCH} changed its shape: offers is missing or no list")
    return offers


def _machines(row: Any) -> Iterator[ListedMachine]:
    """One offer on demand and, where its host takes lower bids, as a bid; nothing if it cannot be rented. Raises `WrongField`."""
    gpu, devices = text(row, "gpu_name").replace("_", " "), whole(row, "num_gpus")
    if text(row, "verification") != VERIFIED or row.get("rentable") is False or row.get("rented") is True:
        return
    usd, gib = number(row, "dph_base"), float(number(row, "gpu_ram")) / 1024
    if usd <= 0:
        raise WrongField(f"dph_base is {usd}: a price of zero means unknown")
    names = accelerator_names(__name__)
    prices = {ON_DEMAND: usd}
    bid = number_if_stated(row, "min_bid")
    if bid is not None and 0 < bid < usd:
        prices[SPOT] = bid
    for kind, price in prices.items():
        yield ListedMachine(
            name=f"{gpu} x{devices}",
            # Cards that are sold with two sizes of memory under one name have a row for each.
            accelerator=names.get(f"{gpu} {gib:.0f}", names.get(gpu, gpu)),
            devices=devices,
            usd_per_hour=price,
            price_kind=kind,
            region=_country(row),
            in_stock=True,
            gib_per_device=gib,
        )


def _country(row: Mapping[str, Any]) -> str:
    """The country of a host, the last part of its place; unknown where that is not stated."""
    place = row.get("geolocation")
    match = _COUNTRY.fullmatch(place.strip()) if isinstance(place, str) else None
    return match[1] if match else UNKNOWN_REGION


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _named(row: Any) -> str:
    """What identifies an offer for people."""
    fields = row if isinstance(row, dict) else {}
    return f"offer {fields.get('id')} ({fields.get('gpu_name')} x{fields.get('num_gpus')})"
