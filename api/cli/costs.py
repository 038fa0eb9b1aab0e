"""`gpuplan costs`: planned and actual cost of a month, plans that count in it, and budgets of teams."""

from typing import Annotated

import typer

from gpuplan.api.cli.command_io import open_gpuplan, print_answer
from gpuplan.api.cli.plan import AsJson
from gpuplan.api.cli.standard_output import answers
from gpuplan.api.presentation.costs import CSV_COLUMNS, csv_rows, render_budget, render_costs, render_inclusion
from gpuplan.api.presentation.csv_cells import write_csv
from gpuplan.catalog.runtime.errors import UnusableInput

PlanId = Annotated[str, typer.Argument(metavar="PLAN_ID", help="The id of a saved plan.")]
NO_BUDGET = "none"


def costs_commands() -> typer.Typer:
    """`gpuplan costs`, and the commands under it."""
    app = typer.Typer(
        help="Planned and actual cost of a month by team, project, provider or price kind.",
        rich_markup_mode=None,
        invoke_without_command=True,
    )
    app.callback()(costs)
    # A negative amount is refused by its own message, not taken for an option.
    app.command("budget", context_settings={"ignore_unknown_options": True})(budget)
    app.command("adopt")(adopt)
    app.command("drop")(drop)
    return app


def costs(
    context: typer.Context,
    *,
    month: Annotated[str | None, typer.Option(help="A month in UTC, as 2026-11. Default: the current one.")] = None,
    by: Annotated[str, typer.Option(help="team, project, provider or kind.")] = "team",
    as_json: AsJson = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print the rows as CSV.")] = False,
    as_focus: Annotated[
        bool, typer.Option("--focus", help="Print the planned charges as a FOCUS dataset (CSV).")
    ] = False,
) -> None:
    """Planned and actual cost of a month by team, project, provider or price kind."""
    if context.invoked_subcommand is not None:
        _refuse_options(context, context.invoked_subcommand)
        return
    if as_json + as_csv + as_focus > 1:
        raise UnusableInput.at("csv", message="give one of --json, --csv and --focus")
    service = open_gpuplan().costs
    if as_focus:
        answers().write(service.focus(month))
        return
    answer = service.of_month(month, by)
    if as_csv:
        write_csv(answers(), CSV_COLUMNS, csv_rows(answer))
        return
    print_answer(answer, render_costs, as_json=as_json)


def _refuse_options(context: typer.Context, command: str) -> None:
    """Refuse options before a command, which would be without effect there."""
    for option in context.command.params:
        source = context.get_parameter_source(str(option.name))
        if source is not None and source.name == "COMMANDLINE":
            name = option.opts[0].removeprefix("--")
            raise UnusableInput.at(name, message=f"stands before {command}; give the options of {command} after it")


def budget(
    team: Annotated[str, typer.Argument(metavar="TEAM", help="As the jobs name it.")],
    amount: Annotated[str, typer.Argument(metavar="USD", help="For each month: 5000, $5k; or none.")],
    *,
    as_json: AsJson = False,
) -> None:
    """Set a team's budget for each month, or remove it."""
    document = {"team": team} if amount == NO_BUDGET else {"team": team, "usd": amount}
    answer = open_gpuplan().costs.set_budget(document)
    print_answer(answer, render_budget, as_json=as_json)


def adopt(plan_id: PlanId, *, as_json: AsJson = False) -> None:
    """Count a saved plan in the costs of its months."""
    answer = open_gpuplan().costs.adopt(plan_id)
    print_answer(answer, render_inclusion, as_json=as_json)


def drop(plan_id: PlanId, *, as_json: AsJson = False) -> None:
    """Count a plan in the costs no longer."""
    answer = open_gpuplan().costs.drop(plan_id)
    print_answer(answer, render_inclusion, as_json=as_json)
