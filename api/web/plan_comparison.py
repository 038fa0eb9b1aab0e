"""The recent plans, and two to four of them side by side."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from gpuplan.api.presentation.machine_phrases import place, rented
from gpuplan.api.presentation.standby import is_standby
from gpuplan.api.presentation.text_formatting import duration, usd, when
from gpuplan.api.services.service_context import body_of
from gpuplan.api.web.answer_card import glance
from gpuplan.api.web.form_words import in_form_words
from gpuplan.api.web.job_form import stated
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.store.saved_answers import SavedPlan

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
    body = body_of(saved.outcome)
    planned = saved.outcome["outcome"] == "planned"
    return RecentPlan(
        id=saved.id,
        made=when(saved.created_at.isoformat()),
        name=str(saved.job.get("name") or "this job"),
        what=_machines(body) if planned else "no plan",
        cost=usd(body["cost_usd"]["expected"]) if planned else NOTHING,
        time=duration(body["hours"]["expected"]) if planned else NOTHING,
    )


def to_compare(ids: Sequence[str]) -> tuple[str, ...]:
    """The different ids among these. Raises `UnusableInput` at `plan` unless they are two to four."""
    different = tuple(dict.fromkeys(ids))
    if not 2 <= len(different) <= MOST_COMPARED:
        message = f"names {len(different)} different plans; accepted: two to {MOST_COMPARED}"
        raise UnusableInput.at("plan", message=message)
    return different


def compared_rows(answers: Sequence[JsonObject]) -> list[ComparedRow]:
    """What the jobs state and what the plans come to, one row per figure that at least one of them has."""
    rows = []
    for part in (_stated_figures, _planned_figures):
        columns = [part(answer) for answer in answers]
        labels = dict.fromkeys(label for column in columns for label in column)
        rows += [_row(label, tuple(column.get(label, NOTHING) for column in columns)) for label in labels]
    return rows


def _row(label: str, values: tuple[str, ...]) -> ComparedRow:
    return ComparedRow(label=label, values=values, differs=len(set(values)) > 1)


def _stated_figures(answer: JsonObject) -> dict[str, str]:
    return {label: in_form_words(value) for label, value, _ in stated(body_of(answer).get("job") or {})}


def _planned_figures(answer: JsonObject) -> dict[str, str]:
    body = body_of(answer)
    if answer["outcome"] != "planned":
        return {"Machines": "no plan"}
    figures = {"Machines": _machines(body)}
    for label, value, beside in glance(body):
        figures[label] = f"{value} {beside}" if label == "Done" else value
    figures["95 % of runs cost at most"] = usd(body["cost_usd"]["p95"])
    figures["95 % of runs take at most"] = duration(body["hours"]["p95"])
    observed = [phase["price_observed_at"] for phase in body["phases"] if phase.get("price_observed_at")]
    if observed:
        figures["Prices observed"] = when(min(observed, key=datetime.fromisoformat))[:10]
    return figures


def _machines(body: JsonObject) -> str:
    planned = [phase for phase in body["phases"] if not is_standby(phase)]
    return "; then ".join(f"{rented(phase)}, {place(phase)}" for phase in planned)
