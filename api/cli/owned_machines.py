"""`gpuplan local`: detect and list owned machines."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from gpuplan.api.cli.command_io import open_gpuplan, print_answer, print_json
from gpuplan.api.cli.plan import AsJson, InventoryFile
from gpuplan.api.cli.standard_output import answers
from gpuplan.api.presentation.owned_machines import listed_machines, render_detected, render_machines
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.providers.owned.machine_detection import Costs, inventory_text, rows
from gpuplan.providers.owned.machine_detection import detect as look

#: The limit of an inventory's `purchase_usd`.
_TOP_USD = 20e6


def local_commands() -> typer.Typer:
    """The commands under `gpuplan local`."""
    app = typer.Typer(help="Detect and list owned machines.", rich_markup_mode=None)
    app.command("detect")(detect)
    app.command("list")(listing)
    return app


def detect(
    *,
    write: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write an inventory file; it must not exist yet.")
    ] = None,
    electricity: Annotated[
        float | None,
        typer.Option(min=0.0001, max=10, metavar="USD", help="Your electricity price per kWh; no default."),
    ] = None,
    usd_per_hour: Annotated[
        float | None, typer.Option(min=0, max=5000, metavar="USD", help="Cost of one machine-hour; 0 if written off.")
    ] = None,
    purchase_usd: Annotated[
        float | None, typer.Option(min=1, max=_TOP_USD, metavar="USD", help="Purchase price of the machine.")
    ] = None,
    life_years: Annotated[
        float | None, typer.Option(min=0.1, max=30, metavar="YEARS", help="Service life of the machine.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Detect this machine's accelerators with NVML or AMD's tools."""
    if usd_per_hour is not None and (purchase_usd is not None or life_years is not None):
        raise UnusableInput.at("usd-per-hour", message="give a rate, or purchase-usd and life-years, not both")
    if write is not None and write.exists():
        raise UnusableInput.at("write", message=f"{str(write)!r} exists; give a name that is free")
    detected = look()
    costs = Costs(
        electricity_usd_per_kwh=electricity, usd_per_hour=usd_per_hour, purchase_usd=purchase_usd, life_years=life_years
    )
    text = inventory_text(detected, costs) if write is not None else ""
    if as_json:
        print_json({"host": detected.host.id, "name": detected.host.name, "accelerators": rows(detected.groups)})
    else:
        answers().writelines(f"{line}\n" for line in render_detected(detected.host.name, detected.groups))
    if write is not None:
        _write(write, text)


def _write(path: Path, text: str) -> None:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise UnusableInput.at("write", message=f"cannot write {str(path)!r}: {reason}") from error
    open_lines = text.count("FILL IN")
    todo = f"; fill in the {open_lines} lines marked FILL IN" if open_lines else ""
    sys.stderr.write(f"wrote {path}{todo}\n")


def listing(*, inventory: InventoryFile = None, as_json: AsJson = False) -> None:
    """List the inventory: machines, hourly cost, free times and measurements."""
    gpuplan = open_gpuplan(inventory=inventory)
    if not gpuplan.context.owned:
        message = "no inventory is configured: give --inventory FILE or set GPUPLAN_INVENTORY; gpuplan local detect --write FILE makes one"
        raise UnusableInput.at("inventory", message=message)
    machines = listed_machines(gpuplan.context.owned)
    print_answer({"machines": machines}, lambda _: render_machines(machines), as_json=as_json)
