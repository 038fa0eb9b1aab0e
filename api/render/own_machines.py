"""Own machines as tables: what was found on this one, and what an inventory holds."""

from collections.abc import Iterator, Sequence
from typing import Any

from rich.table import Table

from api.render.tables import aligned, listing
from api.render.text import number, plain
from catalog.free_time import FreeSpan, FreeWindow
from catalog.owned import OwnedMachine
from providers.inventory import DAYS

_FOUND = ("accelerator", "count", "MiB", "driver", "W limit, all", "PCIe", "link peers", "notes")
_MACHINES = ("machine", "site", "accelerators", "USD/h", "electricity", "free", "measured")


def render_detected(host: str, found: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The accelerators of this machine as lines; an unknown one says what it is near to."""
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
        for row in found
    )
    yield f"{plain(host)} has"
    yield from aligned(_FOUND, cells, right=(1, 2, 4, 6))


def machine_rows(machines: Sequence[OwnedMachine]) -> list[dict[str, Any]]:
    """The machines as JSON; hourly costs in dollars of one machine, electricity while it works."""
    return [
        {
            "name": each.instance_type.name,
            "site": each.region,
            "machines": each.machines,
            "accelerator": each.instance_type.accelerator,
            "accelerators_per_machine": each.instance_type.devices,
            "host": each.host or None,
            "usd_per_hour": round(each.usd_per_hour_full, 6),
            "electricity_usd_per_hour": round(each.usd_per_hour_power, 6),
            "power_watts": each.power_watts,
            "free": [window_text(window) for window in each.windows],
            "measured_at": each.measured.measured_at.isoformat() if each.measured is not None else None,
            "assumptions": list(each.assumptions),
        }
        for each in machines
    ]


def window_text(window: FreeWindow) -> str:
    """A free window in words: `mon tue 18:00-08:00 Europe/Berlin`, or from one time to another."""
    if isinstance(window, FreeSpan):
        return f"{window.start:%Y-%m-%d %H:%M%z} to {window.end:%Y-%m-%d %H:%M%z}"
    days = " ".join(DAYS[day] for day in window.days)
    return f"{days} {_clock(window.from_minute)}-{_clock(window.until_minute)} {window.timezone}"


def _clock(minute: int) -> str:
    return f"{minute // 60:02d}:{minute % 60:02d}"


def render_machines(rows: Sequence[dict[str, Any]]) -> Table:
    """The inventory as a table."""
    return listing(
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
