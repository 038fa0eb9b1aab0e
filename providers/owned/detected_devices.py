"""Devices detected in this machine, as their driver names them, and groups of equal ones."""

import hashlib
import hmac
import os
import re
import socket
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from gpuplan.catalog.model.accelerators import Accelerator, possible_accelerators
from gpuplan.catalog.runtime.errors import UnusableInput

#: systemd gives every installation an id that programs should not reveal, but may derive ids from (machine-id(5)).
MACHINE_ID = Path("/etc/machine-id")
#: Drivers report memory within some per cent of the table's: ECC and reserved pages differ by card and setting.
MEMORY_TOLERANCE = 0.10
#: Suffixes of a driver's name for virtualisation or cooling, which do not identify the device.
_DECORATION = re.compile(r"\s+(VF|AC|LC)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One device as its driver describes it; None for missing facts.

    `link_peers` are other devices of this machine that it reaches over a dedicated link; `split` means that it is divided
    into slices (MIG), so that no program sees it whole.
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
    """Equal devices of this machine; `accelerator` is None if the name is unknown, and `problem` says why."""

    devices: tuple[Device, ...]
    accelerator: Accelerator | None
    problem: str = ""

    @property
    def first(self) -> Device:
        """One of the devices, representative of all."""
        return self.devices[0]

    @property
    def power_limit_watts(self) -> float | None:
        """Total of all devices; None if the driver lacks it for any of them."""
        limits = [device.power_limit_watts for device in self.devices]
        return None if None in limits else sum(limit or 0.0 for limit in limits)

    @property
    def pcie(self) -> tuple[int, int] | None:
        """Generation and width of the slowest slot, which limits their communication."""
        slots = [(device.pcie_generation, device.pcie_width) for device in self.devices]
        known = [(generation, width) for generation, width in slots if generation is not None and width is not None]
        return min(known, key=lambda slot: 2 ** slot[0] * slot[1], default=None)

    @property
    def linked(self) -> bool:
        """Whether all of them reach each other over a dedicated link."""
        return all(device.link_peers == len(self.devices) - 1 for device in self.devices) and len(self.devices) > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """This machine without its devices; `ram_gib` is None if the system does not report it."""

    id: str
    name: str
    vcpus: int
    ram_gib: float | None


def groups(devices: Iterable[Device]) -> tuple[Group, ...]:
    """Devices grouped by name, memory and slicing, in order of first appearance, regardless of slot."""
    devices_by_kind: dict[tuple[str, int, bool], list[Device]] = {}
    for device in devices:
        devices_by_kind.setdefault((device.name, device.memory_mib, device.split), []).append(device)
    return tuple(_group(tuple(devices)) for devices in devices_by_kind.values())


def _group(devices: tuple[Device, ...]) -> Group:
    try:
        return Group(devices=devices, accelerator=accelerator_of(devices[0]))
    except UnusableInput as error:
        return Group(devices=devices, accelerator=None, problem=error.faults[0].message)


def accelerator_of(device: Device) -> Accelerator:
    """The accelerator table's row for a device.

    A name of several variants is decided by the memory. Raises `UnusableInput` with the nearest names if there is none, or
    none with that much memory.
    """
    named = _named(device.name)
    fitting = [known for known in named if _has_memory(known, device.memory_mib)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        several = ", ".join(known.name for known in fitting)
        message = f"{device.name!r} may be {several}, which its driver does not tell apart; write one of them"
    else:
        known_sizes = ", ".join(f"{known.name} has {known.device_memory_mib}" for known in named)
        message = (
            f"{device.name!r} has {device.memory_mib} MiB, but {known_sizes}: "
            "it is another variant, which the accelerator table does not hold"
        )
    raise UnusableInput.at("accelerator", message=message)


def _has_memory(known: Accelerator, memory_mib: int) -> bool:
    return abs(known.device_memory_mib - memory_mib) <= MEMORY_TOLERANCE * known.device_memory_mib


def _named(name: str) -> tuple[Accelerator, ...]:
    """Match the whole name, the product in brackets after a chip's code name, or the name without suffixes."""
    inside = re.search(r"\[([^\]]+)\]", name)
    for spelling in (inside[1] if inside else "", _DECORATION.sub("", name)):
        try:
            return possible_accelerators(spelling)
        except UnusableInput:
            continue
    return possible_accelerators(name)


def this_host() -> Host:
    """The current machine."""
    try:
        ram = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    except (ValueError, OSError):
        ram = None
    return Host(id=host_id(), name=socket.gethostname() or "this-machine", vcpus=os.cpu_count() or 1, ram_gib=ram)


def host_id(machine_id: Path = MACHINE_ID) -> str:
    """Sixteen hexadecimal digits, stable for this installation and not traceable to it."""
    try:
        identifier = machine_id.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        identifier = ""
    key = identifier or f"{uuid.getnode():012x} {socket.gethostname()}"
    return hmac.new(key.encode(), b"gpuplan calibration", hashlib.sha256).hexdigest()[:16]
