"""The share of a run's wall time that trains, from failures, checkpoints and evaluation.

A run on n accelerators fails n / `accelerator_hours_per_failure` times per hour. Each failure costs a restart and the work
since the last checkpoint. With checkpoints at the best interval (Young 1974), these and the stops to write them cost
sqrt(2 x stop x failures per hour) of the training time. Evaluation takes a constant share.
"""

import numpy as np

from gpuplan.planner.performance.estimator_request import Floats
from gpuplan.planner.performance.fitted_constants import value


def modelled_goodput(accelerators: Floats) -> Floats:
    """The goodput of runs on so many accelerators, between 0 and 1."""
    failures_per_hour = accelerators / value("accelerator_hours_per_failure")
    lost = np.sqrt(2.0 * value("checkpoint_stop_hours") * failures_per_hour)
    lost = lost + failures_per_hour * value("failure_restart_hours")
    return np.asarray((1.0 - value("evaluation_share")) / (1.0 + lost))


def goodput_of(stated: float | None, accelerators: Floats) -> Floats:
    """`stated` for every run, or the modelled goodput where the user states none."""
    return modelled_goodput(accelerators) if stated is None else np.full(len(accelerators), stated)
