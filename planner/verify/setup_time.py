"""Hours of set-up before the first step of work on an offer: those of the settings, else from the table of set-up times.

A node boots, pulls its image and starts the program; n nodes wait ln(n) times the row `slowest` for the last of them. A row
of a kind of machine (the user's own, a TPU slice, a booked block) comes before one of the provider, and that before the row
of all others.
"""

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.model.setup_times import setup_times
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
