"""`gpuplan portfolio`: plan many jobs with shared machines, quotas and budget."""

import math
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from gpuplan.api.cli.command_io import open_gpuplan, print_answer, read_job
from gpuplan.api.cli.plan import EXIT_INFEASIBLE, AsJson, InventoryFile, SettingsFile, SnapshotId
from gpuplan.api.presentation.portfolio import render_portfolio
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.portfolio.search_progress import Progress

LONGEST_SEARCH_S = 86_400.0
#: Shortest interval between two progress lines, in seconds.
SECONDS_BETWEEN_LINES = 0.5


def portfolio(
    jobs: Annotated[
        str, typer.Argument(metavar="JOBS.yaml", help="The portfolio file (YAML or JSON), or - for standard input.")
    ],
    *,
    as_json: AsJson = False,
    time_limit: Annotated[
        float, typer.Option("--time-limit", metavar="SECONDS", help="Time to search for better plans and bounds.")
    ] = 60.0,
    iterations: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Stop after N steps instead; gives the same plan on every machine."),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of the search's random numbers.")] = 0,
    snapshot: SnapshotId = None,
    inventory: InventoryFile = None,
    settings: SettingsFile = None,
) -> None:
    """Find the cheapest way to run many jobs together, with a proven gap."""
    if not 0 < time_limit <= LONGEST_SEARCH_S:
        raise UnusableInput.at(
            "--time-limit",
            message=f"{time_limit:g} is out of range; give seconds above 0, at most {LONGEST_SEARCH_S:g}",
        )
    answer = open_gpuplan(inventory=inventory, settings=settings).portfolios.plan(
        read_job(jobs, field="portfolio", accepted="name a YAML or JSON file that lists jobs, or - for standard input"),
        time_limit_s=None if iterations is not None else time_limit,
        iterations=iterations,
        seed=seed,
        snapshot=snapshot,
        report=_progress(),
    )
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
    print_answer(answer, render_portfolio, as_json=as_json)
    if not answer.portfolio.jobs:
        raise typer.Exit(EXIT_INFEASIBLE)


def _progress() -> "Callable[[Progress], None] | None":
    """One progress line, overwritten during the search; None if standard error is not a terminal."""
    if not sys.stderr.isatty():
        return None
    printed_at = -SECONDS_BETWEEN_LINES

    def report(progress: Progress) -> None:
        nonlocal printed_at
        if progress.elapsed_s - printed_at < SECONDS_BETWEEN_LINES:
            return
        printed_at = progress.elapsed_s
        if not math.isfinite(progress.cost_usd):
            looked_at = f"{progress.jobs_seen} of {progress.jobs} jobs evaluated"
            sys.stderr.write(f"\r\x1b[K{progress.elapsed_s:5.0f} s  {looked_at}  ({progress.stage})")
            sys.stderr.flush()
            return
        sys.stderr.write(
            f"\r\x1b[K{progress.elapsed_s:5.0f} s  {progress.jobs_planned} of {progress.jobs} jobs run for"
            f" ${progress.cost_usd:,.2f}, {progress.jobs - progress.jobs_planned} not placed,"
            f" gap {100 * progress.gap:.2f} %  ({progress.stage})"
        )
        sys.stderr.flush()

    return report
