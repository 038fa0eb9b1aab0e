"""`gpuplan offers` and `gpuplan accelerators`: what the catalogue holds."""

import csv
import json
from enum import StrEnum
from typing import Annotated

import typer

from api.cli.documents import open_gpuplan, print_json
from api.cli.plan import AsJson, InventoryFile
from api.cli.standard_output import answers
from api.csv_cells import plain_rows


class Format(StrEnum):
    """How rows are written."""

    table = "table"
    csv = "csv"
    json = "json"


def offers(
    *,
    provider: Annotated[str | None, typer.Option(help="aws, gcp, azure or local.")] = None,
    region: Annotated[str | None, typer.Option(help="A region or a glob: 'us-*'.")] = None,
    geography: Annotated[str | None, typer.Option(help="What people mean by it: us, eu, uk, asia ...")] = None,
    accelerator: Annotated[str | None, typer.Option(help="As in `gpuplan accelerators`, or a usual alias.")] = None,
    kind: Annotated[str | None, typer.Option(help="A price kind: on_demand, spot, reserved_1y ...")] = None,
    snapshot: Annotated[
        str | None, typer.Option(metavar="ID", help="Prices of this snapshot, not the current.")
    ] = None,
    instance_type: Annotated[str | None, typer.Option(help="An instance type or a glob: 'p5*'.")] = None,
    output: Annotated[Format, typer.Option("--format", help="How to print the rows.")] = Format.table,
    inventory: InventoryFile = None,
) -> None:
    """The catalogue of prices, filtered."""
    from api.catalogue import CSV_COLUMNS, OfferFilter

    wanted = OfferFilter(
        provider=provider,
        region=region,
        geography=geography,
        accelerator=accelerator,
        kind=kind,
        instance_type=instance_type,
    )
    page = open_gpuplan(inventory=inventory).offers(wanted, snapshot=snapshot)
    if output is Format.csv:
        writer = csv.DictWriter(answers(), CSV_COLUMNS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(plain_rows(page.rows))
    elif output is Format.json:
        json.dump({"snapshot_id": page.snapshot_id, "offers": list(page.rows)}, answers(), allow_nan=False)
        answers().write("\n")
    else:
        from api.render.catalogue import render_offers

        answers().writelines(f"{line}\n" for line in render_offers(page))


def accelerators(*, as_json: AsJson = False) -> None:
    """Every accelerator known, with what it can do."""
    from api.catalogue import accelerator_rows

    rows = accelerator_rows()
    if as_json:
        print_json({"accelerators": rows})
        return
    from api.render.catalogue import render_accelerators

    answers().writelines(f"{line}\n" for line in render_accelerators(rows))
