"""Own machines found by looking: every accelerator of this machine, and an inventory file that describes them."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from catalog.errors import UnusableInput
from providers.detect_amd import amd_devices
from providers.detected import Device, Group, Host, groups, this_host
from providers.local import HOST_SHARE_OF_TDP
from providers.nvml import nvidia_devices


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What only the owner knows, US dollars; None is left open in the inventory, never filled in for the user."""

    electricity_usd_per_kwh: float | None = None
    usd_per_hour: float | None = None
    purchase_usd: float | None = None
    life_years: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Detected:
    """This machine and the groups of equal devices in it."""

    host: Host
    groups: tuple[Group, ...]

    @property
    def known(self) -> tuple[Group, ...]:
        """The groups whose accelerator is in the table."""
        return tuple(group for group in self.groups if group.accelerator is not None)


def detect() -> Detected:
    """The accelerators of this machine.

    Raises `UnusableInput` where there is none, and `ProviderFailure` where a driver does not answer.
    """
    found: list[Device] = [*nvidia_devices(), *amd_devices()]
    if not found:
        message = (
            "no NVIDIA or AMD accelerator on this machine: neither NVML nor amd-smi or rocm-smi answers; "
            "run this on the machine that has one, where its driver is installed"
        )
        raise UnusableInput.at("local", message=message)
    return Detected(host=this_host(), groups=groups(found))


def machine_names(found: Detected) -> list[str]:
    """A name for each known group in an inventory, all different: the host's, with the accelerator's where several."""
    host = re.sub(r"[^A-Za-z0-9-]+", "-", found.host.name.split(".")[0]).strip("-") or "machine"
    if len(found.known) == 1:
        return [host]
    names: list[str] = []
    for group in found.known:
        name = f"{host}-{group.accelerator.name}" if group.accelerator else host
        names.append(name if name not in names else f"{name}-{len(names) + 1}")
    return names


def inventory_text(found: Detected, costs: Costs, *, at: datetime | None = None) -> str:
    """The inventory file of this machine as YAML.

    What only the owner knows and has not given stands in comments to be filled in; until then the file is
    refused at just those fields. Raises `UnusableInput` if no accelerator of the machine is known.
    """
    if not found.known:
        raise UnusableInput.at("local", message="; ".join(group.problem for group in found.groups))
    when = (at or datetime.now(UTC)).date().isoformat()
    lines = [
        f"# The accelerators of {json.dumps(found.host.name)}, as found on {when}. Point GPUPLAN_INVENTORY at this file.",
        *_given(
            "electricity_usd_per_kwh", costs.electricity_usd_per_kwh, "what you pay for a kWh, US dollars with taxes"
        ),
        "machines:",
    ]
    for name, group in zip(machine_names(found), found.known, strict=True):
        lines += [f"  {line}" for line in _machine(name, group, found.host, costs)]
    for group in found.groups:
        if group.accelerator is None:
            lines.append(f"  # left out: {len(group.devices)} x {_plain(group.problem)}")
    return "\n".join(lines) + "\n"


def _machine(name: str, group: Group, host: Host, costs: Costs) -> list[str]:
    device = group.first
    accelerator = group.accelerator.name if group.accelerator else ""
    lines = [f"- name: {json.dumps(name)}", f"  host: {json.dumps(host.id)}", f"  accelerator: {accelerator}"]
    lines += [f"  count: {len(group.devices)}", *_link(group)]
    if group.power_limit_watts is not None:
        watts = group.power_limit_watts * (1 + HOST_SHARE_OF_TDP)
        limit = f"{group.power_limit_watts:g} W limit, {HOST_SHARE_OF_TDP:.0%} more for the host"
        lines.append(f"  power_watts: {watts:.0f}  # assumed: {limit}; measure it at the wall")
    lines += [f"  vcpus: {host.vcpus}"] + ([] if host.ram_gib is None else [f"  ram_gib: {host.ram_gib:.0f}"])
    lines += [f"  {line}" for line in _cost(costs)]
    if device.split:
        lines.append("  # cut into slices (MIG): gpuplan counts whole cards; switch MIG off to train on them")
    return lines


def _link(group: Group) -> list[str]:
    """How the devices of a group reach each other, where the driver says so or it can only be one way."""
    if len(group.devices) == 1 or group.first.link_peers is None:
        return []
    pcie = f"  # PCIe {group.pcie[0]}.0 x{group.pcie[1]}" if group.pcie else ""
    has_link = group.accelerator is not None and group.accelerator.link_gbs is not None
    return ["  link: nvlink"] if group.linked and has_link else [f"  link: pcie{pcie}"]


def _cost(costs: Costs) -> list[str]:
    if costs.purchase_usd is not None or costs.life_years is not None:
        bought = _given("purchase_usd", costs.purchase_usd, "what the machine cost, US dollars")
        return [*bought, *_given("life_years", costs.life_years, "how long it is used")]
    hint = "its cost: so much per hour (0 if written off), or instead purchase_usd and life_years"
    return _given("usd_per_hour", costs.usd_per_hour, hint)


def _given(key: str, value: float | None, hint: str) -> list[str]:
    """A line, or what to write there as a comment."""
    return [f"{key}: {value:g}"] if value is not None else [f"# {key}:   # FILL IN: {hint}"]


def _plain(text: str) -> str:
    """On one line, whatever a driver calls its device."""
    return re.sub(r"[^\x20-\x7e]+", " ", text)


def rows(found: Sequence[Group]) -> list[dict[str, object]]:
    """The groups as JSON."""
    return [
        {
            "accelerator": group.accelerator.name if group.accelerator else None,
            "problem": group.problem or None,
            "name": group.first.name,
            "count": len(group.devices),
            "memory_mib": group.first.memory_mib,
            "driver": group.first.driver,
            "power_limit_watts": group.power_limit_watts,
            "pcie_generation": group.pcie[0] if group.pcie else None,
            "pcie_width": group.pcie[1] if group.pcie else None,
            "link_peers": group.first.link_peers,
            "mig": group.first.split,
            "uuids": [device.uuid for device in group.devices],
        }
        for group in found
    ]
