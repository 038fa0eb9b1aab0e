"""How often a cluster of an offer is preempted, and how long its machines are away, from the stated settings.

n nodes are preempted n^k times as often as one, with k = `node_loss_exponent`. Where the settings state no wait, it is that
of the table of waits for the zones that sell the offer and the age of its accelerator, times n^(the node exponent of that age).

Hours of set-up before the first step of work on an offer: those of the settings, else from the table of set-up times.

A node boots, pulls its image and starts the program; n nodes wait ln(n) times the row `slowest` for the last of them. A row
of a kind of machine (the user's own, a TPU slice, a booked block) comes before one of the provider, and that before the row
of all others.
"""

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.model.capacity_prior import CURRENT, NEWEST, OLD, capacity_prior
from gpuplan.catalog.model.setup_times import setup_times
from gpuplan.catalog.model.spot_waits import spot_waits
from gpuplan.planner.model.settings import PlannerSettings
from gpuplan.planner.verify.offer_groups import OfferGroup

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def setup_hours(offer_group: OfferGroup, nodes: Ints, settings: PlannerSettings) -> Floats:
    """Paid hours before the first step on so many nodes of an offer."""
    if settings.setup_hours is not None:
        return np.full(len(nodes), settings.setup_hours)
    kind, type_, rows = offer_group.kind, offer_group.machine.type, setup_times()
    machine = kind.name
    if kind.owned:
        machine = "owned"
    elif accelerators()[type_.accelerator].stack == "xla":
        machine = "tpu_slice"
    minutes = 0.0
    for part in ("boot", "image", "start"):
        keys = ((part, "", machine), (part, type_.provider, ""), (part, "", ""))
        minutes += next(rows[key].minutes for key in keys if key in rows)
    return np.asarray((minutes + rows["slowest", "", ""].minutes * np.log(nodes.astype(np.float64))) / 60.0)


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
