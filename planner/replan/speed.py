"""What a speed that was measured on the running job teaches: all of it here, in part elsewhere.

Past runs of other jobs are shrunk, since jobs differ (`planner.estimate.learned`). The rate of this very job on its
accelerator is no other job's: there the estimate is the measured rate at once. What other accelerators learn from it
is what they learn from any past run.
"""

import math
from dataclasses import replace

from catalog.errors import UnusableInput
from planner.actuals import GOODPUT_SIGMA, LEAST_TRAINING
from planner.estimate.learned import Correction, Learned, Shift, learned_from
from planner.past_runs import PastRun
from planner.replan.answer import Measured
from planner.replan.under_way import MOST_TIMES_OFF, Left, UnderWay
from planner.workload.work import Work


def measured(
    running: UnderWay,
    left: Left,
    work: Work,
    *,
    predicted_rate: float,
    run_hours: float,
    setup_hours: float,
) -> Measured | None:
    """What was measured against the plain estimate; None where nothing was.

    `predicted_rate` is in the job's units per second, `run_hours` what all the work is estimated to take there beside
    set-up. Raises `UnusableInput` for a speed in another unit, or ten times off.
    """
    if running.rate is not None:
        unit = running.rate.unit
        if unit not in {"", f"{work.unit}/s", "steps/s"}:
            message = f"{unit!r} is not a speed of this job; give it in {work.unit}/s or steps/s"
            raise UnusableInput.at("running", "rate", message=message)
        per_step = work.units_total / work.steps if unit == "steps/s" else 1.0
        factor = predicted_rate / (running.rate.value * per_step)
        _refuse_absurd("rate", factor)
        return Measured(
            factor=factor, rate=running.rate.value * per_step, predicted=predicted_rate, unit=f"{work.unit}/s"
        )
    if running.hours is None:
        return None
    if not left.done:
        raise UnusableInput.at("running", "hours", message="say nothing while no work is done; leave them out")
    predicted = left.done * run_hours
    factor = max(running.hours - setup_hours, LEAST_TRAINING * predicted) / predicted
    _refuse_absurd("hours", factor)
    return Measured(factor=factor, rate=running.hours, predicted=setup_hours + predicted, unit="h")


def _refuse_absurd(name: str, factor: float) -> None:
    if not 1 / MOST_TIMES_OFF <= factor <= MOST_TIMES_OFF:
        how = f"{factor:.3g} times slower" if factor > 1 else f"{1 / factor:.3g} times faster"
        message = (
            f"means {how} than estimated, more than {MOST_TIMES_OFF:g} times off; correct it, or what it is measured on"
        )
        raise UnusableInput.at("running", name, message=message)


def learned_here(
    past_runs: tuple[PastRun, ...], work: Work, accelerator: str, log_sigma: float, found: Measured | None
) -> Learned:
    """What past runs and the measured speed teach together."""
    if found is None:
        return learned_from(past_runs, work.task)
    log = math.log(found.factor)
    run = PastRun(
        task=work.task,
        accelerator=accelerator,
        log_hours=log,
        extra_sigma=GOODPUT_SIGMA if found.unit == "h" else 0.0,
        log_sigma=log_sigma,
    )
    base = learned_from((*past_runs, run), work.task)
    return replace(base, corrections=tuple(_as_measured(each, accelerator, log) for each in base.corrections))


def _as_measured(each: Correction, accelerator: str, log: float) -> Correction:
    return replace(each, hours=Shift(log=log, runs=1)) if each.accelerator == accelerator else each
