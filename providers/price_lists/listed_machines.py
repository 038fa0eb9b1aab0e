"""Contract rows from a provider's list of machines, prices and stock: pure.

The list has one price for all regions and the regions in which a machine can be had now. A machine in stock is offered
there. Its price without a place is kept as unavailable, so that a sold-out machine keeps its price and nothing is planned
on it. In a region, earlier offers that are not in stock any more stay as unavailable (`Rows.closed`).

A list may also state a price for each place (`ListedMachine.region`). Then it is whole for each place, and a machine that a
place does not list any more is not sold there.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from fractions import Fraction

from gpuplan.catalog.model.accelerators import find_accelerator
from gpuplan.catalog.model.money import usd_micros
from gpuplan.catalog.model.offer import PLAIN_NETWORK, Implausible, InstanceType, Offer
from gpuplan.catalog.model.regions import UNKNOWN_REGION
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.providers.contract import Quarantined, Rows

#: The entry of `Offer.modelled` for stock that no source states.
OBTAINABILITY = "obtainability"
#: Words for lists that only say where a machine is in stock.
IN_STOCK, SOLD_OUT = "in stock", "sold out"
#: Lists count 80 GB, 80 GiB or 81,559 MB for the same card; 40 and 80 GB are two cards.
MEMORY_TOLERANCE = 1.3


@dataclass(frozen=True, slots=True, kw_only=True)
class StockLevel:
    """Stock in one place as the provider grades it: a word, and how many machines can be started, None if not stated."""

    region: str
    word: str
    machines: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedMachine:
    """One machine of the list. `accelerator` is a name or alias of gpuplan's table; unknown sizes are None.

    `in_stock` is set for stock whose place the provider does not state. A price that holds in one place alone has its
    `region`, and perhaps its `zone`, and is in stock there if `in_stock`. Without `stock_known` it is taken to be sold, and
    how likely it is obtained is modelled. `levels` are the words and numbers of machines in which the provider grades its
    stock, by place. `conversion` says how the price was converted to US dollars. `gib_per_device` is the memory that
    the list states for one accelerator; `joins` says whether nodes can be joined by a private fabric, None if the list
    does not say.
    """

    name: str
    accelerator: str
    devices: int
    usd_per_hour: Decimal
    price_kind: str = "on_demand"
    regions_in_stock: tuple[str, ...] = ()
    in_stock: bool = False
    region: str = ""
    zone: str = ""
    stock_known: bool = True
    levels: tuple[StockLevel, ...] = ()
    conversion: str = ""
    vcpus: float | None = None
    ram_gib: float | None = None
    local_disk_gb: float | None = None
    gib_per_device: float | None = None
    network_gbps: float | None = None
    joins: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A provider's whole list, its regions, and the entries that could not be read.

    `kinds_by_place` are the price kinds of a list that states a price for each place.
    """

    regions: tuple[str, ...]
    machines: tuple[ListedMachine, ...]
    kinds_by_place: frozenset[str] = frozenset()
    quarantined: tuple[Quarantined, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOrigin:
    """Where a list came from. `known` are gpuplan's own machines of the provider by name: their links and networks stay.

    A machine that is new is taken to have the plain network of `network_gbps` between nodes, or to stand alone for None.
    `fabric` and its `fabric_gbps` are those of machines that the list calls joined.
    """

    provider: str
    source: str
    read_at: datetime
    known: Mapping[str, InstanceType]
    network_gbps: float | None
    fabric: str = ""
    fabric_gbps: float | None = None


def rows_of(listing: Listing, region: str, origin: ListOrigin) -> Rows:
    """The rows of one region of the list, or of the place that is not stated."""
    placeless, by_place = region == UNKNOWN_REGION, bool(listing.kinds_by_place)
    machines: list[InstanceType] = []
    offers: list[Offer] = []
    quarantined = list(listing.quarantined) if placeless or by_place else []
    twice = _named_twice(listing.machines)
    for listed in listing.machines:
        if region != listed.region if by_place else not placeless and region not in listed.regions_in_stock:
            continue
        try:
            if _key(listed) in twice:
                raise ValueError("is listed twice with different contents")
            machine = _machine(listed, origin)
            somewhere = listed.in_stock and not listed.regions_in_stock
            offer = Offer(
                provider=origin.provider,
                region=region,
                zone=listed.zone,
                instance_type=machine.name,
                price_kind=listed.price_kind,
                usd_micros_per_hour=usd_micros(listed.usd_per_hour),
                observed_at=origin.read_at,
                modelled=() if listed.stock_known else (OBTAINABILITY,),
                available=somewhere if placeless or by_place else True,
                source="; ".join(filter(None, (origin.source, listed.conversion))),
            )
        except UnusableInput as error:
            quarantined.append(Quarantined(what=listed.name, reason=error.faults[0].message))
        except (Implausible, ValueError, ArithmeticError) as problem:
            quarantined.append(Quarantined(what=listed.name, reason=str(problem)))
        else:
            machines.append(machine)
            offers.append(offer)
    kinds = frozenset(listed.price_kind for listed in listing.machines)
    return Rows(
        instance_types=tuple(dict.fromkeys(machines)),
        offers=tuple(dict.fromkeys(offers)),
        quarantined=tuple(dict.fromkeys(quarantined)),
        whole_kinds=listing.kinds_by_place or (kinds if placeless else frozenset()),
        closed=not placeless and not by_place,
        provider_notes=listing.notes,
    )


def _machine(listed: ListedMachine, origin: ListOrigin) -> InstanceType:
    """gpuplan's own row with the sizes of the list, else a new one. Raises `ValueError` if the two contradict."""
    accelerator = find_accelerator(listed.accelerator)
    device, stated_gib = accelerator.name, listed.gib_per_device
    if stated_gib is not None and not is_about(stated_gib, accelerator.device_memory_mib / 1024):
        has = f"{device} has {accelerator.device_memory_mib / 1024:.0f}"
        raise ValueError(f"states {stated_gib:g} GiB per accelerator, but {has}")
    known, as_of = origin.known.get(listed.name), f"{origin.read_at:%Y-%m-%d}"
    if known is None:
        clusters = origin.network_gbps is not None
        known = InstanceType(
            provider=origin.provider,
            name=listed.name,
            accelerator=device,
            accelerator_count=Fraction(listed.devices),
            scaleup_domain=listed.devices,
            network_gbps=origin.network_gbps,
            fabric=PLAIN_NETWORK if clusters else "",
            clusters=clusters,
        )
    if (known.accelerator, known.devices) != (device, listed.devices):
        ours = f"{known.devices} x {known.accelerator}"
        raise ValueError(f"is listed with {listed.devices} x {device}, but gpuplan knows it with {ours}")
    if listed.joins is not None and listed.joins != (known.fabric not in {"", PLAIN_NETWORK}):
        network = origin.fabric if listed.joins else PLAIN_NETWORK
        gbps = origin.fabric_gbps if listed.joins else origin.network_gbps
        known = replace(known, fabric=network, network_gbps=gbps, clusters=gbps is not None)
    return replace(
        known,
        network_gbps=known.network_gbps if listed.network_gbps is None else listed.network_gbps,
        vcpus=known.vcpus if listed.vcpus is None else listed.vcpus,
        ram_gib=known.ram_gib if listed.ram_gib is None else listed.ram_gib,
        local_disk_gb=known.local_disk_gb if listed.local_disk_gb is None else listed.local_disk_gb,
        source=origin.source,
        as_of=as_of,
    )


def _key(machine: ListedMachine) -> tuple[str, str, str, str]:
    return machine.name, machine.price_kind, machine.region, machine.zone


def _named_twice(machines: Iterable[ListedMachine]) -> set[tuple[str, str, str, str]]:
    """Keys with several different entries: it is unknown which is true."""
    counts = Counter(_key(machine) for machine in dict.fromkeys(machines))
    return {key for key, count in counts.items() if count > 1}


def is_about(stated_gib: float, gib: float) -> bool:
    """Whether a memory is that of the data sheet, whether the list counts GB or GiB or leaves out what is reserved."""
    return gib / MEMORY_TOLERANCE < stated_gib < gib * MEMORY_TOLERANCE


def stock_note(machines: Sequence[ListedMachine], where: str = "everywhere") -> tuple[str, ...]:
    """How many machines of the list are sold out, as a note; nothing if all are in stock."""
    sold_out = sum(not (machine.regions_in_stock or machine.in_stock) for machine in machines)
    return (f"{sold_out} of {len(machines)} machines are sold out {where}",) if sold_out else ()
