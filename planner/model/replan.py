"""The answer of `replan`: what to do with a job that runs, from now on.

Cost, hours and probabilities are those from `now` on, and shares are of the remaining work.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.planner.model.plan import Alternative, Certificate, Credits, NearestPlan, PlanLimit, Relaxation
from gpuplan.planner.model.shared import (
    MAY_BE_ABSENT,
    RENAMED,
    Breakdown,
    Configuration,
    ContingencyStandby,
    Cost,
    Figure,
    Hours,
    Learned,
    Machines,
    Meta,
    Moment,
    Phase,
    Usd,
)

#: What to do: `standby` is to continue with machines standing by, `restart` the same offer again after its machines are gone.
type Action = Literal[
    "continue", "standby", "move_later", "add_nodes", "shed_nodes", "move", "restart", "start", "none"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A measured speed beside the estimate."""

    factor: float
    """Actual over estimated time of the work."""
    rate: float
    """As measured, in `unit`: of work per second, or hours so far."""
    predicted: float
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """The state of the job as it was understood."""

    on: Machines | None
    up: bool
    done: float
    kept: float
    """Of the work, what is saved."""
    elapsed_hours: float
    spent_usd: Usd
    measured: Measured | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What is left of work, time and money."""

    share: float
    deadline_hours: float | None
    budget_usd: Usd | None
    """Negative if more was spent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoingOn(Configuration):
    """The job to its end on the machines that run it."""

    possible: bool
    breaks: tuple[str, ...]
    breakdown: Breakdown
    finishes_at: Moment
    deadline_probability: float | None
    throughput: Figure
    carbon_kg: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FromNow:
    """A plan, all of whose figures count from now."""

    cost_usd: Cost
    hours: Hours
    finishes_at: Moment
    deadline_probability: float | None
    carbon_kg: float | None
    phases: tuple[Phase, ...]
    fallback: ContingencyStandby | None = field(default=None, metadata=MAY_BE_ABSENT)
    certificate: Certificate
    alternatives: tuple[Alternative, ...]
    credits: Credits | None = field(default=None, metadata=MAY_BE_ABSENT)
    run_limit: PlanLimit | None = field(default=None, metadata=MAY_BE_ABSENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The best less going on: negative is saved."""

    usd: Usd
    breakdown: Breakdown
    hours: float
    hours_confident: float
    deadline_probability: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StaysOptimal:
    """Up to which price and slowdown going on stays the best; null where nothing else would ever be better."""

    usd_per_node_hour: Usd | None
    times_slower: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RelaxationFromNow(Relaxation):
    """A relaxation of what is left; `in_all` states it for the whole job, whose limits count from its start."""

    in_all: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NoneLeft:
    """Why no plan from now on meets all requirements."""

    conflicts: tuple[tuple[str, ...], ...]
    searched_nodes: int
    nearest_plan: NearestPlan | None
    offers_considered: int
    rejected: dict[str, int]
    relaxations: tuple[RelaxationFromNow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replan:
    """A job under way, planned anew."""

    __pydantic_config__: ClassVar[Mapping[str, object]] = RENAMED

    id: str
    job: JsonObject
    snapshot_id: str
    version: str
    settings: JsonObject
    learned: Learned | None = field(default=None, metadata=MAY_BE_ABSENT)
    currency: Literal["USD"]
    start: Moment
    now: Moment
    running: Running
    left: Left
    summary: tuple[str, ...]
    action: Action
    continue_: GoingOn | None
    best: FromNow | None
    difference: Difference | None
    holds: StaysOptimal | None
    infeasible: NoneLeft | None
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplanAnswer:
    """What to do from now on."""

    outcome: Literal["replanned", "infeasible"]
    replan: Replan
    meta: Meta
