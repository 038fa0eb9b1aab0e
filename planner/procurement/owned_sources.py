"""Owned machines as sources for a forecast: they are paid for, so their work costs only electricity."""

from dataclasses import replace
from datetime import timedelta
from fractions import Fraction

from gpuplan.catalog.model.offer import InstanceType
from gpuplan.catalog.model.owned_machine import OwnedMachine
from gpuplan.planner.procurement.forecast import Forecast, Machine
from gpuplan.planner.procurement.present_value import HOURS_PER_YEAR


def owned_as_machines(owned: tuple[OwnedMachine, ...], forecast: Forecast) -> tuple[Machine, ...]:
    """Owned machines as sources; jobs may use a part of each, as of machines to buy."""
    return tuple(
        Machine(
            name=owned_machine.instance_type.name,
            parts=_parts(owned_machine),
            usd=0.0,
            life_years=forecast.horizon_years,
            residual_usd=0.0,
            watts=owned_machine.power_watts,
            slots=0,
            source="the inventory",
            as_of="",
            owned=owned_machine,
            free_share=free_share(owned_machine, forecast),
        )
        for owned_machine in owned
    )


def free_share(machine: OwnedMachine, forecast: Forecast) -> float:
    """The share of the horizon's hours in which a machine is free."""
    if not machine.windows:
        return 1.0
    start = forecast.start
    end = start + timedelta(hours=forecast.horizon_years * HOURS_PER_YEAR)
    spans = sorted(span for window in machine.windows for span in window.spans(start, end))
    free, until = timedelta(0), start
    for begins, ends in spans:
        last = min(ends, end)
        if last > until:
            free, until = free + (last - max(begins, until)), last
    return free / (end - start)


def _parts(machine: OwnedMachine) -> tuple[tuple[int, OwnedMachine], ...]:
    whole = machine.instance_type
    count = max(1, int(whole.accelerator_count))
    fewer = [size for size in (1, 2, 4, 8, 16, 32) if size < count and count % size == 0]
    named = (count, replace(machine, instance_type=replace(whole, name=_name(whole, count))))
    return (*((size, _part(machine, size, count)) for size in fewer), named)


def _part(machine: OwnedMachine, some: int, count: int) -> OwnedMachine:
    """`some` of its accelerators with their share of the host."""
    whole, share = machine.instance_type, some / count
    part = replace(
        whole,
        name=_name(whole, some),
        accelerator_count=Fraction(some),
        vcpus=None if whole.vcpus is None else whole.vcpus * share,
        ram_gib=None if whole.ram_gib is None else whole.ram_gib * share,
        local_disk_gb=None if whole.local_disk_gb is None else whole.local_disk_gb * share,
        clusters=False,
        fixed_nodes=None,
    )
    return replace(machine, instance_type=part, machines=1, power_watts=max(1.0, machine.power_watts * share))


def _name(whole: InstanceType, some: int) -> str:
    """A name that differs from the names of machines to buy."""
    return f"{whole.name} (own, {some})"
