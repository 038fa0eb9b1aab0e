"""The least cost with perfect foresight of all availability: a dynamic programme per run.

State: steps left, work left in steps, and either nothing running with the data at l, or place l running. Going to a place
adds its changeover to the work at once. With the future known, no start pays that does not outlast its changeover, so this
equals counting the changeover down (checked against full enumeration). Exact where changeovers and speeds are whole
steps; otherwise both are rounded in the run's favour, and the result is a lower bound.
"""

import math

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.spot_policy.run_parameters import SpotTerms

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
    # A faster place does more than one step of work: rounded up, in the run's favour.
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
                needed = at + shift[home][k]
                begun = np.where(needed < size, stays[k][:, np.minimum(needed, size - 1)], _BARRED)
                idle_now[home] = np.minimum(idle_now[home], terms.moving_usd(home, k) + begun)
        idle_now[:, :, 0] = 0.0
        for k in range(places):
            runs_at[k] = np.minimum(stays[k], idle_now[k if homes > 1 else 0])
            runs_at[k][:, 0] = 0.0
        idle = idle_now
    return np.asarray(idle[homes - 1][:, least_work])
