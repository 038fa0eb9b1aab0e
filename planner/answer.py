"""What a plan says, as objects: money in micro-dollars, time in hours, nothing rendered yet."""

from dataclasses import dataclass, field
from datetime import datetime

from catalog.offer import InstanceType, Offer
from planner.estimate.learned import NO_CORRECTION, NOTHING, Correction, Learned
from planner.job import TrainingJob
from planner.optimise.single import Certificate
from planner.settings import PlannerSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Expected cost by part, and what half and 95 % of runs stay within, in micro-dollars. The parts sum to `expected`."""

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
class Hours:
    """From start to finish: expected, which is the mean, and not exceeded by half of the runs, with the asked confidence, and
    with 95 %.
    """

    expected: float
    median: float
    confident: float
    p95: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One configuration in the words of the catalogue, with its cost and time.

    `accelerators_per_node` is a fraction of a card as a decimal where a node has less than one.
    """

    offer: Offer
    instance_type: InstanceType
    accelerator: str
    accelerators_per_node: float
    nodes: int
    cost: Cost
    hours: Hours

    @property
    def machines(self) -> str:
        """What is ordered, as `ordered` says it."""
        return ordered(self.instance_type.name, self.nodes, self.instance_type.fixed_nodes)


def ordered(instance_type: str, nodes: int, slice_hosts: int | None) -> str:
    """`4 x p5.48xlarge`; hosts of a slice as the one thing that they are: `tpu-v6e-128 (one slice, 32 hosts)`."""
    if (slice_hosts or 1) == 1:
        return f"{nodes:,} x {instance_type}"
    slices = nodes // (slice_hosts or 1)
    return f"{instance_type} ({'one slice' if slices == 1 else f'{slices:,} slices'}, {nodes:,} hosts)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """How a phase comes by the work of the one before: from where, GB of checkpoint and of data brought, micro-dollars."""

    origin: Offer
    checkpoint_gb: float
    data_gb: float
    egress: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """A choice while it runs: layout, throughput, memory, and what keeps it safe on interruptible machines.

    `choice` has the cost and the hours of this phase alone, moves and waits before it included; its machines start
    `begins_hours` after the plan does, and it does `share` of the work. `role` is planned, or standby for machines that
    are taken only with `probability`, at the latest `switch_by_hours` after the start if less than `switch_share` of the
    work is saved by then. `market` numbers where its machines come from.
    `log_sigma` and `interruptions_per_hour` (of one node) are what the spread of the finish rests on.
    `correction` is what past runs have put into hours, rates, memory and `log_sigma`.
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
    checkpoint_interval_hours: float | None
    expected_preemptions: float
    carbon_kg: float | None
    correction: Correction = NO_CORRECTION
    share: float = 1.0
    begins_hours: float = 0.0
    moved: Moved | None = None
    role: str = "planned"
    probability: float | None = None
    switch_by_hours: float | None = None
    switch_share: float | None = None
    market: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fallback:
    """Where a run on interruptible machines would go if it fell behind: to `standby` at the latest by a moment.

    The standby is called once the hours left are no more than `ready_hours` (an interval between checkpoints and the
    changeover) and its own hours for the work not saved: `switch_by_hours` after the start, if less than `switch_share` is
    saved. `probability` is that of having to, `extra` what that adds on average, in micro-dollars, and `in_time` the
    chance to be in time with it.
    """

    standby: Phase
    ready_hours: float
    switch_by_hours: float
    switch_share: float
    probability: float
    in_time: float
    extra: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """Another configuration under a label (`best on gcp`, `fastest`, ...), compared with the plan."""

    label: str
    choice: Choice
    extra: int
    meets_deadline: bool
    meets_budget: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Commitment:
    """The plan's machine under a kind with a term: never a price of this job, an obligation of its own.

    `obligation` is the whole term in micro-dollars; `break_even_hours` the hours of use in the term (None: never)
    from which on it is cheaper than paying as it runs.
    """

    offer: Offer
    nodes: int
    obligation: int
    break_even_hours: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """What a little more or less of a requirement changes; None where nothing would.

    `deadline_usd_per_hour` is the dual of the deadline row; `next_cheaper` the least later deadline
    that saves, and what; `next_faster` the next shorter time and what it costs more; `holds_until`
    the price per node-hour in micro-dollars up to which the plan stays cheapest.
    """

    deadline_usd_per_hour: float
    next_cheaper: tuple[float, int] | None
    next_faster: tuple[float, int] | None
    holds_until: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What the choice was made from, and what the solver proved about it."""

    certificate: Certificate
    offers_considered: int
    configurations_considered: int
    rejected: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """The cheapest way to run a job, proven over one snapshot."""

    job: TrainingJob
    snapshot_id: str
    start: datetime
    settings: PlannerSettings
    phases: tuple[Phase, ...]
    cost: Cost
    hours: Hours
    deadline_probability: float | None
    proof: Proof
    sensitivity: Sensitivity
    alternatives: tuple[Alternative, ...]
    commitments: tuple[Commitment, ...]
    frontier: tuple[Choice, ...] | None
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]
    learned: Learned = NOTHING
    fallback: Fallback | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Relaxation:
    """The least change that makes the job possible, of one requirement or of several together, and the plan it allows.

    `asked` and `needed` have one element per requirement. `carbon_kg` is that of the plan, None where unknown.
    """

    requirements: tuple[str, ...]
    asked: tuple[str, ...]
    needed: tuple[str, ...]
    choice: Choice
    carbon_kg: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Infeasible:
    """Why no configuration will do: the minimal sets of requirements that conflict, and the least ways out.

    `conflicts` holds the job itself (`workload`) where nothing in the snapshot can hold or run it. All of it is told of
    runs on up to `searched_nodes` nodes: on more of them another configuration may meet what is in conflict here.
    """

    job: TrainingJob
    snapshot_id: str
    start: datetime
    settings: PlannerSettings
    conflicts: tuple[tuple[str, ...], ...]
    relaxations: tuple[Relaxation, ...]
    nearest: Choice | None
    nearest_breaks: tuple[str, ...]
    offers_considered: int
    rejected: dict[str, int]
    searched_nodes: int
    warnings: tuple[str, ...] = field(default=())
    learned: Learned = NOTHING
