"""The planner's assumptions, which the user can change; every answer repeats them."""

from dataclasses import dataclass
from datetime import datetime

from gpuplan.planner.model.quota import Quota

#: At which prices plans are made: expected on the day of the start, or as observed.
PRICES = ("expected", "as-observed")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExistingCommitment:
    """Nodes that the user already pays for: `nodes` of `instance_type` in `region` under a committed price kind.

    Using them costs only storage and egress.
    """

    provider: str
    region: str
    instance_type: str
    price_kind: str
    nodes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExistingSpendCommitment:
    """A commitment to spend `usd_per_hour` that the user already pays for, used or not (a savings plan).

    It covers machines of the provider at their rates under `price_kind`; where `region` and `family` (the part of an
    instance type's name before the point) are stated, only those.
    """

    provider: str
    price_kind: str
    usd_per_hour: float
    region: str = ""
    family: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Discount:
    """A negotiated price for every offer that has all the stated properties; an empty property matches every offer.

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
    """Money that a provider has granted, valid for runs that end by `expires` (None: no end date)."""

    provider: str
    usd: float
    expires: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannerSettings:
    """Assumptions of a plan, settable in the file that `GPUPLAN_SETTINGS` names.

    `goodput` is the share of wall time that trains (the rest is failures, checkpoints and evaluation); None models it
    from the number of accelerators (`gpuplan.planner.performance.goodput`). `setup_hours` is paid once per node before
    the first step (boot, image, start); None models it from the provider, the kind of machine and the number of nodes
    (`gpuplan.planner.candidates.setup_hours`). `restart_hours` is lost at each preemption in addition to the work since the
    last checkpoint. `spot_wait_hours` is the unpaid wait for a replacement of a preempted machine; None takes the typical
    one of public traces for the accelerator's age, the zones of the region that sell it, and the nodes
    (`gpuplan.catalog.model.spot_waits`). n nodes are preempted n^`node_loss_exponent` times as often as one: 1 if
    independently, 0 if all together; the default is that of the traces. `checkpoint_gbs` is the rate at which one node writes its share of a
    checkpoint. `default_interruptions_per_hour` applies to interruptible offers whose source has no rate: one loss per
    9.0 node-hours, as in the public V100 preemption traces of Can't Be Late (NSDI 2024). `move_gbs` is the rate of
    copying a checkpoint to another region: 5 Gbit/s, the AWS limit for traffic of an instance of any size out of its
    region (EC2 user guide, instance network bandwidth). A move to another configuration is planned only where it saves
    more than `least_saving_of_a_move_percent` of the cost without it. `held` and `held_spend` are commitments already
    paid for. `cost_basis` is full (amortisation and power) or marginal (power only) for owned machines.
    `checkpoints_kept` are stored while the job runs. `learning` is on or off: whether the user's own past runs shift
    and narrow the estimates. `discounts` are negotiated prices; `credits` lower what is paid and never change which
    plan is cheapest. `prices` is expected or as-observed: whether a price of some age is planned at its expected value on
    the day of the start (`gpuplan.planner.cost.planned_prices`) or as it was observed. `quotas` limit how many nodes of
    an offer may be rented at once.
    """

    goodput: float | None = None
    setup_hours: float | None = None
    restart_hours: float = 0.25
    spot_wait_hours: float | None = None
    node_loss_exponent: float = 0.357
    checkpoint_gbs: float = 1.0
    default_interruptions_per_hour: float = 0.1106
    move_gbs: float = 0.625
    least_saving_of_a_move_percent: float = 5.0
    held: tuple[ExistingCommitment, ...] = ()
    held_spend: tuple[ExistingSpendCommitment, ...] = ()
    cost_basis: str = "full"
    checkpoints_kept: int = 2
    learning: str = "on"
    discounts: tuple[Discount, ...] = ()
    credits: tuple[Credit, ...] = ()
    prices: str = "expected"
    quotas: tuple[Quota, ...] = ()
