"""The inputs of the cost and hours of runs, one element per configuration."""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TakeOver:
    """What a running job changes for its first machines from now; one element per configuration.

    Machines that run the job already have been billed for `up_hours` so far, 0 on other machines. On those, `fetch_usd` is
    the egress of the checkpoint, `lead_usd` the cost of the current machines while they write it, and `delay_hours` the
    unpaid wall hours before the new machines can start.
    """

    up_hours: Floats
    fetch_usd: Floats
    lead_usd: Floats
    delay_hours: Floats

    def only(self, which: NDArray[np.int64]) -> "TakeOver":
        """The elements at these indices."""
        return TakeOver(**{field.name: getattr(self, field.name)[which] for field in fields(TakeOver)})

    def take(self, which: NDArray[np.int64], first: NDArray[np.bool_]) -> "TakeOver":
        """The elements at these indices; costs and delay of the transfer apply only to phases that are `first` in a plan."""
        return TakeOver(
            up_hours=self.up_hours[which],
            fetch_usd=np.where(first, self.fetch_usd[which], 0.0),
            lead_usd=np.where(first, self.lead_usd[which], 0.0),
            delay_hours=np.where(first, self.delay_hours[which], 0.0),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Run:
    """The inputs of cost and time, one element per configuration.

    `setup_hours` come before the first step, 0 on machines that run the job already. `work_hours` is the estimated
    (median) training time at the stated goodput; `cluster_rate` counts preemptions per hour of all nodes together, each
    followed by `wait_hours` without machines; `checkpoint_hours` is the time to write one checkpoint; `longest_hours` is the
    longest run that the price kind allows (inf: any). `beside_hours` are paid in addition to set-up and work: the time of a
    phase to hand over to the next. Money is in USD. `takeover` is None for a job that has not started.
    """

    nodes: Floats
    setup_hours: Floats
    work_hours: Floats
    beside_hours: Floats
    log_sigma: Floats
    cluster_rate: Floats
    wait_hours: Floats
    checkpoint_hours: Floats
    usd_per_node_hour: Floats
    power_usd_per_node_hour: Floats
    egress_usd: Floats
    storage_usd_per_hour: Floats
    billing_step_hours: Floats
    billing_minimum_hours: Floats
    term_hours: Floats
    longest_hours: Floats
    takeover: TakeOver | None = None

    def __len__(self) -> int:
        """The number of configurations."""
        return len(self.nodes)

    def take(self, which: NDArray[np.int64]) -> "Run":
        """The configurations at these indices."""
        arrays = {name: getattr(self, name).take(which) for name in RUN_ARRAYS}
        return Run(**arrays, takeover=None if self.takeover is None else self.takeover.only(which))


#: The fields of a run that have one element per configuration.
RUN_ARRAYS = tuple(field.name for field in fields(Run) if field.name != "takeover")
