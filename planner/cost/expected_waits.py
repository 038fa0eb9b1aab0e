"""The expectation of hours on the clock of machines that are free at times only: busy hours and the waits between windows.

Waits jump where a run just misses the end of a window, so the mean is taken over `RUNS` equally likely errors of the
estimate, each the middle of its share of the probability. Runs for which windows never leave time enough are left out:
whoever plans refuses a run of which the expected hours, or those of 19 of 20, never end.
"""

from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from planner.cost.expected_billing import mean_factor

Floats = NDArray[np.float64]

#: So many that the expected end is told to 0.4 % of the longest wait.
RUNS = 128
_Z = np.array([NormalDist().inv_cdf((number + 0.5) / RUNS) for number in range(RUNS)])


def equally_likely(certain_hours: Floats, mean_hours: Floats, log_sigma: Floats) -> Floats:
    """Busy hours of equally likely runs, [RUNS, ...]: certain ones and lognormal ones of this mean and sigma."""
    factor = np.exp(np.multiply.outer(_Z, log_sigma))
    return np.asarray(certain_hours + mean_hours / mean_factor(log_sigma) * factor)


def mean_wait(elapsed_hours: Floats, busy_hours: Floats) -> float:
    """Hours that runs pass beside their busy ones on average: one element per run, inf where one never ends."""
    ends = np.isfinite(elapsed_hours)
    return float(np.mean(elapsed_hours[ends] - busy_hours[ends])) if ends.any() else float("inf")
