"""`gpuplan local`: own machines, found by looking and as the inventory has them."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from api.cli.documents import open_gpuplan, print_json
from api.cli.plan import AsJson, InventoryFile
from api.cli.standard_output import answers, console
from catalog.errors import UnusableInput

#: As in an inventory.
_TOP_USD = 20e6


def local_commands() -> typer.Typer:
    """The commands under `gpuplan local`."""
    app = typer.Typer(help="Own machines: find them, list them.", rich_markup_mode=None)
    app.command("detect")(detect)
    app.command("list")(listing)
    return app


def detect(
    *,
    write: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write an inventory file, which must not exist yet.")
    ] = None,
    electricity: Annotated[
        float | None, typer.Option(min=0.0001, max=10, metavar="USD", help="What a kWh costs you; never guessed.")
    ] = None,
    usd_per_hour: Annotated[
        float | None, typer.Option(min=0, max=5000, metavar="USD", help="What an hour costs; 0 if written off.")
    ] = None,
    purchase_usd: Annotated[
        float | None, typer.Option(min=1, max=_TOP_USD, metavar="USD", help="What the machine cost.")
    ] = None,
    life_years: Annotated[
        float | None, typer.Option(min=0.1, max=30, metavar="YEARS", help="How long it is used.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """The accelerators of this machine, as NVML or AMD's tools describe them."""
    from providers.detect import Costs, inventory_text, rows
    from providers.detect import detect as look

    if usd_per_hour is not None and (purchase_usd is not None or life_years is not None):
        raise UnusableInput.at("usd-per-hour", message="give a rate, or purchase-usd and life-years, not both")
    if write is not None and write.exists():
        raise UnusableInput.at("write", message=f"{str(write)!r} exists; give a name that is free")
    found = look()
    costs = Costs(
        electricity_usd_per_kwh=electricity, usd_per_hour=usd_per_hour, purchase_usd=purchase_usd, life_years=life_years
    )
    text = inventory_text(found, costs) if write is not None else ""
    if as_json:
        print_json({"host": found.host.id, "name": found.host.name, "accelerators": rows(found.groups)})
    else:
        from api.render.own_machines import render_detected

        answers().writelines(f"{line}\n" for line in render_detected(found.host.name, rows(found.groups)))
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
    """The inventory: what each machine is, what an hour costs, when it is free, what was measured."""
    gpuplan = open_gpuplan(inventory=inventory)
    if not gpuplan.owned:
        message = (
            "no inventory is named: give --inventory FILE or set GPUPLAN_INVENTORY; gpuplan local detect writes one"
        )
        raise UnusableInput.at("inventory", message=message)
    from api.render.own_machines import machine_rows, render_machines

    if as_json:
        print_json({"machines": machine_rows(gpuplan.owned)})
    else:
        console().print(render_machines(machine_rows(gpuplan.owned)))
