"""The answer of `plan`: the cheapest way to run a job with its proof, or why there is no plan.

Field names and their order are those of the JSON object. `job` and `settings` are echoed as they were read.
"""

from dataclasses import dataclass, field
from typing import Literal

from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.planner.model.capacity_ladder import CapacityLadder
from gpuplan.planner.model.live_capacity import LiveCapacity
from gpuplan.planner.model.shared import (
    MAY_BE_ABSENT,
    PROSE,
    Configuration,
    ContingencyStandby,
    Cost,
    Hours,
    Learned,
    Meta,
    Moment,
    ObjectiveName,
    Phase,
    RelaxedRequirements,
    Usd,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective(ObjectiveName):
    """What was minimised, the value reached, and the bound that no plan can be below."""

    value: float
    bound: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Enumeration:
    """The evaluated and the excluded choices, with the proof of each exclusion, as sentences."""

    node_counts: str
    layouts: str = field(metadata=PROSE)
    left_out: str = field(metadata=PROSE)


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderProof:
    """The proof that the first choice and the order of the capacity ladder are expected to cost least."""

    objective_usd: Usd
    """What following the ladder is expected to cost."""
    bound_usd: Usd
    """No ladder of at most five choices that begins with any configuration, or with the cheapest plan that changes machines,
    and whose last one is as certain and as cheap, is expected to cost less, over all offers. Beginning with another plan that
    changes machines costs no less than the certificate's bound."""
    gap: float
    """(objective - bound) / objective."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """The proof: objective and lower bound, how many offers and configurations were compared, and what was rejected why."""

    objective_usd: Usd
    """Of the cheapest plan given that its machines are obtained: the cost of the plan, or of `cheapest_if_obtained` or
    `changing_machines` of its capacity ladder."""
    bound_usd: Usd
    gap: float
    """(objective - bound) / objective; 0: proven cheapest."""
    objective: Objective
    offers_considered: int
    configurations_considered: int
    columns: int
    rejected: dict[str, int]
    """How many offers fell out, by reason."""
    enumeration: Enumeration
    """What was evaluated, and what was left out by which proof."""
    solver: str = field(metadata=PROSE)
    over: tuple[str, ...] | None = field(default=None, metadata=MAY_BE_ABSENT | PROSE)
    """What the proof ranges over."""
    ladder: LadderProof | None = field(default=None, metadata=MAY_BE_ABSENT)
    """For jobs for the least cost with a next choice; absent from plans of older releases."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheaperStep:
    """The next later deadline, in hours, that saves money, and the saving."""

    deadline_hours: float
    saves_usd: Usd


@dataclass(frozen=True, slots=True, kw_only=True)
class FasterStep:
    """The next shorter deadline, in hours, and its extra cost."""

    deadline_hours: float
    costs_usd: Usd


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """What a little more or less of a requirement changes; null where nothing would."""

    deadline_usd_per_hour: float
    next_cheaper: CheaperStep | None
    next_faster: FasterStep | None
    holds_until_usd_per_node_hour: Usd | None
    """Up to this price the choice stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative(Configuration):
    """The best configuration of the kind that its label names, and its extra cost over the plan."""

    label: str
    extra_usd: Usd
    meets_deadline: bool
    meets_budget: bool

    @property
    def misses(self) -> str:
        """`misses the deadline and budget`; empty where both are met."""
        missed = [name for name, met in (("deadline", self.meets_deadline), ("budget", self.meets_budget)) if not met]
        return f"misses the {' and '.join(missed)}" if missed else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherFramework(Configuration):
    """The cheapest configuration for code of another framework that costs less than the plan, and the difference."""

    framework: str
    extra_usd: Usd


@dataclass(frozen=True, slots=True, kw_only=True)
class Commitment:
    """The plan's machines under a committed price kind: the whole obligation, and the hours of use to break even."""

    price_kind: str
    instance_type: str
    region: str
    nodes: int
    usd_per_node_hour: Usd
    total_obligation_usd: Usd
    break_even_hours: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeastOutOfPocket:
    """The alternative with a lower cost after credits."""

    label: str
    out_of_pocket_usd: Usd


@dataclass(frozen=True, slots=True, kw_only=True)
class Credits:
    """The amount that credits cover, the amount left to pay, and the alternative with less to pay, if any."""

    applied_usd: Usd
    out_of_pocket_usd: Usd
    least_out_of_pocket: LeastOutOfPocket | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanLimit:
    """The highest cost of a plan whose machines are stopped at the run limit of exports."""

    cost_usd: Usd


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The cheapest way to run a job, proven over one snapshot of prices."""

    id: str
    """A hash of all the rest of the plan."""
    job: JsonObject
    """The job as it was understood."""
    snapshot_id: str
    version: str
    settings: JsonObject
    learned: Learned | None = field(default=None, metadata=MAY_BE_ABSENT)
    start: Moment
    currency: Literal["USD"]
    cost_usd: Cost
    hours: Hours
    finishes_at: Moment
    deadline_probability: float | None
    """Null without a deadline."""
    carbon_kg: float | None
    """Null where a grid or a power is unknown."""
    phases: tuple[Phase, ...]
    fallback: ContingencyStandby | None = field(default=None, metadata=MAY_BE_ABSENT)
    capacity_ladder: CapacityLadder | None = field(default=None, metadata=MAY_BE_ABSENT)
    """What to try if the machines are not obtained; the certificate covers the plan given that they are."""
    live_capacity: LiveCapacity | None = field(default=None, metadata=MAY_BE_ABSENT)
    """What the clouds answered about machines; absent where none was asked."""
    certificate: Certificate
    sensitivity: Sensitivity
    alternatives: tuple[Alternative, ...]
    other_framework: OtherFramework | None = field(default=None, metadata=MAY_BE_ABSENT)
    """Cheaper machines that need code for another framework."""
    commitments: tuple[Commitment, ...]
    frontier: tuple[Configuration, ...] | None = field(default=None, metadata=MAY_BE_ABSENT)
    """Where asked for: every choice of cost against time that no other beats in both."""
    credits: Credits | None = field(default=None, metadata=MAY_BE_ABSENT)
    assumptions: tuple[str, ...] = field(metadata=PROSE)
    doubts: tuple[str, ...] | None = field(default=None, metadata=MAY_BE_ABSENT | PROSE)
    """The largest doubts about the hours of the phase that does most of the work, each with what settles it."""
    warnings: tuple[str, ...] = field(metadata=PROSE)
    actions: tuple[str, ...] | None = field(default=None, metadata=MAY_BE_ABSENT | PROSE)
    """What has to be done before the start."""
    run_limit: PlanLimit | None = field(default=None, metadata=MAY_BE_ABSENT)
    inventory: str | None = field(default=None, metadata=MAY_BE_ABSENT)
    """A hash of the user's own machines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Relaxation(RelaxedRequirements):
    """The least change that makes the job possible, and the plan that it allows."""

    cost_usd: Usd
    plan: Configuration


@dataclass(frozen=True, slots=True, kw_only=True)
class NearestPlan(Configuration):
    """The configuration that breaks the fewest requirements, and those requirements."""

    breaks: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Infeasible:
    """Why no configuration meets the requirements: minimal sets of conflicts, and the least relaxations."""

    id: str
    job: JsonObject
    snapshot_id: str
    version: str
    settings: JsonObject
    learned: Learned | None = field(default=None, metadata=MAY_BE_ABSENT)
    start: Moment
    conflicts: tuple[tuple[str, ...], ...]
    """Sets of requirements that cannot be met together, each as small as can be."""
    searched_nodes: int
    """Conflicts and relaxations are those of runs on up to so many nodes."""
    relaxations: tuple[Relaxation, ...]
    nearest_plan: NearestPlan | None
    offers_considered: int
    rejected: dict[str, int]
    warnings: tuple[str, ...] = field(metadata=PROSE)
    inventory: str | None = field(default=None, metadata=MAY_BE_ABSENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanMeta(Meta):
    """What changes by the clock, of a plan."""

    solver_milliseconds: float | None
    source: str | None = field(default=None, metadata=MAY_BE_ABSENT)
    """The configuration of another tool that the job was read from, with its SHA-256."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedAnswer:
    """There is a plan."""

    outcome: Literal["planned"]
    plan: Plan
    meta: PlanMeta

    @property
    def body(self) -> Plan:
        """The plan."""
        return self.plan


@dataclass(frozen=True, slots=True, kw_only=True)
class InfeasibleAnswer:
    """No plan meets all requirements: an answer, not an error."""

    outcome: Literal["infeasible"]
    infeasible: Infeasible
    meta: PlanMeta

    @property
    def body(self) -> Infeasible:
        """Why there is no plan."""
        return self.infeasible


type PlanAnswer = PlannedAnswer | InfeasibleAnswer
