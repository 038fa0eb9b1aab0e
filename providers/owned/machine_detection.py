"""Detect the accelerators of this machine, and write an inventory file for them."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.providers.owned.amd_devices import amd_devices
from gpuplan.providers.owned.detected_devices import Device, Group, Host, groups, this_host
from gpuplan.providers.owned.nvidia_devices import nvidia_devices
from gpuplan.providers.owned.owned_machines import HOST_SHARE_OF_TDP


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Facts known only to the owner, US dollars; None is left open in the inventory and never assumed."""

    electricity_usd_per_kwh: float | None = None
    usd_per_hour: float | None = None
    purchase_usd: float | None = None
    life_years: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Detected:
    """This machine and its groups of equal devices."""

    host: Host
    groups: tuple[Group, ...]

    @property
    def known(self) -> tuple[Group, ...]:
        """The groups whose accelerator is in the table."""
        return tuple(group for group in self.groups if group.accelerator is not None)


def detect() -> Detected:
    """The accelerators of this machine.

    Raises `UnusableInput` if there is none, and `ProviderFailure` if a driver does not answer.
    """
    devices: list[Device] = [*nvidia_devices(), *amd_devices()]
    if not devices:
        message = (
            "no NVIDIA or AMD accelerator on this machine: neither NVML nor amd-smi or rocm-smi answers; "
            "run this on the machine that has one, where its driver is installed"
        )
        raise UnusableInput.at("local", message=message)
    return Detected(host=this_host(), groups=groups(devices))


def machine_names(detected: Detected) -> list[str]:
    """A unique inventory name for each known group: the host's, with the accelerator's if there are several."""
    host = re.sub(r"[^A-Za-z0-9-]+", "-", detected.host.name.split(".")[0]).strip("-") or "machine"
    if len(detected.known) == 1:
        return [host]
    names: list[str] = []
    for group in detected.known:
        name = f"{host}-{group.accelerator.name}" if group.accelerator else host
        names.append(name if name not in names else f"{name}-{len(names) + 1}")
    return names


def inventory_text(detected: Detected, costs: Costs) -> str:
    """The inventory file of this machine as YAML.

    Missing facts that only the owner knows are comments to fill in; until then validation rejects the file at exactly those
    fields. Raises `UnusableInput` if no accelerator of the machine is known.
    """
    if not detected.known:
        raise UnusableInput.at("local", message="; ".join(group.problem for group in detected.groups))
    when = datetime.now(UTC).date().isoformat()
    lines = [
        f"# The accelerators of {json.dumps(detected.host.name)}, as found on {when}. Point GPUPLAN_INVENTORY at this file.",
        *_given(
            "electricity_usd_per_kwh", costs.electricity_usd_per_kwh, "what you pay for a kWh, US dollars with taxes"
        ),
        "machines:",
    ]
    for name, group in zip(machine_names(detected), detected.known, strict=True):
        lines += [f"  {line}" for line in _machine(name, group, detected.host, costs)]
    for group in detected.groups:
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
        lines.append(
            "  # cut into slices (MIG): counted as whole cards here. Switch MIG off, or list its slices instead,"
        )
        lines.append(f"  # one machine per profile: accelerator: {accelerator}:PROFILE, machines: the number of slices")
    return lines


def _link(group: Group) -> list[str]:
    """The link between the devices of a group, if the driver reports it or only one kind is possible."""
    if len(group.devices) == 1 or group.first.link_peers is None:
        return []
    pcie = f"  # PCIe {group.pcie[0]}.0 x{group.pcie[1]}" if group.pcie else ""
    has_link = group.accelerator is not None and group.accelerator.link_gbs is not None
    return ["  link: nvlink"] if group.linked and has_link else [f"  link: pcie{pcie}"]


def _cost(costs: Costs) -> list[str]:
    if costs.purchase_usd is not None or costs.life_years is not None:
        priced_configurations = _given("purchase_usd", costs.purchase_usd, "what the machine cost, US dollars")
        return [*priced_configurations, *_given("life_years", costs.life_years, "how long it is used")]
    hint = "its cost: so much per hour (0 if written off), or instead purchase_usd and life_years"
    return _given("usd_per_hour", costs.usd_per_hour, hint)


def _given(key: str, value: float | None, hint: str) -> list[str]:
    """A line with the value, or a comment that says what to write."""
    return [f"{key}: {value:g}"] if value is not None else [f"# {key}:   # FILL IN: {hint}"]


def _plain(text: str) -> str:
    """The device name from the driver on one line."""
    return re.sub(r"[^\x20-\x7e]+", " ", text)


def rows(groups: Sequence[Group]) -> list[dict[str, object]]:
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
        for group in groups
    ]
