"""What is said of a job that is under way: going on as it is beside the best there is from now."""

from dataclasses import dataclass

from planner.answer import Choice, Infeasible, Planned
from planner.job import TrainingJob
from planner.phases.course import Course
from planner.replan.under_way import Left, UnderWay


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A measured speed: `factor` is how many times longer the work takes than estimated.

    `rate` and `predicted` are what was measured and estimated, in `unit` (of work per second, or hours so far).
    """

    factor: float
    rate: float
    predicted: float
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GoingOn:
    """The job as it runs, to its end: what it costs and takes from now, and the requirements that it `breaks`."""

    course: Course
    breaks: tuple[str, ...]

    @property
    def possible(self) -> bool:
        """Whether it keeps all that the job asks for."""
        return not self.breaks


@dataclass(frozen=True, slots=True, kw_only=True)
class Holds:
    """How far going on stays the best: up to a price per node-hour in micro-dollars, and while no more than so much slower.

    None where nothing there is would ever be better. All other prices and speeds stay as they are.
    """

    price: int | None
    slower: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Replanned:
    """The answer for a job under way.

    `action` is continue, standby (continue, with machines standing by), move_later, add_nodes, shed_nodes, move (to other
    machines, now), restart (the same offer again, whose machines are gone), start (nothing was done) or none. `going_on` is None where the machines are gone or there are none.
    `best` is planned from now, its hours and cost too; `leads` is its first phase that is more than a moment of going on.
    """

    job: TrainingJob
    running: UnderWay
    left: Left
    machines: Choice | None
    going_on: GoingOn | None
    best: Planned | Infeasible
    action: str
    leads: int
    holds: Holds | None
    measured: Measured | None
    assumptions: tuple[str, ...]
