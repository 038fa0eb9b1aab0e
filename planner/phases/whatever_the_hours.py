"""What no plan of several phases can cost less than, however long it takes: it ends the search for most jobs.

A plan gives each of its configurations a share x_k of the work, the shares add up to 1, and with the lines
cost_k(x) >= A_k + B_k x of `planner.phases.lines` and the data to be brought, e_k, it costs at least

    sum_k A_k + sum_k B_k x_k + max_k e_k  >=  min_k (A_k + B_k + e_k) + what the other phases cost to start

over its configurations, as the work costs no less than on the one of least B. Where no deadline keeps the cheapest
configuration out, that is about what one phase costs, and a second only adds to it. No hours are asked for, so that the
lines for them are not needed.

Interruptible work of w <= W hours takes E[T] >= r w - (r - r_0) min(tau, W) wall hours: all the work takes r W of them,
from the first checkpoint interval tau on any takes r w, and none takes less than r_0 w. That least is
e^(lambda R) / (1 - y) with l = lambda d and -ln(1 - y) = y + l; as the series of the logarithm lies below
y + y^2 / (2 (1 - y)), y >= sqrt(l (l + 2)) - l, and so 1 / (1 - y) >= 1 + l + sqrt(l (l + 2)), which is asked here.
Bills count the hours expected of an uncertain estimate, a factor on both sides.
"""

import numpy as np
from numpy.typing import NDArray

from planner.cost.expected_billing import mean_factor
from planner.phases.lines import Lined, usd_by_the_hour

Floats = NDArray[np.float64]


def least_usd(some: Lined, phases: int) -> float:
    """What plans of two to so many phases on these configurations, at least one, cost at least, in USD."""
    run, setup_hours = some.run, some.run.setup_hours(some.found.question.settings)
    per_hour, once = usd_by_the_hour(run)
    start_usd = per_hour * (setup_hours - _spared_hours(some)) + once
    whole_usd = start_usd + per_hour * some.table.bill.run_hours + run.egress_usd
    least = float(start_usd.min())
    # By lines that lie far below short shares a start may cost less than nothing, and so may each further one.
    return float(whole_usd.min()) + least * (phases - 1 if least < 0 else 1)


def _spared_hours(some: Lined) -> Floats:
    """(r - r_0) min(tau, W) of each configuration, expected; 0 without preemption."""
    run, spared = some.run, np.zeros(len(some))
    hit = np.flatnonzero((run.cluster_rate > 0) & (run.work_hours > 0))
    work, rate, write = run.work_hours[hit], run.cluster_rate[hit], run.checkpoint_hours[hit]
    lost = rate * write
    restarts = np.exp(rate * some.found.question.settings.restart_hours)
    least = restarts * (1.0 + lost + np.sqrt(lost * (lost + 2.0)))
    # The bill's hours are those expected: so is the work that they are held against.
    expected_work = work * mean_factor(run.log_sigma[hit])
    beyond = np.maximum(some.table.bill.run_hours[hit] - least * expected_work, 0.0)
    spared[hit] = beyond * np.minimum(np.sqrt(2 * write / rate) / work, 1.0)
    return spared
