"""Tables of owned machines: those detected, and those of an inventory."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gpuplan.api.presentation.sections import Sections, sections_of
from gpuplan.api.presentation.text_formatting import number, plain
from gpuplan.api.presentation.text_tables import aligned, listing
from gpuplan.catalog.model.availability_windows import FreeSpan, FreeWindow
from gpuplan.catalog.model.owned_machine import OwnedMachine
from gpuplan.providers.owned.detected_devices import Group
from gpuplan.providers.owned.inventory_file import DAYS

_DETECTED = ("accelerator", "count", "MiB", "driver", "W limit, all", "PCIe", "link peers", "notes")
_MACHINES = ("machine", "site", "accelerators", "USD/h", "electricity", "free", "measured")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedMachine:
    """A machine of the inventory; costs in dollars per machine-hour, electricity included while busy."""

    name: str
    site: str
    machines: int
    accelerator: str
    accelerators_per_machine: float
    host: str | None
    usd_per_hour: float
    electricity_usd_per_hour: float
    power_watts: float
    free: tuple[str, ...]
    measured_at: str | None
    assumptions: tuple[str, ...]


def render_detected(host: str, groups: Sequence[Group]) -> Iterator[str]:
    """The accelerators of this machine as lines; an unknown one is shown with its nearest match."""
    cells = (
        (
            group.accelerator.name if group.accelerator else f"? {plain(group.first.name)}",
            len(group.devices),
            group.first.memory_mib,
            group.first.driver,
            "" if group.power_limit_watts is None else number(group.power_limit_watts),
            f"{group.pcie[0]}.0 x{group.pcie[1]}" if group.pcie else "",
            "" if group.first.link_peers is None else group.first.link_peers,
            "; ".join(filter(None, (group.problem, "cut into slices (MIG)" if group.first.split else ""))),
        )
        for group in groups
    )
    yield f"{plain(host)} has"
    yield from aligned(_DETECTED, cells, right=(1, 2, 4, 6))


def listed_machines(machines: Sequence[OwnedMachine]) -> tuple[ListedMachine, ...]:
    """The machines as interfaces list them."""
    return tuple(
        ListedMachine(
            name=machine.instance_type.name,
            site=machine.region,
            machines=machine.machines,
            accelerator=machine.instance_type.accelerator,
            accelerators_per_machine=machine.instance_type.devices,
            host=machine.host or None,
            usd_per_hour=round(machine.usd_per_hour_full, 6),
            electricity_usd_per_hour=round(machine.usd_per_hour_power, 6),
            power_watts=machine.power_watts,
            free=tuple(map(window_text, machine.windows)),
            measured_at=machine.measured.measured_at.isoformat() if machine.measured is not None else None,
            assumptions=tuple(machine.assumptions),
        )
        for machine in machines
    )


def window_text(window: FreeWindow) -> str:
    """A free window in words: `mon tue 18:00-08:00 Europe/Berlin`, or from one time to another."""
    if isinstance(window, FreeSpan):
        return f"{window.start:%Y-%m-%d %H:%M%z} to {window.end:%Y-%m-%d %H:%M%z}"
    days = " ".join(DAYS[day] for day in window.days)
    return f"{days} {_clock(window.from_minute)}-{_clock(window.until_minute)} {window.timezone}"


def _clock(minute: int) -> str:
    return f"{minute // 60:02d}:{minute % 60:02d}"


def render_machines(machines: Sequence[ListedMachine]) -> Sections:
    """The inventory as a table."""
    table = listing(
        _MACHINES,
        (
            (
                machine.name,
                machine.site,
                f"{machine.machines} x {machine.accelerators_per_machine} x {machine.accelerator}",
                f"{machine.usd_per_hour:.4f}",
                f"{machine.electricity_usd_per_hour:.4f}",
                "; ".join(machine.free) or "always",
                machine.measured_at[:10] if machine.measured_at else "no",
            )
            for machine in machines
        ),
        right=(3, 4),
    )
    return sections_of(table)
