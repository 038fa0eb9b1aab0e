"""`gpuplan calibrate`: measures the accelerators of this machine, for the plans that may use it."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.cli.documents import print_json
from api.cli.plan import AsJson, InventoryFile
from api.cli.standard_output import answers
from catalog.errors import UnusableInput

if TYPE_CHECKING:
    from catalog.owned import OwnedMachine
    from providers.detected import Group, Host


def calibrate(
    *,
    inventory: InventoryFile = None,
    seconds: Annotated[float, typer.Option(min=5, max=3600, help="How long to measure, in all.")] = 60.0,
    python: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            envvar="GPUPLAN_TORCH_PYTHON",
            show_envvar=False,
            help="A Python that imports torch; gpuplan's own by default [GPUPLAN_TORCH_PYTHON].",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure this machine: matmul rates, bandwidths and two short training steps, kept for its plans.

    What is found is kept beside the inventory (lab.yaml: lab.calibration.json), in the user's data directory
    without an inventory, or where GPUPLAN_CALIBRATION says.
    """
    from api.own_machines import calibration_path, inventory_machines, stored_entries
    from api.settings import Environment
    from providers.calibration import merged, written
    from providers.detect import detect
    from providers.measure import measured_entry

    environment = Environment()
    if inventory is not None:
        environment = environment.model_copy(update={"inventory": inventory})
    machines = inventory_machines(environment)
    path = calibration_path(environment)
    kept = stored_entries(path)
    found = detect()
    for group in found.groups:
        if group.accelerator is None:
            sys.stderr.write(f"left out: {group.problem}\n")
    names = {group: machine_of(group, found.host, machines) for group in found.known}
    if not names:
        raise UnusableInput.at("local", message="; ".join(group.problem for group in found.groups))
    entries = [
        measured_entry(
            group, found.host, machine=name, python=python, seconds=seconds / len(names), tell=_progress(group)
        )
        for group, name in names.items()
    ]
    written(path, merged(kept, entries))
    _show(entries, path, as_json=as_json, in_inventory=bool(machines))


def machine_of(group: "Group", host: "Host", machines: Sequence["OwnedMachine"]) -> str | None:
    """The name that a group has in the inventory: by its host, or as the only machine of that kind without one.

    None without an inventory. Raises `UnusableInput` where an inventory has no such machine, or several.
    """
    if not machines:
        return None
    name = group.accelerator.name if group.accelerator is not None else ""
    fitting = [
        each
        for each in machines
        if each.instance_type.accelerator == name and each.instance_type.devices == len(group.devices)
    ]
    here = [each for each in fitting if each.host == host.id] or [each for each in fitting if not each.host]
    if len(here) == 1:
        return here[0].instance_type.name
    known = ", ".join(f"{each.instance_type.devices} x {each.instance_type.accelerator}" for each in machines)
    what = f"{len(here) or 'no'} machines" if len(here) != 1 else "one"
    message = (
        f"{what} with {len(group.devices)} x {name} that can be this one; it has {known}. "
        f"Write host: {host.id!r} at the machine that it is"
    )
    raise UnusableInput.at("inventory", message=message)


def _progress(group: "Group") -> Any:
    """Writes what is being measured to standard error, where it disturbs no answer."""
    name = group.accelerator.name if group.accelerator is not None else ""

    def tell(what: str) -> None:
        sys.stderr.write(f"{name}: measuring {what} ...\n")
        sys.stderr.flush()

    return tell


def _show(entries: Sequence[dict[str, Any]], path: Path, *, as_json: bool, in_inventory: bool) -> None:
    if as_json:
        print_json({"calibration": str(path), "machines": list(entries)})
        return
    from api.render.calibration import render_entry

    for entry in entries:
        answers().writelines(f"{line}\n" for line in render_entry(entry))
    answers().write(f"\nkept in {path}\n")
    if not in_inventory:
        host = entries[0]["host"]
        answers().write(f"plans use it for the machine of your inventory that has host: {host}\n")
