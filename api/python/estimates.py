"""The answer of `gpuplan.estimate`, typed."""

from dataclasses import dataclass, fields

from gpuplan.api.presentation.sections import Sections
from gpuplan.api.python.cards import AnswerInSections
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.planner.model import estimate as model
from gpuplan.planner.model.wire import wire


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Estimate(AnswerInSections, model.Estimate):
    """Time and memory of a job on one configuration.

    Where the job does not fit in memory, times are those of the layout that needs least, as if it fitted. `hours` is
    steady training; `hours_with_goodput` adds restarts, evaluation and checkpoints. `mfu` is model FLOPs utilisation.
    `terms` are seconds of a step by cause.
    """

    def to_dict(self) -> JsonObject:
        """The whole answer as `gpuplan estimate --json` prints it."""
        document: JsonObject = wire(self)
        return document

    def _sections(self) -> Sections:
        from gpuplan.api.presentation.estimate import render_estimate

        return render_estimate(self)


def with_card(estimate: model.Estimate) -> Estimate:
    """The same estimate, which notebooks show as a card."""
    return Estimate(**{field.name: getattr(estimate, field.name) for field in fields(estimate)})
