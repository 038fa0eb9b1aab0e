"""The answer for a running job: continuing as it is, compared with the best plan from now."""

from dataclasses import dataclass

from gpuplan.planner.model.job import TrainingJob
from gpuplan.planner.model.outcome import Choice, NoPlan, Planned
from gpuplan.planner.model.replan import Measured
from gpuplan.planner.replan.running_job import Left, UnderWay
from gpuplan.planner.strategies.schedule import Schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class GoingOn:
    """The job as it runs, to its end: cost and hours from now on, and the requirements that it `breaks`."""

    schedule: Schedule
    breaks: tuple[str, ...]

    @property
    def possible(self) -> bool:
        """Whether it meets all that the job requires."""
        return not self.breaks


@dataclass(frozen=True, slots=True, kw_only=True)
class StaysOptimal:
    """How far continuing stays optimal: up to a price per node-hour in micro-dollars, and up to a slowdown factor.

    None if nothing else would ever be better. All other prices and speeds stay as they are.
    """

    price: int | None
    slower: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Replanned:
    """The answer for a running job.

    `action` is continue, standby (continue, with machines standing by), move_later, add_nodes, shed_nodes, move (to other
    machines, now), restart (the same offer again, after its machines are gone), start (nothing was done) or none. `going_on`
    is None if the machines are gone or there are none. `best` is planned from now, and so are its hours and cost; `leads` is
    the index of its first phase that is more than a moment of continuing.
    """

    job: TrainingJob
    running: UnderWay
    left: Left
    machines: Choice | None
    going_on: GoingOn | None
    best: Planned | NoPlan
    action: str
    leads: int
    stays_optimal: StaysOptimal | None
    measured: Measured | None
    assumptions: tuple[str, ...]
