"""The answer of `POST /v1/plans`: a plan, or why there is none."""

from typing import Literal, NotRequired, TypedDict

from gpuplan_client.answers.parts import (
    Configuration,
    ExpectedCost,
    Figure,
    Hours,
    JsonObject,
    Layout,
    Learned,
    Machines,
    Meta,
    Moment,
    Objective,
    Place,
    PlanCost,
    Usd,
)


class LearnedFactors(TypedDict):
    """What past runs changed about an estimate."""

    hours_factor: float
    memory_factor: float
    log_sigma_before: float


Moved = TypedDict(
    "Moved",
    {"from": Place, "checkpoint_gb": float, "data_gb": float, "egress_usd": Usd},
)


class RunLimit(TypedDict):
    """When an export stops a phase whatever happens, in hours from its start, and what the phase costs by then."""

    hours: int
    cost_usd: Usd


class RunLimitCost(TypedDict):
    """What the phases cost together if each runs to its limit."""

    cost_usd: Usd


class Phase(Machines):
    """One stretch of a plan: what runs, where, at which price, how fast, and its part of the work and the cost."""

    role: Literal["planned", "standby"]
    """A standby is taken only if a run on interruptible machines falls behind."""
    starts_at: Moment
    share: float
    """Of the job's work; the planned phases sum to 1."""
    cost_usd: ExpectedCost
    moved: Moved | None
    """What is brought from the machines of the phase before."""
    probability: NotRequired[float]
    """Of being used; of standbys."""
    switch_by: NotRequired[Moment]
    """The latest moment to switch to a standby."""
    switch_by_hours: NotRequired[float]
    switch_share: NotRequired[float]
    price_observed_at: Moment
    price_observed_approximately: bool
    price_source: str
    hours: float
    training_hours: float
    hours_with_goodput: float
    precision: str
    layout: Layout
    throughput: Figure
    mfu: float
    """(6 N_active + causal 6 L h s) x tokens per second / dense peak of the precision."""
    memory_gib_per_accelerator: float
    capacity_gib_per_accelerator: float
    log_sigma: float
    """Standard deviation of the logarithm of the hours."""
    interruptions_per_node_hour: float
    checkpoint_interval_hours: float | None
    expected_preemptions: float
    modelled: list[str]
    """Which figures of the offer are modelled and not observed."""
    learned: NotRequired[LearnedFactors]
    """What past runs changed about the estimate."""
    run_limit: RunLimit


class Fallback(Machines):
    """Where a run on interruptible machines goes if it falls behind."""

    hours_with_goodput: float
    ready_hours: float
    switch_by: Moment
    switch_by_hours: float
    switch_share: float
    probability: float
    deadline_probability: float
    extra_usd: Usd


class Enumeration(TypedDict):
    """The sets of choices that a plan was chosen from, in a sentence each."""

    node_counts: str
    layouts: str
    left_out: str


class Certificate(TypedDict):
    """Why nothing is cheaper: the value that was reached and the bound that the solver proves."""

    objective_usd: Usd
    bound_usd: Usd
    gap: float
    """0: proven cheapest."""
    objective: Objective
    offers_considered: int
    configurations_considered: int
    columns: int
    rejected: dict[str, int]
    """How many offers fell out, by reason."""
    enumeration: Enumeration
    """What was evaluated, and what was left out by which proof."""
    solver: str
    over: NotRequired[list[str]]
    """What the proof ranges over."""


class NextCheaper(TypedDict):
    """The next deadline at which the job is cheaper."""

    deadline_hours: float
    saves_usd: Usd


class NextFaster(TypedDict):
    """The next shorter time that can be bought."""

    deadline_hours: float
    costs_usd: Usd


class Sensitivity(TypedDict):
    """What a change of the deadline or of the price would do."""

    deadline_usd_per_hour: float
    next_cheaper: NextCheaper | None
    next_faster: NextFaster | None
    holds_until_usd_per_node_hour: Usd | None
    """Up to this price the choice stays."""


class Alternative(Configuration):
    """Another choice with what it costs more."""

    label: str
    extra_usd: Usd
    meets_deadline: bool
    meets_budget: bool


class Commitment(TypedDict):
    """The plan's machines under a commitment, with all that one would owe."""

    price_kind: str
    instance_type: str
    region: str
    nodes: int
    usd_per_node_hour: Usd
    total_obligation_usd: Usd
    break_even_hours: float | None


class LeastOutOfPocket(TypedDict):
    """The alternative that leaves less to pay once credits are used up."""

    label: str
    out_of_pocket_usd: Usd


class Credits(TypedDict):
    """What credits pay, and what is left."""

    applied_usd: Usd
    out_of_pocket_usd: Usd
    least_out_of_pocket: LeastOutOfPocket | None


class Plan(TypedDict):
    """The cheapest way to run a job, with its proof."""

    id: str
    """A hash of all the rest of the plan."""
    job: JsonObject
    """The job as it was understood."""
    snapshot_id: str
    version: str
    settings: JsonObject
    learned: NotRequired[Learned]
    start: Moment
    currency: Literal["USD"]
    cost_usd: PlanCost
    hours: Hours
    finishes_at: Moment
    run_limit: RunLimitCost
    deadline_probability: float | None
    """Null without a deadline."""
    carbon_kg: float | None
    """Null where a grid or a power is unknown."""
    phases: list[Phase]
    fallback: NotRequired[Fallback]
    certificate: Certificate
    sensitivity: Sensitivity
    alternatives: list[Alternative]
    commitments: list[Commitment]
    frontier: NotRequired[list[Configuration]]
    """Where asked for: every choice of cost against time that no other beats in both."""
    credits: NotRequired[Credits]
    assumptions: list[str]
    warnings: list[str]
    inventory: NotRequired[str]
    """A hash of the user's own machines."""


Relaxation = TypedDict(
    "Relaxation",
    {"requirement": str, "from": str, "to": str, "cost_usd": Usd, "plan": Configuration},
)


class NearestPlan(Configuration):
    """What comes nearest, and what it breaks."""

    breaks: list[str]


class Infeasible(TypedDict):
    """Why no plan meets all requirements, and the ways out."""

    id: str
    job: JsonObject
    snapshot_id: str
    version: str
    settings: JsonObject
    learned: NotRequired[Learned]
    start: Moment
    conflicts: list[list[str]]
    """Sets of requirements that cannot be met together, each as small as can be."""
    searched_nodes: int
    """Conflicts and relaxations are told of runs on up to so many nodes."""
    relaxations: list[Relaxation]
    nearest_plan: NearestPlan | None
    offers_considered: int
    rejected: dict[str, int]
    warnings: list[str]
    inventory: NotRequired[str]


class Planned(TypedDict):
    """There is a plan."""

    outcome: Literal["planned"]
    plan: Plan
    meta: Meta


class Unplanned(TypedDict):
    """No plan meets all requirements: an answer, not an error."""

    outcome: Literal["infeasible"]
    infeasible: Infeasible
    meta: Meta


type PlanAnswer = Planned | Unplanned
