"""What was found in this machine: devices as their driver names them, and equal ones as groups."""

import hashlib
import hmac
import os
import re
import socket
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from catalog.accelerators import Accelerator, find_accelerator
from catalog.errors import UnusableInput

#: systemd gives every installation an id that programs should not show, but derive their own from (machine-id(5)).
MACHINE_ID = Path("/etc/machine-id")
#: Drivers report memory within some per cent of the table's: ECC and reserved pages differ by card and setting.
MEMORY_TOLERANCE = 0.10
#: Endings of a driver's name that say how a device is passed on or cooled, not which it is.
_DECORATION = re.compile(r"\s+(VF|AC|LC)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One device as its driver describes it; None is for what the driver does not say.

    `link_peers` are other devices of this machine that it reaches over a link of its own;
    `split` says that it is cut into slices (MIG), so that no program sees it whole.
    """

    vendor: str
    name: str
    uuid: str
    memory_mib: int
    driver: str
    power_limit_watts: float | None = None
    pcie_generation: int | None = None
    pcie_width: int | None = None
    link_peers: int | None = None
    split: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Equal devices of this machine; `accelerator` is None where `problem` says why the name is not known."""

    devices: tuple[Device, ...]
    accelerator: Accelerator | None
    problem: str = ""

    @property
    def first(self) -> Device:
        """One of the devices, which stands for all."""
        return self.devices[0]

    @property
    def power_limit_watts(self) -> float | None:
        """Of all devices together; None where the driver does not say it of each."""
        limits = [device.power_limit_watts for device in self.devices]
        return None if None in limits else sum(each or 0.0 for each in limits)

    @property
    def pcie(self) -> tuple[int, int] | None:
        """Generation and width of the slowest slot, which decides how fast they work together."""
        slots = [(device.pcie_generation, device.pcie_width) for device in self.devices]
        known = [(generation, width) for generation, width in slots if generation is not None and width is not None]
        return min(known, key=lambda slot: 2 ** slot[0] * slot[1], default=None)

    @property
    def linked(self) -> bool:
        """Whether all of them reach each other over a link of their own."""
        return all(device.link_peers == len(self.devices) - 1 for device in self.devices) and len(self.devices) > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """This machine without its devices; `ram_gib` is None where the system does not say."""

    id: str
    name: str
    vcpus: int
    ram_gib: float | None


def groups(devices: Iterable[Device]) -> tuple[Group, ...]:
    """Equal devices together (name, memory, slices), in order of first appearance, whatever slot each sits in."""
    found: dict[tuple[str, int, bool], list[Device]] = {}
    for device in devices:
        found.setdefault((device.name, device.memory_mib, device.split), []).append(device)
    return tuple(_group(tuple(each)) for each in found.values())


def _group(devices: tuple[Device, ...]) -> Group:
    try:
        return Group(devices=devices, accelerator=accelerator_of(devices[0]))
    except UnusableInput as error:
        return Group(devices=devices, accelerator=None, problem=error.faults[0].message)


def accelerator_of(device: Device) -> Accelerator:
    """The row of the accelerator table that a device is.

    Raises `UnusableInput` with the nearest names where there is none, or none with that much memory.
    """
    known = _named(device.name)
    if abs(known.device_memory_mib - device.memory_mib) > MEMORY_TOLERANCE * known.device_memory_mib:
        message = (
            f"{device.name!r} has {device.memory_mib} MiB, but {known.name} has {known.device_memory_mib}: "
            "it is another variant, which the accelerator table does not hold"
        )
        raise UnusableInput.at("accelerator", message=message)
    return known


def _named(name: str) -> Accelerator:
    """By the whole name, by the product in brackets behind a chip's code name, or without its decoration."""
    inside = re.search(r"\[([^\]]+)\]", name)
    for spelling in (inside[1] if inside else "", _DECORATION.sub("", name)):
        try:
            return find_accelerator(spelling)
        except UnusableInput:
            continue
    return find_accelerator(name)


def this_host() -> Host:
    """The machine that this runs on."""
    try:
        ram = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    except (ValueError, OSError):
        ram = None
    return Host(id=host_id(), name=socket.gethostname() or "this-machine", vcpus=os.cpu_count() or 1, ram_gib=ram)


def host_id(machine_id: Path = MACHINE_ID) -> str:
    """Sixteen hexadecimal digits that stay the same for this installation and tell nothing of it."""
    try:
        own = machine_id.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        own = ""
    key = own or f"{uuid.getnode():012x} {socket.gethostname()}"
    return hmac.new(key.encode(), b"gpuplan calibration", hashlib.sha256).hexdigest()[:16]
