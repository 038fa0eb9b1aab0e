"""The answer of `gpuplan.why`."""

from gpuplan.api.presentation.sections import Sections
from gpuplan.api.python.cards import AnswerInSections
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.planner.model.explanation import WhyAnswer
from gpuplan.planner.model.wire import wire


class Explanation(AnswerInSections):
    """Why the plan of a job is what it is, or why there is none. A notebook shows it as a card, `print` as text."""

    __slots__ = ("_answer",)

    def __init__(self, answer: WhyAnswer) -> None:
        self._answer = answer

    @property
    def is_feasible(self) -> bool:
        """Whether the job has a plan."""
        return self._answer.outcome == "explained"

    @property
    def summary(self) -> tuple[str, ...]:
        """The explanation in sentences."""
        return self._answer.why.summary

    @property
    def why(self) -> JsonObject:
        """Every part of the explanation: `plan`, `about`, `requirements`, `steps`, `frontier` and more."""
        why: JsonObject = wire(self._answer.why)
        return why

    def to_dict(self) -> JsonObject:
        """The whole answer as `gpuplan why --json` prints it."""
        document: JsonObject = wire(self._answer)
        return document

    def _sections(self) -> Sections:
        from gpuplan.api.presentation.explanation import render_why

        return render_why(self._answer)
