"""How often a cluster of an offer is preempted, and how long its machines are away, from the stated settings.

n nodes are preempted n^k times as often as one, with k = `node_loss_exponent`. Where the settings state no wait, it is that
of the table of waits for the zones that sell the offer and the age of its accelerator, times n^(the node exponent of that age).
"""

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.model.capacity_prior import CURRENT, NEWEST, OLD, capacity_prior
from gpuplan.catalog.model.spot_waits import spot_waits
from gpuplan.planner.model.settings import PlannerSettings
from gpuplan.planner.verify.offer_groups import OfferGroup

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def cluster_rate(offer_group: OfferGroup, nodes: Ints, settings: PlannerSettings) -> Floats:
    """Preemptions per hour of so many nodes together; 0 where nobody takes them away."""
    return np.asarray(offer_group.rate * nodes.astype(np.float64) ** settings.node_loss_exponent)


def wait_hours(offer_group: OfferGroup, nodes: Ints, settings: PlannerSettings, year: int) -> Floats:
    """Unpaid hours without machines after a preemption of so many nodes, for a start in `year`."""
    if not offer_group.kind.interruptible:
        return np.zeros(len(nodes))
    if settings.spot_wait_hours is not None:
        return np.full(len(nodes), settings.spot_wait_hours)
    prior, table = capacity_prior(), spot_waits()
    old = year - accelerators()[offer_group.machine.type.accelerator].year
    age = NEWEST if old <= prior.newest_years else CURRENT if old < prior.old_years else OLD
    mean = table.mean_hours[min(offer_group.zones, len(table.mean_hours)) - 1]
    return np.asarray(table.typical_share * mean * table.class_factor[age] * nodes ** table.wait_node_exponent[age])
