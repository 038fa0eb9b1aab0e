"""Contract rows from a provider's list of machines, prices and stock: pure.

The list has one price for all regions and the regions in which a machine can be had now. A machine in stock is offered
there. Its price without a place is kept as unavailable, so that a sold-out machine keeps its price and nothing is planned
on it. In a region, earlier offers that are not in stock any more stay as unavailable (`Rows.closed`).
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedMachine:
    """One machine of the list. `accelerator` is a name or alias of gpuplan's table; unknown sizes are None.

    `in_stock_somewhere` is set for stock whose place the provider does not state.
    """

    name: str
    accelerator: str
    devices: int
    usd_per_hour: Decimal
    price_kind: str = "on_demand"
    regions_in_stock: tuple[str, ...] = ()
    in_stock_somewhere: bool = False
    vcpus: float | None = None
    ram_gib: float | None = None
    local_disk_gb: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A provider's whole list, its regions, and the entries that could not be read."""

    regions: tuple[str, ...]
    machines: tuple[ListedMachine, ...]
    quarantined: tuple[Quarantined, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOrigin:
    """Where a list came from. `known` are gpuplan's own machines of the provider by name: their links and networks stay.

    A machine that is new is taken to have the plain network of `network_gbps` between nodes, or to stand alone for None.
    """

    provider: str
    source: str
    read_at: datetime
    known: Mapping[str, InstanceType]
    network_gbps: float | None


def rows_of(listing: Listing, region: str, origin: ListOrigin) -> Rows:
    """The rows of one region of the list, or of the place that is not stated."""
    placeless = region == UNKNOWN_REGION
    machines: list[InstanceType] = []
    offers: list[Offer] = []
    quarantined = list(listing.quarantined) if placeless else []
    twice = _named_twice(listing.machines)
    for listed in listing.machines:
        if not placeless and region not in listed.regions_in_stock:
            continue
        try:
            if listed.name in twice:
                raise ValueError("is listed twice with different contents")
            machine = _machine(listed, origin)
            offer = Offer(
                provider=origin.provider,
                region=region,
                instance_type=machine.name,
                price_kind=listed.price_kind,
                usd_micros_per_hour=usd_micros(listed.usd_per_hour),
                observed_at=origin.read_at,
                available=not placeless or (listed.in_stock_somewhere and not listed.regions_in_stock),
                source=origin.source,
            )
        except UnusableInput as error:
            quarantined.append(Quarantined(what=listed.name, reason=error.faults[0].message))
        except (Implausible, ValueError, ArithmeticError) as problem:
            quarantined.append(Quarantined(what=listed.name, reason=str(problem)))
        else:
            machines.append(machine)
            offers.append(offer)
    return Rows(
        instance_types=tuple(dict.fromkeys(machines)),
        offers=tuple(dict.fromkeys(offers)),
        quarantined=tuple(dict.fromkeys(quarantined)),
        whole_kinds=frozenset(listed.price_kind for listed in listing.machines) if placeless else frozenset(),
        closed=not placeless,
        provider_notes=listing.notes,
    )


def _machine(listed: ListedMachine, origin: ListOrigin) -> InstanceType:
    """gpuplan's own row with the sizes of the list, else a new one. Raises `ValueError` if the two contradict."""
    device = find_accelerator(listed.accelerator).name
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
    return replace(
        known,
        vcpus=known.vcpus if listed.vcpus is None else listed.vcpus,
        ram_gib=known.ram_gib if listed.ram_gib is None else listed.ram_gib,
        local_disk_gb=known.local_disk_gb if listed.local_disk_gb is None else listed.local_disk_gb,
        source=origin.source,
        as_of=as_of,
    )


def _named_twice(machines: Iterable[ListedMachine]) -> set[str]:
    """Names with several different entries of one price kind: it is unknown which is true."""
    counts = Counter((machine.name, machine.price_kind) for machine in dict.fromkeys(machines))
    return {name for (name, _), count in counts.items() if count > 1}


def stock_note(machines: Sequence[ListedMachine]) -> tuple[str, ...]:
    """How many machines of the list are sold out, as a note; nothing if all are in stock."""
    sold_out = sum(not (machine.regions_in_stock or machine.in_stock_somewhere) for machine in machines)
    return (f"{sold_out} of {len(machines)} machines are sold out everywhere",) if sold_out else ()
