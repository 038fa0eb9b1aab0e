"""`gpuplan calibrate`: measure this machine's accelerators."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from gpuplan.api.cli.command_io import print_json
from gpuplan.api.cli.plan import AsJson, InventoryFile
from gpuplan.api.cli.standard_output import answers
from gpuplan.api.presentation.calibration_entry import render_entry
from gpuplan.api.schemas.settings_file import Environment
from gpuplan.api.services.owned_machines import calibration_path, inventory_machines, stored_entries
from gpuplan.catalog.model.owned_machine import OwnedMachine
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.providers.owned.calibration_file import merged, written
from gpuplan.providers.owned.detected_devices import Group, Host
from gpuplan.providers.owned.machine_detection import detect
from gpuplan.providers.owned.measurement import measured_entry


def calibrate(
    *,
    inventory: InventoryFile = None,
    seconds: Annotated[float, typer.Option(min=5, max=3600, help="Total time to measure.")] = 60.0,
    python: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            envvar="GPUPLAN_TORCH_PYTHON",
            show_envvar=False,
            help="A Python with torch. Default: gpuplan's own [GPUPLAN_TORCH_PYTHON].",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure this machine's matmul rates, bandwidths and two short training steps.

    Plans on this machine use the result. It is saved to the file in GPUPLAN_CALIBRATION, else beside the inventory
    (lab.yaml: lab.calibration.json), else in the user's data directory.
    """
    environment = Environment()
    if inventory is not None:
        environment = environment.model_copy(update={"inventory": inventory})
    machines = inventory_machines(environment)
    path = calibration_path(environment)
    earlier = stored_entries(path)
    detected = detect()
    for group in detected.groups:
        if group.accelerator is None:
            sys.stderr.write(f"left out: {group.problem}\n")
    names = {group: machine_of(group, detected.host, machines) for group in detected.known}
    if not names:
        raise UnusableInput.at("local", message="; ".join(group.problem for group in detected.groups))
    entries = [
        measured_entry(
            group, detected.host, machine=name, python=python, seconds=seconds / len(names), tell=_progress(group)
        )
        for group, name in names.items()
    ]
    written(path, merged(earlier, entries))
    _show(entries, path, as_json=as_json, in_inventory=bool(machines))


def machine_of(group: Group, host: Host, machines: Sequence[OwnedMachine]) -> str | None:
    """The inventory's name for this group of devices, matched by host, else as the only such machine without a host.

    None without an inventory. Raises `UnusableInput` if the inventory has no such machine, or several.
    """
    if not machines:
        return None
    name = group.accelerator.name if group.accelerator is not None else ""
    fitting = [
        machine
        for machine in machines
        if machine.instance_type.accelerator == name and machine.instance_type.devices == len(group.devices)
    ]
    matches = [machine for machine in fitting if machine.host == host.id] or [
        machine for machine in fitting if not machine.host
    ]
    if len(matches) == 1:
        return matches[0].instance_type.name
    known = ", ".join(f"{machine.instance_type.devices} x {machine.instance_type.accelerator}" for machine in machines)
    what = f"{len(matches) or 'no'} machines" if len(matches) != 1 else "one"
    message = (
        f"{what} with {len(group.devices)} x {name} that can be this one; it has {known}. "
        f"Add host: {host.id!r} to the right machine"
    )
    raise UnusableInput.at("inventory", message=message)


def _progress(group: Group) -> Any:
    """Report progress on standard error; standard output is reserved for the answer."""
    name = group.accelerator.name if group.accelerator is not None else ""

    def report(what: str) -> None:
        sys.stderr.write(f"{name}: measuring {what} ...\n")
        sys.stderr.flush()

    return report


def _show(entries: Sequence[JsonObject], path: Path, *, as_json: bool, in_inventory: bool) -> None:
    if as_json:
        print_json({"calibration": str(path), "machines": list(entries)})
        return
    for entry in entries:
        answers().writelines(f"{line}\n" for line in render_entry(entry))
    answers().write(f"\nsaved to {path}\n")
    if not in_inventory:
        host = entries[0]["host"]
        answers().write(f"plans use it for the inventory's machine with host: {host}\n")
