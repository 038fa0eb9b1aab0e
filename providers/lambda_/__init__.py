"""Lambda: one call lists every instance type, its price in cents per machine, and the regions with capacity.

An empty list of regions is the normal state of a sold-out type. The account's key reads; it needs no permission to start
anything. Lambda documents one request per second.
"""

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any

from gpuplan.providers.cloud_endpoints import Sources, rest_account
from gpuplan.providers.contract import Provider
from gpuplan.providers.price_lists.field_reading import (
    WrongField,
    accelerator_names,
    documented,
    mapping,
    read_each,
    sequence,
    text,
    whole,
)
from gpuplan.providers.price_lists.list_provider import ListProvider
from gpuplan.providers.price_lists.listed_machines import ListedMachine, Listing, stock_note
from gpuplan.providers.price_lists.rest_client import RestClient

NAME = "lambda"
TYPES, REGIONS = "/instance-types", "/regions"
CALLS_PER_SECOND = 1
GB_PER_GIB = 1.073741824
#: No fabric between instances that are launched one by one is documented: one port of 10 Gbit/s is assumed.
NETWORK_GBPS = 10.0


def provider(sources: Sources, *, read_at: datetime) -> Provider:
    """Lambda through `sources`, every offer observed at `read_at`."""
    account = rest_account(sources, NAME)
    client = RestClient(account, calls_per_second=CALLS_PER_SECOND, paced=sources.paced)
    return ListProvider(
        name=NAME,
        read=lambda: listing(client.get(TYPES), client.get(REGIONS)),
        read_at=read_at,
        source=f"{account.endpoint.rstrip('/')}{TYPES}",
        network_gbps=NETWORK_GBPS,
    )


def listing(types: dict[str, Any], regions: dict[str, Any]) -> Listing:
    """The answers of both calls as a list. Raises `ProviderFailure` with the field if their shape has changed."""
    with documented(NAME, f"{TYPES} or {REGIONS}"):
        entries = mapping(types, "data")
        names = tuple(text(row, "name") for row in sequence(regions, "data"))
    machines, unread = read_each(((name, (name, entry)) for name, entry in sorted(entries.items())), _machine)
    in_stock = {region for machine in machines for region in machine.regions_in_stock}
    return Listing(
        regions=tuple(sorted({*names, *in_stock})),
        machines=machines,
        quarantined=unread,
        notes=stock_note(machines),
    )


def _machine(named: tuple[str, Any]) -> Iterator[ListedMachine]:
    """One entry; nothing for a machine without accelerators. Raises `WrongField`."""
    name, entry = named
    kind = mapping(entry, "instance_type")
    specs = mapping(kind, "specs")
    devices = whole(specs, "gpus")
    if devices == 0:
        return
    if text(kind, "name") != name:
        raise WrongField(f"name is {kind['name']!r:.40}, not its key {name!r:.40}")
    described = text(kind, "gpu_description")
    cents = whole(kind, "price_cents_per_hour")
    yield ListedMachine(
        name=name,
        accelerator=accelerator_names(__name__).get(described, described),
        devices=devices,
        usd_per_hour=Decimal(cents) / 100,
        regions_in_stock=tuple(text(row, "name") for row in sequence(entry, "regions_with_capacity_available")),
        vcpus=float(whole(specs, "vcpus")),
        ram_gib=float(whole(specs, "memory_gib")),
        local_disk_gb=round(whole(specs, "storage_gib") * GB_PER_GIB, 6),
    )
