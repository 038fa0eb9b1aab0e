"""Owned machines: the inventory file as instance types and offers of kind `owned`."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from itertools import combinations
from typing import Any

from gpuplan.catalog.model.accelerators import Accelerator
from gpuplan.catalog.model.availability_windows import WeeklyWindow, overlap
from gpuplan.catalog.model.mig_slices import MigSlice, find_card_or_slice
from gpuplan.catalog.model.money import usd_micros
from gpuplan.catalog.model.offer import InstanceType, Offer
from gpuplan.catalog.model.owned_machine import OwnedMachine
from gpuplan.catalog.parsing.accelerator_names import taken_as
from gpuplan.catalog.parsing.document_fields import read_as
from gpuplan.catalog.parsing.quantities import shown
from gpuplan.catalog.runtime.errors import Fault, UnusableInput
from gpuplan.providers.owned.inventory_file import InventoryDocument, MachineDocument, SiteDocument

PROVIDER = "local"
PRICE_KIND = "owned"
DEFAULT_SITE = "local"
SOURCE = "the user's inventory file"
HOURS_PER_YEAR = 8760
#: Total power relative to the accelerators' TDP, for CPU, memory, fans and power supplies: an 8 x 700 W H100 node peaked at
#: 8.4 kW in training (Latif et al. 2024, arXiv:2412.08602), 1.5 times the accelerators' 5.6 kW.
HOST_SHARE_OF_TDP = 0.5
#: A machine in a room without dedicated cooling.
DEFAULT_PUE = 1.0


def read_inventory(document: dict[str, Any]) -> tuple[OwnedMachine, ...]:
    """The machines of an inventory document, in its order.

    Raises `UnusableInput` with all faults: unknown keys and accelerators (with the nearest names), missing costs or
    electricity prices, contradictory windows, duplicate names.
    """
    inventory = read_as(InventoryDocument, document)
    faults = _names_twice(inventory.machines)
    machines: list[OwnedMachine] = []
    for i, given in enumerate(inventory.machines):
        wrong = [Fault(("machines", i, *fault.path), fault.message) for fault in _faults(given, inventory)]
        faults += wrong
        if not wrong:
            machines.append(_machine(given, inventory))
    if not inventory.machines:
        faults.append(Fault(("machines",), "is empty; list at least one machine with name, accelerator and cost"))
    if faults:
        raise UnusableInput(*faults)
    return tuple(machines)


def offers_of(machines: Iterable[OwnedMachine], *, observed_at: datetime | None = None) -> list[Offer]:
    """One offer per machine kind: `owned`, at the full rate without electricity; observed now unless given."""
    observed_at = observed_at or datetime.now(UTC)
    return [
        Offer(
            provider=PROVIDER,
            region=machine.region,
            instance_type=machine.instance_type.name,
            price_kind=PRICE_KIND,
            usd_micros_per_hour=usd_micros(machine.usd_per_hour_full),
            observed_at=observed_at,
            source=SOURCE,
        )
        for machine in machines
    ]


def _names_twice(machines: Sequence[MachineDocument]) -> list[Fault]:
    seen: set[str] = set()
    faults = []
    for i, machine in enumerate(machines):
        if machine.name in seen:
            faults.append(Fault(("machines", i, "name"), f"{shown(machine.name)} is used twice; name each kind once"))
        seen.add(machine.name)
    return faults


def _faults(given: MachineDocument, site: SiteDocument) -> list[Fault]:
    """Faults of one machine, beyond its single fields."""
    device, mig_slice = find_card_or_slice(given.accelerator)
    faults = _window_faults(given)
    if mig_slice is not None:
        faults += _slice_faults(given, mig_slice)
    if given.electricity_usd_per_kwh is None and site.electricity_usd_per_kwh is None:
        message = "is missing, and required (here or once for the inventory): US dollars per kWh, such as 0.32"
        faults.append(Fault(("electricity_usd_per_kwh",), message))
    if given.power_watts is None and device.tdp_watts is None:
        message = f"is missing, and required: the power of {device.name} is not published; give watts per machine"
        faults.append(Fault(("power_watts",), message))
    if given.link == "nvlink" and device.link_gbs is None:
        faults.append(Fault(("link",), f"{device.name} has no link between cards; write pcie or leave it out"))
    return faults


def _slice_faults(given: MachineDocument, mig_slice: MigSlice) -> list[Fault]:
    """A MIG slice has no link to others and no peers: each is a machine of one device."""
    faults = []
    if given.count > 1:
        message = f"{given.count} is not accepted: slices such as {mig_slice.name} do not work on one job together; "
        faults.append(Fault(("count",), message + "leave it out, and write the number of slices as machines"))
    if given.link is not None:
        faults.append(Fault(("link",), f"{mig_slice.name} is a MIG slice, which has no link to others; leave it out"))
    return faults


def _window_faults(given: MachineDocument) -> list[Fault]:
    windows = [free_window.window() for free_window in given.free_windows]
    for (i, first), (j, second) in combinations(enumerate(windows), 2):
        weekly = (first, second) if isinstance(first, WeeklyWindow) and isinstance(second, WeeklyWindow) else None
        if weekly and weekly[0].timezone != weekly[1].timezone:
            zones = f"{weekly[1].timezone} is not {weekly[0].timezone} of free_windows[{i}]"
            return [Fault(("free_windows", j, "timezone"), f"{zones}; use one for all windows of a machine")]
        if overlap(first, second):
            return [Fault(("free_windows", j), f"overlaps free_windows[{i}]; give each free hour once")]
    return []


def _machine(given: MachineDocument, site: SiteDocument) -> OwnedMachine:
    device, mig_slice = find_card_or_slice(given.accelerator)
    note = taken_as(given.accelerator)
    notes = [note] if note is not None else []
    usd_per_hour = _rate(given, notes)
    watts = _watts(given, device, mig_slice, notes)
    pue = given.pue or site.pue
    if pue is None:
        pue = DEFAULT_PUE
        notes.append(f"pue was not given: {DEFAULT_PUE:g}, no power for cooling")
    if given.machines > 1 and mig_slice is not None:
        notes.append("MIG slices are not joined for one job")
    elif given.machines > 1 and given.network_gbps is None:
        notes.append("network_gbps was not given: these machines are not joined for one job")
    return OwnedMachine(
        instance_type=_instance_type(given, device, mig_slice, notes),
        region=given.site or site.site or DEFAULT_SITE,
        machines=given.machines,
        usd_per_hour_full=usd_per_hour,
        power_watts=watts,
        pue=pue,
        usd_per_kwh=given.electricity_usd_per_kwh or site.electricity_usd_per_kwh or 0.0,
        windows=tuple(free_window.window() for free_window in given.free_windows),
        grams_co2_per_kwh=site.grams_co2_per_kwh if given.grams_co2_per_kwh is None else given.grams_co2_per_kwh,
        host=given.host or "",
        assumptions=tuple(f"{given.name}: {note}" for note in notes),
    )


def _rate(given: MachineDocument, notes: list[str]) -> float:
    """Dollars per machine-hour without electricity: as stated, or straight-line over every hour of its life."""
    if given.usd_per_hour is not None:
        written_off = " (written off)" if given.usd_per_hour == 0 else ""
        notes.append(f"{given.usd_per_hour:g} USD per hour as stated{written_off}, electricity on top")
        return given.usd_per_hour
    purchase, years, residual = given.purchase_usd or 0.0, given.life_years or 0.0, given.residual_usd or 0.0
    rate = (purchase - residual) / (years * HOURS_PER_YEAR)
    notes.append(
        f"({purchase:g} - {residual:g} residual) USD over {years:g} years x {HOURS_PER_YEAR} h, straight-line, "
        f"is {rate:.4f} USD per hour, whether used or not; electricity on top"
    )
    return rate


def _watts(given: MachineDocument, device: Accelerator, mig_slice: MigSlice | None, notes: list[str]) -> float:
    """Watts of one machine under load: as stated, or the accelerators' TDP plus a share for the host.

    A MIG slice has the larger of its shares of the card's TDP.
    """
    if given.power_watts is not None:
        return given.power_watts
    watts = (device.tdp_watts or 0.0) * given.count * (1 + HOST_SHARE_OF_TDP)
    part = f"{given.count} x"
    if mig_slice is not None:
        share = float(max(mig_slice.compute_share, mig_slice.memory_share))
        watts, part = watts * share, f"{share:.1%} of"
    notes.append(
        f"power_watts was not given: {part} {device.tdp_watts:g} W TDP and {HOST_SHARE_OF_TDP:.0%} "
        f"for the host, {watts:g} W"
    )
    return watts


def _instance_type(
    given: MachineDocument, device: Accelerator, mig_slice: MigSlice | None, notes: list[str]
) -> InstanceType:
    linked = _is_linked(given, device)
    if given.count > 1 and given.link is None:
        notes.append(f"link was not given: {device.link if linked else 'pcie'}, usual for {device.form_factor}")
    both_ways = device.link_gbs if linked else None
    return InstanceType(
        provider=PROVIDER,
        name=given.name,
        accelerator=device.name,
        accelerator_count=Fraction(given.count) if mig_slice is None else mig_slice.share,
        accelerator_memory_mib=device.device_memory_mib if mig_slice is None else mig_slice.memory_mib,
        vcpus=given.vcpus,
        ram_gib=given.ram_gib,
        local_disk_gb=given.local_disk_gb,
        intranode_link=device.link if linked else "pcie",
        intranode_gbs=both_ways / 2 if both_ways else device.pcie_gbs,
        scaleup_domain=min(given.count, device.link_domain) if linked else 1,
        network_gbps=given.network_gbps,
        clusters=given.machines > 1 and given.network_gbps is not None and mig_slice is None,
        source=SOURCE,
    )


def _is_linked(given: MachineDocument, device: Accelerator) -> bool:
    """Whether cards communicate over their own link: always on boards, in slots only with a stated bridge."""
    if given.count == 1 or device.link_gbs is None:
        return False
    return given.link == "nvlink" if given.link is not None else device.form_factor != "PCIe"
