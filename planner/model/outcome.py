"""What the planner finds: offers, exact micro-dollars and unrounded hours. `gpuplan.planner.model.plan` is the answer made of it."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from gpuplan.catalog.model.capacity_answers import CapacityAnswer, CapacityAnswers
from gpuplan.catalog.model.offer import InstanceType, Offer
from gpuplan.planner.model.certificate import SolverCertificate
from gpuplan.planner.model.job import TrainingJob
from gpuplan.planner.model.learned import NO_CORRECTION, NOTHING, AcceleratorCorrection, LearnedCorrections
from gpuplan.planner.model.settings import PlannerSettings
from gpuplan.planner.model.shared import Hours


@dataclass(frozen=True, slots=True, kw_only=True)
class CostMicros:
    """Expected cost by part, and the median and 95 % quantile, in micro-dollars. The parts sum to `expected`."""

    compute: int
    storage: int
    egress: int
    power: int
    setup: int
    median: int
    p95: int

    @property
    def expected(self) -> int:
        """The sum of the parts."""
        return self.compute + self.storage + self.egress + self.power + self.setup


@dataclass(frozen=True, slots=True, kw_only=True)
class CostSpread:
    """USD of a configuration over the hours of its runs, at the expected price: at the median and the 95 % hours.

    Of it, storage costs `storage_usd_per_hour`, and `one_off_usd` does not depend on the hours; the rest are machines.
    `sigma` is the spread of ln(hours after set-up), `paid_sigma` that of the paid ones among them.
    """

    usd_median: float
    usd_p95: float
    one_off_usd: float
    storage_usd_per_hour: float
    hours_median: float
    hours_p95: float
    sigma: float
    paid_sigma: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One configuration in the words of the catalogue, with its cost and time.

    `accelerators_per_node` is a decimal fraction if a node has less than one card. The quantiles of `cost` are those of the
    hours at the expected price; `spread`, None for a price as observed, is what `gpuplan.planner.cost.cost_quantiles` adds
    the spread of the price to.
    """

    offer: Offer
    instance_type: InstanceType
    accelerator: str
    accelerators_per_node: float
    nodes: int
    cost: CostMicros
    hours: Hours
    spread: CostSpread | None = None

    @property
    def machines(self) -> str:
        """The order in words, as `ordered` formats it."""
        return ordered(self.instance_type.name, self.nodes, self.instance_type.fixed_nodes)


def ordered(instance_type: str, nodes: int, slice_hosts: int | None) -> str:
    """`4 x p5.48xlarge`; hosts of a slice together: `tpu-v6e-128 (one slice, 32 hosts)`."""
    if (slice_hosts or 1) == 1:
        return f"{nodes:,} x {instance_type}"
    slices = nodes // (slice_hosts or 1)
    return f"{instance_type} ({'one slice' if slices == 1 else f'{slices:,} slices'}, {nodes:,} hosts)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """The transfer to a phase from the one before: source, GB of checkpoint and of data, and micro-dollars."""

    origin: Offer
    checkpoint_gb: float
    data_gb: float
    egress: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseChoice:
    """A choice with its layout, throughput, memory, and protection against interruption.

    `choice` has the cost and the hours of this phase alone, moves and waits before it included; its machines start
    `begins_hours` after the plan does, and it does `share` of the work. `role` is planned, or standby for machines that
    run only with `probability`, at the latest `switch_by_hours` after the start if less than `switch_share` of the work
    is saved by then. `market` is the number of the market of its machines. `log_sigma`, `interruptions_per_hour` (of
    one node) and `wait_hours` (after a preemption; None if there is none) determine the spread of the finish time. `correction` is the correction from past runs in hours, rates,
    memory and `log_sigma`.
    """

    choice: Choice
    precision: str
    precision_substituted: bool
    layout: dict[str, int | str]
    throughput: float
    unit: str
    mfu: float
    memory_gib: float
    capacity_gib: float
    training_hours: float
    hours_with_goodput: float
    log_sigma: float
    interruptions_per_hour: float
    wait_hours: float | None
    setup_hours: float
    checkpoint_interval_hours: float | None
    expected_preemptions: float
    carbon_kg: float | None
    correction: AcceleratorCorrection = NO_CORRECTION
    share: float = 1.0
    begins_hours: float = 0.0
    moved: Moved | None = None
    role: Literal["planned", "standby"] = "planned"
    probability: float | None = None
    switch_by_hours: float | None = None
    switch_share: float | None = None
    market: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StandbyChoice:
    """The standby of a run on interruptible machines that very probably meets its deadline by itself.

    The standby takes over once the hours left are no more than `ready_hours` (a checkpoint interval and the changeover)
    plus its hours for the work not saved: `switch_by_hours` after the start, if less than `switch_share` is saved.
    `probability` is the probability of that, `extra` the expected extra cost in micro-dollars, and `in_time` the
    probability of meeting the deadline with the standby.
    """

    standby: PhaseChoice
    ready_hours: float
    switch_by_hours: float
    switch_share: float
    probability: float
    in_time: float
    extra: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderStep:
    """A next choice of a capacity ladder, tried `after_minutes` if nothing before it was obtained.

    `chance` is that of the choice by itself, with an 80 % band; `chance_when_tried` is given that all before were refused.
    `answer` is the cloud's, if the chance comes from one.
    """

    choice: Choice
    after_minutes: float
    chance: float
    chance_band: tuple[float, float]
    chance_when_tried: float
    answer: CapacityAnswer | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangingPlan:
    """A plan of two phases or with a standby that is cheapest if obtained, but does not come first on the ladder.

    `chance` is that of its first machines, with an 80 % band.
    """

    phases: tuple[PhaseChoice, ...]
    cost: CostMicros
    hours: Hours
    deadline_probability: float | None
    chance: float
    chance_band: tuple[float, float]
    answer: CapacityAnswer | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedLadder:
    """What to try next if the plan's machines are not obtained, and what following it is expected to come to.

    `chance` is that of the plan's own machines, the first choice, by the cloud's `answer` if there is one. `cost` is in micro-dollars; `value` and `bound` are in the
    unit of the job's objective: for cost the bound is over all ladders with one of the same last choices, else over those
    that also begin with the plan. `nothing_obtained` is the
    probability that no choice was obtained in its first try. `last_start_hours` after the job's start the
    last choice is asked for at the latest; None without a deadline, and for the least time. `cheapest` is the configuration
    of least cost if obtained, where the ladder of least expected cost begins with another one; the plan is then on that.
    `changing_machines` is the same where that is a plan of several phases. `considered` choices were solved over; `shapes` are the
    provider, region, instance type, price kind and nodes of those that are not certain.
    """

    try_minutes: float
    chance: float
    chance_band: tuple[float, float]
    steps: tuple[LadderStep, ...]
    cost: int
    value: float
    bound: float
    nothing_obtained: float
    considered: int
    last_start_hours: float | None = None
    cheapest: LadderStep | None = None
    changing_machines: ChangingPlan | None = None
    answer: CapacityAnswer | None = None
    shapes: tuple[tuple[str, str, str, str, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledChoice:
    """Another configuration under a label (`best on gcp`, `fastest`, ...), compared with the plan."""

    label: str
    choice: Choice
    extra: int
    meets_deadline: bool
    meets_budget: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameworkChoice:
    """A configuration for code of another framework, and its cost minus that of the plan, micro-dollars."""

    framework: str
    choice: Choice
    extra: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitmentOffer:
    """The plan's machine under a committed price kind: an obligation of its own, not a price of this job.

    `obligation` is the cost of the whole term in micro-dollars. From `break_even_hours` of use in the term (None:
    never) the commitment is cheaper than the plan's price.
    """

    offer: Offer
    nodes: int
    obligation: int
    break_even_hours: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SensitivityRanges:
    """The effect of small changes of a requirement or price; None where there is no effect.

    `deadline_usd_per_hour` is the dual of the deadline row. `next_cheaper` is the next later deadline that saves money,
    and the saving; `next_faster` the next shorter time, and its extra cost. `holds_until` is the price per node-hour in
    micro-dollars up to which the plan stays optimal.
    """

    deadline_usd_per_hour: float
    next_cheaper: tuple[float, int] | None
    next_faster: tuple[float, int] | None
    holds_until: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """The numbers of compared and rejected offers, and the solver's proof."""

    certificate: SolverCertificate
    offers_considered: int
    configurations_considered: int
    rejected: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """The best way to run a job, proven over one snapshot; `capacity` are the clouds' answers, None if not asked.

    For jobs for the least cost the machines of the plan are the first choice of the ladder of least expected cost; the
    proof is that of the cheapest plan if obtained, as a rule the same.
    """

    job: TrainingJob
    snapshot_id: str
    start: datetime
    settings: PlannerSettings
    phases: tuple[PhaseChoice, ...]
    cost: CostMicros
    hours: Hours
    deadline_probability: float | None
    proof: Proof
    sensitivity: SensitivityRanges
    alternatives: tuple[LabelledChoice, ...]
    commitments: tuple[CommitmentOffer, ...]
    frontier: tuple[Choice, ...] | None
    assumptions: tuple[str, ...]
    doubts: tuple[str, ...]
    warnings: tuple[str, ...]
    actions: tuple[str, ...]
    learned: LearnedCorrections = NOTHING
    fallback: StandbyChoice | None = None
    other_framework: FrameworkChoice | None = None
    ladder: PlannedLadder | None = None
    capacity: CapacityAnswers | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeastChange:
    """The least change of one or several requirements that makes the job possible, and the resulting plan.

    `asked` and `needed` have one element per requirement. `carbon_kg` is the plan's carbon, None if unknown.
    """

    requirements: tuple[str, ...]
    asked: tuple[str, ...]
    needed: tuple[str, ...]
    choice: Choice
    carbon_kg: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NoPlan:
    """Why no configuration meets the requirements: minimal sets of conflicting requirements, and the least relaxations.

    `conflicts` names the job itself (`workload`) if no machine of the snapshot can run it. Everything applies to runs
    on up to `searched_nodes` nodes; with more nodes another configuration may meet the requirements.
    """

    job: TrainingJob
    snapshot_id: str
    start: datetime
    settings: PlannerSettings
    conflicts: tuple[tuple[str, ...], ...]
    relaxations: tuple[LeastChange, ...]
    nearest: Choice | None
    nearest_breaks: tuple[str, ...]
    offers_considered: int
    rejected: dict[str, int]
    searched_nodes: int
    warnings: tuple[str, ...] = field(default=())
    learned: LearnedCorrections = NOTHING
