"""`gpuplan portfolio`: many jobs over shared machines, quotas and one budget."""

import math
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from api.cli.documents import open_gpuplan, print_json, read_job
from api.cli.plan import EXIT_INFEASIBLE, AsJson, InventoryFile, SettingsFile
from api.cli.standard_output import console

if TYPE_CHECKING:
    from planner.portfolio.progress import Progress

LONGEST_SEARCH_S = 86_400.0
#: A terminal is told no more often than this.
SECONDS_BETWEEN_LINES = 0.5


def portfolio(
    jobs: Annotated[
        str, typer.Argument(metavar="JOBS.yaml", help="The portfolio file (YAML or JSON), or - for standard input.")
    ],
    *,
    as_json: AsJson = False,
    time_limit: Annotated[
        float, typer.Option("--time-limit", metavar="SECONDS", help="How long to look for better plans and bounds.")
    ] = 60.0,
    iterations: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="End after so many steps instead: the same plan on every machine."),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Where the search's random numbers begin.")] = 0,
    snapshot: Annotated[
        str | None, typer.Option(metavar="ID", help="Prices of this snapshot, not the current.")
    ] = None,
    inventory: InventoryFile = None,
    settings: SettingsFile = None,
) -> None:
    """The cheapest way to run many jobs together, with the proven gap."""
    from catalog.errors import UnusableInput

    if not 0 < time_limit <= LONGEST_SEARCH_S:
        raise UnusableInput.at(
            "--time-limit",
            message=f"{time_limit:g} is out of range; give seconds above 0, at most {LONGEST_SEARCH_S:g}",
        )
    answer = open_gpuplan(inventory=inventory, settings=settings).portfolio(
        read_job(jobs),
        time_limit_s=None if iterations is not None else time_limit,
        iterations=iterations,
        seed=seed,
        snapshot=snapshot,
        report=_progress(),
    )
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
    if as_json:
        print_json(answer)
    else:
        from api.render.portfolio import render_portfolio

        console().print(render_portfolio(answer))
    if not answer["portfolio"]["jobs"]:
        raise typer.Exit(EXIT_INFEASIBLE)


def _progress() -> "Callable[[Progress], None] | None":
    """One line on a terminal, overwritten as the search goes on; nothing where nobody watches."""
    if not sys.stderr.isatty():
        return None
    told = -SECONDS_BETWEEN_LINES

    def tell(progress: "Progress") -> None:
        nonlocal told
        if progress.elapsed_s - told < SECONDS_BETWEEN_LINES:
            return
        told = progress.elapsed_s
        if not math.isfinite(progress.cost_usd):
            looked_at = f"{progress.jobs_seen} of {progress.jobs} jobs looked at"
            sys.stderr.write(f"\r\x1b[K{progress.elapsed_s:5.0f} s  {looked_at}  ({progress.stage})")
            sys.stderr.flush()
            return
        sys.stderr.write(
            f"\r\x1b[K{progress.elapsed_s:5.0f} s  {progress.jobs_planned} of {progress.jobs} jobs run for"
            f" ${progress.cost_usd:,.2f}, {progress.jobs - progress.jobs_planned} not placed,"
            f" gap {100 * progress.gap:.2f} %  ({progress.stage})"
        )
        sys.stderr.flush()

    return tell
