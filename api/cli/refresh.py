"""`gpuplan refresh`: pull live prices, show the report, and end with one line for alerting."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpuplan.api.cli.command_io import open_gpuplan, print_json
from gpuplan.api.cli.plan import AsJson, SettingsFile
from gpuplan.api.cli.standard_output import answers
from gpuplan.api.presentation.text_formatting import plain
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.runtime.errors import StoreFailure

if TYPE_CHECKING:
    from gpuplan.api.schemas.refresh_answers import RefreshReport
    from gpuplan.providers.refresh.parallel_fetch import Progress

EXIT_NOT_WHOLE = 3


def refresh(
    *,
    provider: Annotated[str | None, typer.Option(help="Only these clouds: aws,gcp,azure.")] = None,
    accept_loss: Annotated[
        bool, typer.Option("--accept-loss", help="Accept a cloud that lost more than half its rows.")
    ] = False,
    accept_jumps: Annotated[bool, typer.Option("--accept-jumps", help="Accept prices that changed by 10x.")] = False,
    time_limit: Annotated[
        float,
        typer.Option(
            "--time-limit", min=0.01, max=1440, help="Minutes; regions not read by then keep their old prices."
        ),
    ] = 20.0,
    metrics_file: Annotated[
        Path | None, typer.Option("--metrics-file", help="Write metrics for Prometheus' textfile collector to FILE.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print only the last line.")] = False,
    as_json: AsJson = False,
    settings: SettingsFile = None,
) -> None:
    """Pull live prices of every cloud into a new snapshot. Exit code 0 only if no price is stale."""
    from gpuplan.api.observability.refresh_metrics import check_metrics_file, write_metrics
    from gpuplan.api.observability.telemetry_settings import check_counting
    from gpuplan.api.services.refresh_report import watches_failed
    from gpuplan.providers.proxy_settings import check_proxies
    from gpuplan.providers.refresh.memory_release import release_memory

    check_proxies()
    release_memory()
    if metrics_file is not None:
        check_counting()
        check_metrics_file(metrics_file)
    asked: JsonObject = {"provider": None if provider is None else provider.split(",")}
    asked |= {"accept_loss": accept_loss, "accept_jumps": accept_jumps, "time_limit_minutes": time_limit}
    gpuplan = open_gpuplan(settings=settings)
    try:
        with _progress(shown=not quiet and not as_json) as progress:
            report = gpuplan.refreshes.refresh(asked, progress=progress)
    except StoreFailure as error:
        if not as_json:
            answers().write(f"refresh: failed; {plain(error)}\n")
        raise
    if metrics_file is not None:
        write_metrics(metrics_file, report, gpuplan.store.last_whole_refresh_at())
    _show(report, as_json=as_json, quiet=quiet)
    if report.outcome != "whole" or watches_failed(report):
        raise typer.Exit(EXIT_NOT_WHOLE)


def _show(report: "RefreshReport", *, as_json: bool, quiet: bool) -> None:
    if as_json:
        print_json(report)
        return
    if not quiet:
        from gpuplan.api.cli.sections import print_sections
        from gpuplan.api.presentation.refresh import render_refresh

        print_sections(render_refresh(report))
        answers().write("\n")
    answers().write(f"{plain(report.summary)}\n")


@contextmanager
def _progress(*, shown: bool) -> Iterator["Progress"]:
    """One progress bar per cloud; none if standard error is not a terminal."""
    from gpuplan.providers.refresh.parallel_fetch import no_progress

    if not shown or not sys.stderr.isatty():
        yield no_progress
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def show(provider: str, done: int, total: int | None) -> None:
            if provider not in tasks:
                tasks[provider] = bars.add_task(provider, total=total)
            bars.update(tasks[provider], completed=done, total=total)

        yield show
