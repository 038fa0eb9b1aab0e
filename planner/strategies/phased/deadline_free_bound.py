"""A lower bound on the cost of two phases that ignores the deadline: it ends the search for most jobs.

A plan gives both of its configurations a share x_k of the work. The shares add up to 1. With the linear bounds
cost_k(x) >= A_k + B_k x of `linear_bounds` and the data egress e_k, the plan costs at least

    sum_k A_k + sum_k B_k x_k + max_k e_k  >=  min_k (A_k + B_k + e_k) + the start of the other phase

over its configurations, since the work costs no less than on the one of least B. Where no deadline excludes the cheapest
configuration, that is about the cost of one phase, and a second phase only adds to it. The bound needs no hours.

Interruptible work of w <= W hours takes E[T] >= r w - (r - r_0) min(tau, W) wall hours: all the work takes r W of them,
from the first checkpoint interval tau on any takes r w, and none takes less than r_0 w. That least is
e^(lambda R) / (1 - y) with l = lambda d and -ln(1 - y) = y + l. As the series of the logarithm lies below
y + y^2 / (2 (1 - y)), y >= sqrt(l (l + 2)) - l, and so 1 / (1 - y) >= 1 + l + sqrt(l (l + 2)), which this module uses.
Costs count the expected hours of an uncertain estimate, a factor on both sides.
"""

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.cost.billing_rounding import mean_factor
from gpuplan.planner.strategies.phased.linear_bounds import Lined, usd_by_the_hour

Floats = NDArray[np.float64]


def least_usd(some: Lined) -> float:
    """A lower bound in USD on any plan of two phases on these configurations, of which there is at least one."""
    run, setup_hours = some.run, some.run.setup_hours
    per_hour, once_usd = usd_by_the_hour(run)
    start_usd = per_hour * (setup_hours - _spared_hours(some)) + once_usd
    whole_usd = start_usd + per_hour * some.table.cost_breakdown.run_hours + run.egress_usd
    return float(whole_usd.min()) + float(start_usd.min())


def _spared_hours(some: Lined) -> Floats:
    """(r - r_0) min(tau, W) of each configuration, expected; 0 without preemption."""
    run, spared = some.run, np.zeros(len(some))
    hit = np.flatnonzero((run.cluster_rate > 0) & (run.work_hours > 0))
    work, rate, write = run.work_hours[hit], run.cluster_rate[hit], run.checkpoint_hours[hit]
    lost = rate * write
    restarts = np.exp(rate * some.candidates.question.settings.restart_hours)
    least = restarts * (1.0 + lost + np.sqrt(lost * (lost + 2.0)))
    # The cost breakdown has expected hours, so it is compared with expected work.
    expected_work = work * mean_factor(run.log_sigma[hit])
    beyond = np.maximum(some.table.cost_breakdown.run_hours[hit] - least * expected_work, 0.0)
    spared[hit] = beyond * np.minimum(np.sqrt(2 * write / rate) / work, 1.0)
    return spared
