"""The user's own machines as sources for a forecast: paid for, so that their work costs electricity only."""

from dataclasses import replace
from datetime import timedelta
from fractions import Fraction

from catalog.offer import InstanceType
from catalog.owned import OwnedMachine
from planner.buying.finance import HOURS_PER_YEAR
from planner.buying.forecast import Forecast, Machine


def owned_as_machines(owned: tuple[OwnedMachine, ...], forecast: Forecast) -> tuple[Machine, ...]:
    """Each as a machine of which jobs may use a part, as of those that may be bought."""
    return tuple(
        Machine(
            name=each.instance_type.name,
            parts=_parts(each),
            usd=0.0,
            life_years=forecast.horizon_years,
            residual_usd=0.0,
            watts=each.power_watts,
            slots=0,
            source="the inventory",
            as_of="",
            own=each,
            free_share=free_share(each, forecast),
        )
        for each in owned
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
    fewer = [each for each in (1, 2, 4, 8, 16, 32) if each < count and count % each == 0]
    named = (count, replace(machine, instance_type=replace(whole, name=_name(whole, count))))
    return (*((each, _part(machine, each, count)) for each in fewer), named)


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
    """Unlike those of machines to buy, which may be called the same."""
    return f"{whole.name} (own, {some})"
