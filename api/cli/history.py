"""`gpuplan history` and `gpuplan diff`: prices over time, and the changes between two snapshots."""

from collections.abc import Iterable
from typing import Annotated

import typer

from gpuplan.api.cli.command_io import open_gpuplan, print_json
from gpuplan.api.cli.offers import Format
from gpuplan.api.cli.standard_output import answers
from gpuplan.api.presentation.csv_cells import write_csv
from gpuplan.api.presentation.price_history import render_history
from gpuplan.api.presentation.snapshot_diff import render_diff
from gpuplan.api.services.price_history import (
    DIFF_COLUMNS,
    HISTORY_COLUMNS,
    HistoryFilter,
    comparison,
    csv_rows,
    read_since,
)
from gpuplan.planner.model.wire import wire

Provider = Annotated[str | None, typer.Option(help="aws, gcp or azure.")]


def history(
    instance_type: Annotated[str, typer.Argument(metavar="INSTANCE_TYPE", help="As the provider names it.")],
    *,
    provider: Provider = None,
    region: Annotated[str | None, typer.Option(help="A region or a glob: 'us-*'.")] = None,
    zone: Annotated[str | None, typer.Option(help="A zone; '' for prices of a whole region.")] = None,
    kind: Annotated[str | None, typer.Option(help="A price kind: on_demand, spot, reserved_1y ...")] = None,
    since: Annotated[
        str | None, typer.Option(metavar="DATE", help="Leave out prices that ended before this date: 2026-11-01.")
    ] = None,
    output: Annotated[Format, typer.Option("--format", help="How to print the prices.")] = Format.table,
) -> None:
    """Show the prices of an instance type over time, including vanished offers."""
    wanted = HistoryFilter(
        instance_type=instance_type, provider=provider, region=region, zone=zone, kind=kind, since=read_since(since)
    )
    page = open_gpuplan().price_history.prices(wanted)
    if output is Format.csv:
        write_csv(answers(), HISTORY_COLUMNS, map(wire, page.rows))
    elif output is Format.json:
        named = {"snapshot_id": page.snapshot_id, "instance_type": page.instance_type, "total": page.total}
        print_json(named | {"prices": tuple(page.rows)})
    else:
        _print_lines(render_history(page, unicode=_shows_unicode()))


def diff(
    before: Annotated[str | None, typer.Argument(metavar="[FROM]", help="A snapshot's id or its beginning.")] = None,
    after: Annotated[str | None, typer.Argument(metavar="[TO]", help="Default: the current snapshot.")] = None,
    *,
    provider: Provider = None,
    everything: Annotated[
        bool, typer.Option("--all", help="One line per offer, also where only staleness changed.")
    ] = False,
    output: Annotated[Format, typer.Option("--format", help="How to print the changes.")] = Format.table,
) -> None:
    """Compare two snapshots: offers that got dearer, got cheaper, appeared or vanished.

    Without arguments, compares the current snapshot with the one before.
    """
    gpuplan = open_gpuplan()
    page = gpuplan.price_history.diff(*gpuplan.price_history.compared(before, after, field="FROM"), provider=provider)
    if output is Format.csv:
        write_csv(answers(), DIFF_COLUMNS, csv_rows(page.rows))
    elif output is Format.json:
        print_json(comparison(page))
    else:
        _print_lines(render_diff(page, everything=everything))


def _print_lines(lines: Iterable[str]) -> None:
    answers().writelines(f"{line}\n" for line in lines)


def _shows_unicode() -> bool:
    return (answers().encoding or "").lower().replace("-", "") == "utf8"
