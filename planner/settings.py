"""What the planner takes for granted unless the user says otherwise; every figure is echoed in the answer."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldCommitment:
    """Nodes that the user already pays for: `nodes` of `instance_type` in `region` under a kind with a term.

    Using them adds nothing to the bill but storage and egress.
    """

    provider: str
    region: str
    instance_type: str
    price_kind: str
    nodes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Discount:
    """A negotiated price for every offer that has all the properties stated; those left empty are not asked.

    Either `percent` off the list price, or `usd_per_hour` per node in its place. `family` is the beginning of an
    instance type's name up to a separator, or a glob; `region` may be a glob; `accelerator` a name or a family.
    """

    provider: str = ""
    family: str = ""
    instance_type: str = ""
    accelerator: str = ""
    price_kind: str = ""
    region: str = ""
    percent: float | None = None
    usd_per_hour: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Credit:
    """Money that a provider has granted, good for runs that are done by `expires` (None: for ever)."""

    provider: str
    usd: float
    expires: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannerSettings:
    """Assumptions of a plan, settable in the file that `GPUPLAN_SETTINGS` names.

    `goodput` is the share of wall time that trains on a long run (restarts, evaluation,
    checkpoints): published runs sit 20-40 % below benchmark throughput (Llama 2/3, OPT, BLOOM
    reports). `setup_hours` is paid once per node before the first step (boot, image, data).
    `restart_hours` is lost at each preemption besides the work since the last checkpoint.
    `checkpoint_gbs` is the rate at which one node writes its share of a checkpoint.
    `default_interruptions_per_hour` stands in for an interruptible offer whose source has no rate: one
    loss per 9.0 node-hours, as in the public V100 preemption traces of Can't Be Late (NSDI 2024).
    `held` are commitments already paid for. `cost_basis` is full (amortisation and power) or
    marginal (power only) for owned machines. `checkpoints_kept` are stored while the job runs.
    `learning` is on or off: whether the user's own past runs shift and narrow the estimates. `discounts` are
    negotiated prices; `credits` lower what is paid and never change which plan is cheapest.
    """

    goodput: float = 0.8
    setup_hours: float = 0.25
    restart_hours: float = 0.25
    checkpoint_gbs: float = 1.0
    default_interruptions_per_hour: float = 0.1106
    held: tuple[HeldCommitment, ...] = ()
    cost_basis: str = "full"
    checkpoints_kept: int = 2
    learning: str = "on"
    discounts: tuple[Discount, ...] = ()
    credits: tuple[Credit, ...] = ()
