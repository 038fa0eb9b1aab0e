"""The plan or infeasible answer under verification."""

from dataclasses import dataclass
from datetime import datetime

from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.planner.model.job import TrainingJob
from gpuplan.planner.model.settings import PlannerSettings
from gpuplan.planner.verify.estimator_port import NOTHING_LEARNED, LearnedCorrections


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmittedPlan:
    """`body` is the part (`plan` or `infeasible`) of the answer that job, settings and corrections are read from."""

    part: str
    body: JsonObject
    job: TrainingJob
    start: datetime
    settings: PlannerSettings
    learned: LearnedCorrections = NOTHING_LEARNED

    @property
    def planned(self) -> bool:
        """Whether the answer is a plan rather than infeasible."""
        return self.part == "plan"
