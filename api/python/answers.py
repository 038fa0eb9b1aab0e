"""The answers of `gpuplan.plan`: the planner's typed answers with a card for notebooks."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from gpuplan.api.presentation.charts.drawing import Figure
from gpuplan.api.presentation.sections import Sections
from gpuplan.api.python.cards import card
from gpuplan.api.python.texts import short_text, whole_text
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.planner.model import plan as model
from gpuplan.planner.model.plan import InfeasibleAnswer, PlanAnswer, PlannedAnswer
from gpuplan.planner.model.wire import wire


class _Answer:
    """The texts of an answer of `plan`, and its JSON."""

    __slots__ = ()
    _answer: Any

    def to_dict(self) -> JsonObject:
        """The whole answer as `gpuplan plan --json` prints it."""
        document: JsonObject = wire(self._answer)
        return document

    def details(self) -> str:
        """The whole answer as text: proof or conflicts, every alternative or way out, assumptions and warnings."""
        from gpuplan.api.presentation.plan import render_answer

        return whole_text(render_answer(self._answer))

    def __repr__(self) -> str:
        return short_text(self._sections(), rest=self._footer())

    def _repr_html_(self) -> str:
        """The card that Jupyter shows."""
        return card(self._sections(), figure=self._figure(), footer=self._footer())

    def _sections(self) -> Sections:
        from gpuplan.api.presentation.short import short_answer

        return short_answer(self._answer)

    def _figure(self) -> Figure | None:
        return None

    def _footer(self) -> str:
        return f"{self._answer.body.id}; all of it: .details() or .to_dict()"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Plan(_Answer, model.Plan):
    """The cheapest way to run a job, proven over one snapshot of prices.

    A notebook shows it as a card with the chart of cost against time; `print` shows the short text of `gpuplan plan`.
    """

    outcome: Literal["planned"] = "planned"
    _answer: PlannedAnswer = field(compare=False)

    def _figure(self) -> Figure | None:
        from gpuplan.api.presentation.plan_charts import frontier_figure

        return frontier_figure(self._answer.plan, None)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Infeasible(_Answer, model.Infeasible):
    """Why no configuration will do, and the cheapest ways out. An answer, not an error."""

    outcome: Literal["infeasible"] = "infeasible"
    _answer: InfeasibleAnswer = field(compare=False)


def plan_answer(answer: PlanAnswer) -> Plan | Infeasible:
    """The answer of `plan` with its card and texts."""
    if isinstance(answer, PlannedAnswer):
        return _extended(Plan, answer.plan, answer)
    return _extended(Infeasible, answer.infeasible, answer)


def _extended[Answer](kind: Callable[..., Answer], part: model.Plan | model.Infeasible, answer: PlanAnswer) -> Answer:
    """The answer with the fields of `part`, which `kind` extends."""
    return kind(**{field.name: getattr(part, field.name) for field in fields(part)}, _answer=answer)
