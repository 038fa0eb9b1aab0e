"""`gpuplan history` and `gpuplan diff`: prices over time, and what a snapshot changed."""

import csv
from collections.abc import Iterable
from typing import Annotated, Any

import typer

from api.cli.documents import open_gpuplan, print_json
from api.cli.offers import Format
from api.cli.standard_output import answers
from api.csv_cells import plain_rows

Provider = Annotated[str | None, typer.Option(help="aws, gcp or azure.")]


def history(
    instance_type: Annotated[str, typer.Argument(metavar="INSTANCE_TYPE", help="As the provider names it.")],
    *,
    provider: Provider = None,
    region: Annotated[str | None, typer.Option(help="A region or a glob: 'us-*'.")] = None,
    zone: Annotated[str | None, typer.Option(help="A zone; '' for prices of a whole region.")] = None,
    kind: Annotated[str | None, typer.Option(help="A price kind: on_demand, spot, reserved_1y ...")] = None,
    since: Annotated[str | None, typer.Option(metavar="DATE", help="Leave out what ended before: 2026-11-01.")] = None,
    output: Annotated[Format, typer.Option("--format", help="How to print the prices.")] = Format.table,
) -> None:
    """Prices of an instance type over time: each from when to when, and what has vanished."""
    from api.history import HISTORY_COLUMNS, HistoryFilter, read_since

    wanted = HistoryFilter(
        instance_type=instance_type, provider=provider, region=region, zone=zone, kind=kind, since=read_since(since)
    )
    page = open_gpuplan().prices(wanted)
    if output is Format.csv:
        _print_csv(HISTORY_COLUMNS, page.rows)
    elif output is Format.json:
        named = {"snapshot_id": page.snapshot_id, "instance_type": page.instance_type, "total": page.total}
        print_json(named | {"prices": list(page.rows)})
    else:
        from api.render.history import render_history

        _print_lines(render_history(page, unicode=_shows_unicode()))


def diff(
    before: Annotated[str | None, typer.Argument(metavar="[FROM]", help="A snapshot's id or its beginning.")] = None,
    after: Annotated[str | None, typer.Argument(metavar="[TO]", help="Default: the current snapshot.")] = None,
    *,
    provider: Provider = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Every offer by itself, also if only its staleness changed.")
    ] = False,
    output: Annotated[Format, typer.Option("--format", help="How to print the changes.")] = Format.table,
) -> None:
    """What a snapshot changed against another: what got dearer, cheaper, came and went.

    Without arguments, what the current one did against the one before.
    """
    from api.history import DIFF_COLUMNS, csv_rows, diff_document

    gpuplan = open_gpuplan()
    page = gpuplan.diff(*gpuplan.compared(before, after, field="FROM"), provider=provider)
    if output is Format.csv:
        _print_csv(DIFF_COLUMNS, csv_rows(page.rows))
    elif output is Format.json:
        print_json(diff_document(page))
    else:
        from api.render.diff import render_diff

        _print_lines(render_diff(page, everything=everything))


def _print_lines(lines: Iterable[str]) -> None:
    answers().writelines(f"{line}\n" for line in lines)


def _print_csv(columns: tuple[str, ...], rows: Iterable[dict[str, Any]]) -> None:
    writer = csv.DictWriter(answers(), columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(plain_rows(rows))


def _shows_unicode() -> bool:
    return (answers().encoding or "").lower().replace("-", "") == "utf8"
