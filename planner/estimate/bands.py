"""How far measured times lie from predicted ones: the standard deviation of ln(actual / predicted).

Such that hours x exp(-+1.2816 sigma) holds 80 % of runs: per class of work the 80th percentile of |ln residual| / 1.2816
over measured runs whose source was left out of the fit (`python -m benchmarks.fit`); classes without
enough runs are set wider than their relatives.
"""

import numpy as np

from planner.estimate.constants import value
from planner.estimate.machines import Floats
from planner.workload.work import Work

#: 10th and 90th percentile of the standard normal: the 80 % band.
Z80 = 1.2816


def log_sigma(work: Work, unmeasured: Floats) -> Floats:
    """Per machine row; `unmeasured` is 1 where no run of the chip's generation was measured, else 0."""
    return np.sqrt(sigma_of(work.task) ** 2 + unmeasured * value("band_sigma_unmeasured") ** 2)


def sigma_of(task: str) -> float:
    """Sigma of a class of work, and of any class that is not listed."""
    return value("band_sigma", task)
