"""The answers of `gpuplan.plan`: the planner's typed answers with a card for notebooks."""

from copy import deepcopy
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from gpuplan.api.python.cards import card
from gpuplan.api.python.texts import short_text, whole_text
from gpuplan.api.schemas.answers import read_answer
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.planner.model import plan as model
from gpuplan.planner.model.plan import InfeasibleAnswer, PlannedAnswer


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Plan(model.Plan):
    """The cheapest way to run a job, proven over one snapshot of prices.

    A notebook shows it as a card with the chart of cost against time; `print` shows the short text of `gpuplan plan`.
    """

    outcome: Literal["planned"] = "planned"
    _answer: JsonObject = field(compare=False)
    _meta: model.PlanMeta = field(compare=False)

    def to_dict(self) -> JsonObject:
        """The whole answer as `gpuplan plan --json` prints it."""
        return deepcopy(self._answer)

    def details(self) -> str:
        """The whole answer as text: proof, layouts, every alternative, assumptions and warnings."""
        from gpuplan.api.presentation.plan import render_answer

        return whole_text(render_answer(self._answer))

    def __repr__(self) -> str:
        return _short(PlannedAnswer(outcome=self.outcome, plan=self, meta=self._meta), self.id)

    __str__ = __repr__

    def _repr_html_(self) -> str:
        """The card that Jupyter shows."""
        from gpuplan.api.presentation.plan_charts import frontier_figure
        from gpuplan.api.presentation.short import short_answer

        sections = short_answer(PlannedAnswer(outcome=self.outcome, plan=self, meta=self._meta))
        return card(sections, figure=frontier_figure(self._answer["plan"], None), footer=_footer(self.id))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Infeasible(model.Infeasible):
    """Why no configuration will do, and the cheapest ways out. An answer, not an error."""

    outcome: Literal["infeasible"] = "infeasible"
    _answer: JsonObject = field(compare=False)
    _meta: model.PlanMeta = field(compare=False)

    def to_dict(self) -> JsonObject:
        """The whole answer as `gpuplan plan --json` prints it."""
        return deepcopy(self._answer)

    def details(self) -> str:
        """The whole answer as text: every conflict, every way out, and what was rejected why."""
        from gpuplan.api.presentation.plan import render_answer

        return whole_text(render_answer(self._answer))

    def __repr__(self) -> str:
        return _short(InfeasibleAnswer(outcome=self.outcome, infeasible=self, meta=self._meta), self.id)

    __str__ = __repr__

    def _repr_html_(self) -> str:
        """The card that Jupyter shows."""
        from gpuplan.api.presentation.short import short_answer

        return card(
            short_answer(InfeasibleAnswer(outcome=self.outcome, infeasible=self, meta=self._meta)),
            footer=_footer(self.id),
        )


def plan_answer(document: JsonObject) -> Plan | Infeasible:
    """The typed answer in a document of `plan`. Raises `UnusableInput` for one of another release."""
    read = read_answer(document)
    if isinstance(read, PlannedAnswer):
        return Plan(**_values(read.plan), _answer=document, _meta=read.meta)
    return Infeasible(**_values(read.infeasible), _answer=document, _meta=read.meta)


def _values(part: model.Plan | model.Infeasible) -> dict[str, Any]:
    return {field.name: getattr(part, field.name) for field in fields(part)}


def _short(answer: PlannedAnswer | InfeasibleAnswer, answer_id: str) -> str:
    from gpuplan.api.presentation.short import short_answer

    return short_text(short_answer(answer), rest=_footer(answer_id))


def _footer(answer_id: str) -> str:
    return f"{answer_id}; all of it: .details() or .to_dict()"
