"""Verda, formerly DataCrunch: a list of instance types with prices on demand and on spot, and stock per location and kind.

Prices are texts, and the same in every location. A type is in stock where `/instance-availability` lists it, which is asked
for spot and not. Prices can be read without an account; stock needs one (OAuth2 client credentials). A spot price that is 0
or that of on-demand is no offer. Clusters (`/cluster-types`) and long terms are not read.
"""

import os
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from gpuplan.catalog.runtime.errors import ProviderFailure
from gpuplan.providers.cloud_endpoints import Sources, rest_account
from gpuplan.providers.contract import Provider
from gpuplan.providers.price_lists.field_reading import (
    accelerator_names,
    amount,
    documented,
    mapping,
    read_each,
    sequence,
    stated,
    text,
    whole,
    word,
)
from gpuplan.providers.price_lists.list_provider import ListProvider
from gpuplan.providers.price_lists.listed_machines import ListedMachine, Listing, stock_note
from gpuplan.providers.price_lists.rest_client import RestClient

NAME = "verda"
TYPES, STOCK, LOCATIONS, TOKEN = "/instance-types", "/instance-availability", "/locations", "/oauth2/token"
CLIENT_ID = "VERDA_CLIENT_ID"
#: No rate is documented.
CALLS_PER_SECOND = 2
ON_DEMAND, SPOT = "on_demand", "spot"
#: `8H100.80S.176V`: number, accelerator, vCPUs; further parts as in `1B200.30V.CC`.
_TYPE = re.compile(r"\d+([A-Z][A-Z0-9]*(?:\.\d+S)?)\.")

Stock = Mapping[str, Sequence[Any]]


def provider(sources: Sources, *, read_at: datetime) -> Provider:
    """Verda through `sources`, every offer observed at `read_at`."""
    account = rest_account(sources, NAME)
    client = RestClient(account, calls_per_second=CALLS_PER_SECOND, paced=sources.paced, key_header=None)
    return ListProvider(
        name=NAME,
        read=lambda: _read(client),
        read_at=read_at,
        source=f"{account.endpoint.rstrip('/')}{TYPES}",
        network_gbps=None,
    )


def _read(client: RestClient) -> Listing:
    if client.account.key is None:
        return listing(client.get_list(TYPES, currency="usd"), None, ())
    client_id = os.environ.get(CLIENT_ID)
    if not client_id:
        raise ProviderFailure(f"{NAME}: {client.account.key_variable} is set, but not {CLIENT_ID}")
    client.log_in(TOKEN, client_id)
    stock = {kind: client.get_list(STOCK, is_spot=flag) for kind, flag in ((ON_DEMAND, "false"), (SPOT, "true"))}
    return listing(client.get_list(TYPES, currency="usd"), stock, client.get_list(LOCATIONS))


def listing(types: Sequence[Any], stock: Stock | None, locations: Sequence[Any]) -> Listing:
    """The answers as one list; None for `stock` if it is not known. Raises `ProviderFailure` if a shape has changed."""
    places: dict[tuple[str, str], list[str]] = {}
    with documented(NAME, f"{STOCK} or {LOCATIONS}"):
        regions = {text(row, "code") for row in locations}
        for kind, rows in (stock or {}).items():
            for row in rows:
                regions.add(text(row, "location_code"))
                for name in sequence(row, "availabilities"):
                    places.setdefault((kind, str(name)), []).append(text(row, "location_code"))
    named = ((stated(row, "instance_type"), row) for row in types)
    machines, unread = read_each(named, lambda row: _machines(row, places, stock_known=stock is not None))
    notes = stock_note(machines) if stock is not None else (f"stock is not known: set {CLIENT_ID} and its secret",)
    return Listing(
        regions=tuple(sorted(regions)),
        machines=machines,
        quarantined=unread,
        notes=notes,
    )


def _machines(row: Any, places: Mapping[tuple[str, str], Sequence[str]], *, stock_known: bool) -> list[ListedMachine]:
    """One type on demand and, where it is sold so, on spot; nothing without accelerators. Raises `WrongField`."""
    name, devices = text(row, "instance_type"), whole(mapping(row, "gpu"), "number_of_gpus")
    if devices == 0:
        return []
    word(row, "currency", {"usd": True, "USD": True})
    usd = amount(row, "price_per_hour")
    prices = {ON_DEMAND: usd}
    spot = _spot(row)
    if spot is not None and spot not in (0, usd):
        prices[SPOT] = spot
    part = _TYPE.match(name)
    described = part[1] if part else name
    return [
        ListedMachine(
            name=name,
            accelerator=accelerator_names(__name__).get(described, text(row, "model")),
            devices=devices,
            usd_per_hour=price,
            price_kind=kind,
            regions_in_stock=tuple(dict.fromkeys(places.get((kind, name), ()))),
            in_stock=not stock_known,
            stock_known=stock_known,
            vcpus=float(whole(mapping(row, "cpu"), "number_of_cores")),
        )
        for kind, price in prices.items()
    ]


def _spot(row: Any) -> Decimal | None:
    """The price on spot, which some replies name `spot_price_per_hour`; None where there is none."""
    name = "spot_price" if row.get("spot_price") is not None else "spot_price_per_hour"
    return None if row.get(name) is None else amount(row, name)
