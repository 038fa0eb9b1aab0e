"""The user's own machines: the inventory file, and beside it what was measured on them."""

from pathlib import Path
from typing import TYPE_CHECKING

from gpuplan.api.schemas.settings_file import Environment, read_file
from gpuplan.catalog.model.owned_machine import OwnedMachine
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.parsing.structured_text import read_document
from gpuplan.catalog.runtime.errors import UnusableInput

if TYPE_CHECKING:
    from gpuplan.providers.owned.calibration_file import EntryDocument

CALIBRATION_NAME = "calibration.json"


def owned_machines(environment: Environment) -> tuple[OwnedMachine, ...]:
    """The machines of the inventory, each with what was measured on it; none without an inventory.

    Raises `UnusableInput` at inventory or calibration for files that cannot be used. A calibration file that was
    named, or that lies beside the inventory, is of its machines and no others; the user's own may tell of more.
    """
    machines = inventory_machines(environment)
    path = calibration_path(environment)
    if not machines or not (path.exists() or environment.calibration is not None):
        return machines
    from gpuplan.providers.owned.calibration_file import calibrated

    elsewhere = path == _users_machines()
    return calibrated(machines, calibration_entries(path), others_allowed=elsewhere)


def inventory_machines(environment: Environment) -> tuple[OwnedMachine, ...]:
    """The machines of the inventory as the user describes them; none without an inventory."""
    path = environment.inventory
    if path is None:
        return ()
    from gpuplan.providers.owned.owned_machines import read_inventory

    document = read_document(read_file(path, field="inventory"), name=str(path))
    try:
        return read_inventory(document)
    except UnusableInput as error:
        raise error.under("inventory") from None


def calibration_path(environment: Environment) -> Path:
    """The calibration file: as set, else that beside the inventory if there is one, else the user's own.

    A new one belongs beside the inventory; without an inventory it goes to the user's data directory.
    """
    if environment.calibration is not None:
        return environment.calibration
    beside = None if environment.inventory is None else beside_inventory(environment.inventory)
    if beside is not None and (beside.exists() or not _users_machines().exists()):
        return beside
    return _users_machines()


def beside_inventory(inventory: Path) -> Path:
    """`lab.yaml` has its measurements in `lab.calibration.json`."""
    return inventory.with_name(f"{inventory.stem}.{CALIBRATION_NAME}")


def _users_machines() -> Path:
    from platformdirs import user_data_path

    return user_data_path("gpuplan", appauthor=False) / CALIBRATION_NAME


def calibration_entries(path: Path) -> "tuple[EntryDocument, ...]":
    """The entries of a calibration file; raises `UnusableInput` at calibration where it cannot be read or believed."""
    from gpuplan.providers.owned.calibration_file import read_calibration

    text = read_file(path, field="calibration")
    try:
        return read_calibration(text, name=str(path))
    except UnusableInput as error:
        raise error.under("calibration") from None


def stored_entries(path: Path) -> list[JsonObject]:
    """The entries of a calibration file as they stand there, checked; none where there is no file yet."""
    if not path.exists():
        return []
    calibration_entries(path)
    entries: list[JsonObject] = read_document(read_file(path, field="calibration"), name=str(path))["machines"]
    return entries
