"""`gpuplan offers` and `gpuplan accelerators`: list the catalogue."""

import json
from enum import StrEnum
from typing import Annotated

import typer

from gpuplan.api.cli.command_io import open_gpuplan, print_json
from gpuplan.api.cli.plan import AsJson, InventoryFile, SnapshotId
from gpuplan.api.cli.standard_output import answers
from gpuplan.api.presentation.csv_cells import write_csv
from gpuplan.api.presentation.offer_tables import render_accelerators, render_offers
from gpuplan.api.services.offer_listing import CSV_COLUMNS, OfferFilter
from gpuplan.catalog.model.accelerators import accelerators as all_accelerators
from gpuplan.planner.model.wire import wire


class Format(StrEnum):
    """Output format of rows."""

    table = "table"
    csv = "csv"
    json = "json"


def offers(
    *,
    provider: Annotated[str | None, typer.Option(help="aws, lambda, local, ...: as in constraints.providers.")] = None,
    region: Annotated[str | None, typer.Option(help="A region or a glob: 'us-*'.")] = None,
    geography: Annotated[str | None, typer.Option(help="A geography: us, eu, uk, asia ...")] = None,
    accelerator: Annotated[str | None, typer.Option(help="A name from `gpuplan accelerators`, or an alias.")] = None,
    kind: Annotated[str | None, typer.Option(help="A price kind: on_demand, spot, reserved_1y ...")] = None,
    snapshot: SnapshotId = None,
    instance_type: Annotated[str | None, typer.Option(help="An instance type or a glob: 'p5*'.")] = None,
    output: Annotated[Format, typer.Option("--format", help="How to print the rows.")] = Format.table,
    inventory: InventoryFile = None,
) -> None:
    """List offers and their prices, filtered."""
    wanted = OfferFilter(
        provider=provider,
        region=region,
        geography=geography,
        accelerator=accelerator,
        kind=kind,
        instance_type=instance_type,
    )
    page = open_gpuplan(inventory=inventory).catalogue.offers(wanted, snapshot=snapshot)
    if output is Format.csv:
        write_csv(answers(), CSV_COLUMNS, map(wire, page.rows))
    elif output is Format.json:
        json.dump({"snapshot_id": page.snapshot_id, "offers": wire(tuple(page.rows))}, answers(), allow_nan=False)
        answers().write("\n")
    else:
        answers().writelines(f"{line}\n" for line in render_offers(page))


def accelerators(*, as_json: AsJson = False) -> None:
    """List every known accelerator with its memory and speed."""
    rows = tuple(all_accelerators().values())
    if as_json:
        print_json({"accelerators": rows})
        return
    answers().writelines(f"{line}\n" for line in render_accelerators(rows))
