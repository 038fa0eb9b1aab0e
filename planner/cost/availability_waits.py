"""Expected wall hours on machines with availability windows: busy hours plus the waits between windows.

Waits jump where a run just misses the end of a window, so the mean is taken over `RUNS` equally likely errors of the
estimate, each at the middle of its share of the probability. Runs that no window is long enough for are left out of the
mean: the planner refuses a run if its expected hours, or those of 19 of 20 runs, never end.
"""

from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.cost.billing_rounding import mean_factor

Floats = NDArray[np.float64]

#: Number of sampled errors: the expected end is exact to 0.4 % of the longest wait.
RUNS = 128
_Z = np.array([NormalDist().inv_cdf((number + 0.5) / RUNS) for number in range(RUNS)])


def equally_likely(certain_hours: Floats, mean_hours: Floats, log_sigma: Floats) -> Floats:
    """Busy hours of equally likely runs, [RUNS, ...]: certain hours plus lognormal hours of this mean and sigma."""
    factor = np.exp(np.multiply.outer(_Z, log_sigma))
    return np.asarray(certain_hours + mean_hours / mean_factor(log_sigma) * factor)


def mean_wait(elapsed_hours: Floats, busy_hours: Floats) -> float:
    """Mean hours that runs wait in addition to their busy hours; one element per run, inf if none ends."""
    ends = np.isfinite(elapsed_hours)
    return float(np.mean(elapsed_hours[ends] - busy_hours[ends])) if ends.any() else float("inf")
