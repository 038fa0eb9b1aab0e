"""The costs of a month: a table with budgets, the plans that count, and rows of a CSV file."""

from collections.abc import Iterator

from gpuplan.api.presentation.sections import Block, Heading, Sections, Tone, sections_of
from gpuplan.api.presentation.text_formatting import number, usd, when
from gpuplan.api.presentation.text_tables import bullets, cell, heading, listing
from gpuplan.api.schemas.costs_answer import Costs, PlanCosts, PlanInCosts, TeamBudget

#: Columns of the CSV file.
CSV_COLUMNS = (
    "month",
    "by",
    "name",
    "planned_usd",
    "actual_usd",
    "expected_usd",
    "plans",
    "budget_usd",
    "left_usd",
)
NO_PLANS = "No plan counts in this month: gpuplan costs adopt PLAN_ID counts one, and so does a report on its run (gpuplan actuals)."


def render_costs(answer: Costs) -> Sections:
    """The rows with their sum, the plans behind them, and what counts."""
    total = answer.total
    budgeted = any(row.budget_usd is not None for row in answer.rows)
    titles = (answer.by, "planned", "actual", "expected", "plans", *(("budget", "left") if budgeted else ()))
    rows = [
        (
            shown_name(row.name, answer.by),
            usd(row.planned_usd),
            usd(row.actual_usd),
            usd(row.expected_usd),
            number(row.plans),
            *((_maybe(row.budget_usd), _maybe(row.left_usd)) if budgeted else ()),
        )
        for row in answer.rows
    ]
    blocks: list[Block | Heading] = [
        cell(
            f"{answer.month}: {usd(total.expected_usd)} expected, {usd(total.planned_usd)} planned, {usd(total.actual_usd)} actual",
            Tone.STRONG,
        )
    ]
    if rows:
        blocks.append(listing(titles, rows, right=range(1, len(titles)), is_whole=True))
    blocks += bullets(over_budget(answer), Tone.WARNING)
    if answer.plans:
        plans = [_plan(plan) for plan in answer.plans]
        blocks += [
            heading("Plans", "plans"),
            listing(("plan", "job", "state", "starts", "expected"), plans, right=(4,)),
        ]
    else:
        blocks.append(cell(NO_PLANS))
    blocks += bullets((f"{plan.plan_id} is left out: {plan.reason}" for plan in answer.left_out), Tone.WARNING)
    return sections_of(*blocks, heading("Assumptions", "assumptions"), *bullets(answer.assumptions))


def over_budget(answer: Costs) -> list[str]:
    """A sentence per team whose budget is exceeded."""
    return [
        f"{row.name} is {usd(row.left_usd.removeprefix('-'))} over its budget of {usd(row.budget_usd)}"
        for row in answer.rows
        if row.left_usd is not None and row.budget_usd is not None and row.left_usd.startswith("-")
    ]


def shown_name(name: str, by: str) -> str:
    """A row's name for people: `spot`, or `no team`."""
    return name.replace("_", " ") if by == "kind" else name or f"no {by}"


def csv_rows(answer: Costs) -> Iterator[dict[str, str]]:
    """The rows as cells of `CSV_COLUMNS`; what is not known is empty."""
    for row in answer.rows:
        figures = {name: getattr(row, name) for name in CSV_COLUMNS[2:]}
        cells = {"month": answer.month, "by": answer.by} | figures
        yield {name: "" if value is None else str(value) for name, value in cells.items()}


def render_budget(answer: TeamBudget) -> str:
    """A team's budget in a sentence."""
    if answer.usd_per_month is None:
        return f"{answer.team} has no budget"
    return f"{answer.team}: {usd(answer.usd_per_month)} a month"


def render_inclusion(answer: PlanInCosts) -> str:
    """Whether a plan counts, in a sentence."""
    return f"{answer.plan_id} {'counts' if answer.counts else 'does not count'} in the costs"


def _plan(plan: PlanCosts) -> tuple[str, ...]:
    return plan.plan_id, plan.job, plan.state, when(plan.starts_at), usd(plan.expected_usd)


def _maybe(amount: str | None) -> str:
    return "" if amount is None else usd(amount)
