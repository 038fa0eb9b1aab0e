"""Tables of owned machines: those detected, and those of an inventory."""

from collections.abc import Iterator, Sequence
from typing import Any

from gpuplan.api.presentation.sections import Sections, sections_of
from gpuplan.api.presentation.text_formatting import number, plain
from gpuplan.api.presentation.text_tables import aligned, listing
from gpuplan.catalog.model.availability_windows import FreeSpan, FreeWindow
from gpuplan.catalog.model.owned_machine import OwnedMachine
from gpuplan.providers.owned.inventory_file import DAYS

_DETECTED = ("accelerator", "count", "MiB", "driver", "W limit, all", "PCIe", "link peers", "notes")
_MACHINES = ("machine", "site", "accelerators", "USD/h", "electricity", "free", "measured")


def render_detected(host: str, detected: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The accelerators of this machine as lines; an unknown one is shown with its nearest match."""
    cells = (
        (
            row["accelerator"] or f"? {plain(row['name'])}",
            row["count"],
            row["memory_mib"],
            row["driver"],
            "" if row["power_limit_watts"] is None else number(row["power_limit_watts"]),
            f"{row['pcie_generation']}.0 x{row['pcie_width']}" if row["pcie_generation"] else "",
            "" if row["link_peers"] is None else row["link_peers"],
            "; ".join(filter(None, (row["problem"], "cut into slices (MIG)" if row["mig"] else ""))),
        )
        for row in detected
    )
    yield f"{plain(host)} has"
    yield from aligned(_DETECTED, cells, right=(1, 2, 4, 6))


def machine_documents(machines: Sequence[OwnedMachine]) -> list[dict[str, Any]]:
    """The machines as JSON; costs in dollars per machine-hour, electricity included while busy."""
    return [
        {
            "name": machine.instance_type.name,
            "site": machine.region,
            "machines": machine.machines,
            "accelerator": machine.instance_type.accelerator,
            "accelerators_per_machine": machine.instance_type.devices,
            "host": machine.host or None,
            "usd_per_hour": round(machine.usd_per_hour_full, 6),
            "electricity_usd_per_hour": round(machine.usd_per_hour_power, 6),
            "power_watts": machine.power_watts,
            "free": [window_text(window) for window in machine.windows],
            "measured_at": machine.measured.measured_at.isoformat() if machine.measured is not None else None,
            "assumptions": list(machine.assumptions),
        }
        for machine in machines
    ]


def window_text(window: FreeWindow) -> str:
    """A free window in words: `mon tue 18:00-08:00 Europe/Berlin`, or from one time to another."""
    if isinstance(window, FreeSpan):
        return f"{window.start:%Y-%m-%d %H:%M%z} to {window.end:%Y-%m-%d %H:%M%z}"
    days = " ".join(DAYS[day] for day in window.days)
    return f"{days} {_clock(window.from_minute)}-{_clock(window.until_minute)} {window.timezone}"


def _clock(minute: int) -> str:
    return f"{minute // 60:02d}:{minute % 60:02d}"


def render_machines(rows: Sequence[dict[str, Any]]) -> Sections:
    """The inventory as a table."""
    table = listing(
        _MACHINES,
        (
            (
                row["name"],
                row["site"],
                f"{row['machines']} x {row['accelerators_per_machine']} x {row['accelerator']}",
                f"{row['usd_per_hour']:.4f}",
                f"{row['electricity_usd_per_hour']:.4f}",
                "; ".join(row["free"]) or "always",
                row["measured_at"][:10] if row["measured_at"] else "no",
            )
            for row in rows
        ),
        right=(3, 4),
    )
    return sections_of(table)
