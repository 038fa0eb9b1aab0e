"""What is to be verified: an answer as it was printed, with the parts of it that the answer itself rests on."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from planner.job import TrainingJob
from planner.settings import PlannerSettings
from planner.verify.estimates import NOTHING_LEARNED, Learned

Document = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """`body` is what stands under `part` (`plan` or `infeasible`) of the answer; job, settings and what past runs
    taught are read from it.
    """

    part: str
    body: Document
    job: TrainingJob
    start: datetime
    settings: PlannerSettings
    learned: Learned = NOTHING_LEARNED

    @property
    def planned(self) -> bool:
        """Whether the answer is a plan, and not why there is none."""
        return self.part == "plan"
