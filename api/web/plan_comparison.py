"""The recent plans, and two to four of them side by side."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpuplan.api.presentation.phrases import name_in_list, offer
from gpuplan.api.presentation.text_formatting import duration, usd, when
from gpuplan.api.schemas.answers import read_answer
from gpuplan.api.web.answer_card import glance
from gpuplan.api.web.form_words import in_form_words
from gpuplan.api.web.job_form import stated
from gpuplan.catalog.store.plan_store import SavedPlan
from gpuplan.planner.model.plan import Plan, PlanAnswer

#: Plans in the list, and side by side.
MOST_RECENT = 40
MOST_COMPARED = 4
#: A figure that a plan does not have.
NOTHING = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentPlan:
    """A plan in the list; `what` says "no plan" for an infeasible job."""

    id: str
    made: str
    name: str
    what: str
    cost: str
    time: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRow:
    """One figure of all compared plans, and whether it differs between them."""

    label: str
    values: tuple[str, ...]
    differs: bool


def recent_rows(plans: Sequence[SavedPlan]) -> list[RecentPlan]:
    """The plans of the list, in their order."""
    return [_recent(plan) for plan in plans]


def _recent(saved: SavedPlan) -> RecentPlan:
    body = read_answer(saved.outcome).body
    return RecentPlan(
        id=saved.id,
        made=when(saved.created_at),
        name=name_in_list(saved.job),
        what=_machines(body) if isinstance(body, Plan) else "no plan",
        cost=usd(body.cost_usd.expected) if isinstance(body, Plan) else NOTHING,
        time=duration(body.hours.expected) if isinstance(body, Plan) else NOTHING,
    )


def compared_rows(answers: Sequence[PlanAnswer]) -> list[ComparedRow]:
    """What the jobs state and what the plans come to, one row per figure that at least one of them has."""
    rows = []
    for part in (_stated_figures, _planned_figures):
        columns = [part(answer) for answer in answers]
        labels = dict.fromkeys(label for column in columns for label in column)
        rows += [_row(label, tuple(column.get(label, NOTHING) for column in columns)) for label in labels]
    return rows


def _row(label: str, values: tuple[str, ...]) -> ComparedRow:
    return ComparedRow(label=label, values=values, differs=len(set(values)) > 1)


def _stated_figures(answer: PlanAnswer) -> dict[str, str]:
    return {label: in_form_words(value) for label, value, _ in stated(answer.body.job)}


def _planned_figures(answer: PlanAnswer) -> dict[str, str]:
    plan = answer.body
    if not isinstance(plan, Plan):
        return {"Machines": "no plan"}
    figures = {"Machines": _machines(plan)}
    for label, value, beside in glance(plan):
        figures[label] = f"{value} {beside}" if label == "Done" else value
    figures["95 % of runs cost at most"] = usd(plan.cost_usd.p95)
    figures["95 % of runs take at most"] = duration(plan.hours.p95)
    figures["Prices observed"] = when(min(phase.price_observed_at for phase in plan.phases))[:10]
    return figures


def _machines(plan: Plan) -> str:
    return "; then ".join(offer(phase) for phase in plan.phases if not phase.is_standby)
