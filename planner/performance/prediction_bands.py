"""Prediction error of step times: the standard deviation of ln(actual / predicted).

hours x exp(-+1.2816 sigma) contains 80 % of runs. Per class of work, sigma is the 80th percentile of
|ln residual| / 1.2816 over measured runs whose source was left out of the fit (`python -m tools.fitting.fit`). Classes
with too few runs get a wider band than related classes.

Work whose amount was measured on other machines follows by the ratio of two predictions. The band of such a ratio is fitted to
pairs of runs of the same work on different machines (`tools/fitting/run_pairs.py`): what they have in common cancels out, but
both runs vary. A class with too few such pairs has the band of its hours.
"""

import numpy as np

from gpuplan.planner.performance.estimator_request import Floats
from gpuplan.planner.performance.fitted_constants import is_listed, value
from gpuplan.planner.workload.step_work import Work

#: 10th and 90th percentile of the standard normal: the 80 % band.
Z80 = 1.2816


def log_sigma(work: Work, unmeasured: Floats) -> Floats:
    """Sigma per machine row; `unmeasured` is 1 where no run of the chip's generation was measured, else 0."""
    sigma = ratio_sigma_of(work.task) if work.amount_is_measured else sigma_of(work.task)
    return np.sqrt(sigma**2 + work.modelled_sigma**2 + unmeasured * value("band_sigma_unmeasured") ** 2)


def sigma_of(task: str) -> float:
    """Sigma of a class of work; that of the default row for unlisted classes."""
    return value("band_sigma", task)


def ratio_sigma_of(task: str) -> float:
    """Sigma of a ratio between two runs of a class of work; that of its hours for classes with too few such pairs."""
    return value("ratio_sigma", task) if is_listed("ratio_sigma", task) else sigma_of(task)
