"""The least cost that anybody could have had who knew all availability beforehand: a dynamic programme per run.

State: steps left, work left in steps, and nothing running with the data at l, or place l running. Going to a place
adds its changeover to the work at once: with the future known no start is worth making that does not outlive its
changeover, so this equals counting the changeover off (checked against the full enumeration). Exact where
changeovers and speeds are whole steps; else both are taken in the run's favour, and it is a lower bound.
"""

import math

import numpy as np
from numpy.typing import NDArray

from planner.spot.terms import SpotTerms

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

_BARRED = 1e15


def omniscient_usd(terms: SpotTerms, up: Flags) -> Floats:
    """Least USD per run for availability `up` [runs, steps, zones]; checkpoints are free and nothing is lost."""
    runs, steps, zones = up.shape
    places, step = zones + 1, terms.step_hours
    shift = [[math.floor(terms.moving_hours(i, j) / step + 1e-9) for j in range(places)] for i in range(places)]
    least_work = max(math.floor(terms.work_hours / step + 1e-9), 1)
    size = least_work + max(max(row) for row in shift) + 1
    usd = [*(place.usd_per_hour * step for place in terms.places), terms.on_demand_usd_per_hour * step]
    # A faster place does more than a step of work: rounded up, in the run's favour.
    does = [*(math.ceil(place.speed - 1e-9) for place in terms.places), 1]
    homes = 1 if terms.moves_free else places
    horizon = min(steps, math.ceil(terms.deadline_hours / step - 1e-9))
    idle = np.full((homes, runs, size), _BARRED)
    idle[:, :, 0] = 0.0
    runs_at = np.full((places, runs, size), _BARRED)
    runs_at[:, :, 0] = 0.0
    at = np.arange(size)
    everyone = np.ones((runs, 1), np.bool_)
    for t in range(horizon - 1, -1, -1):
        usable = np.hstack((up[:, t], everyone))
        idle_now = idle.copy()
        stays = np.empty_like(runs_at)
        for k in range(places):
            stays[k] = usd[k] + runs_at[k][:, np.maximum(at - does[k], 0)]
            stays[k][~usable[:, k]] = _BARRED
            for home in range(homes):
                more = at + shift[home][k]
                begun = np.where(more < size, stays[k][:, np.minimum(more, size - 1)], _BARRED)
                idle_now[home] = np.minimum(idle_now[home], terms.moving_usd(home, k) + begun)
        idle_now[:, :, 0] = 0.0
        for k in range(places):
            runs_at[k] = np.minimum(stays[k], idle_now[k if homes > 1 else 0])
            runs_at[k][:, 0] = 0.0
        idle = idle_now
    return np.asarray(idle[homes - 1][:, least_work])
