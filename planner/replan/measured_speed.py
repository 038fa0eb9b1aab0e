"""Corrections from a speed measured on the running job: in full on its accelerator, in part on others.

Past runs of other jobs are shrunk, since jobs differ (`performance.learned_corrections`). The rate of this very job on its
accelerator needs no shrinking: the estimate there becomes the measured rate. Other accelerators learn from it as from
any past run.
"""

import math
from dataclasses import replace

from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.learned import AcceleratorCorrection, LearnedCorrections, Shift
from gpuplan.planner.model.replan import Measured
from gpuplan.planner.performance.learned_corrections import learned_from
from gpuplan.planner.performance.past_runs import PastRun
from gpuplan.planner.performance.run_comparison import GOODPUT_SIGMA, LEAST_TRAINING
from gpuplan.planner.replan.running_job import MOST_TIMES_OFF, Left, UnderWay
from gpuplan.planner.workload.step_work import Work


def measured(
    running: UnderWay,
    left: Left,
    work: Work,
    *,
    predicted_rate: float,
    run_hours: float,
    setup_hours: float,
) -> Measured | None:
    """The measurement relative to the plain estimate; None without a measurement.

    `predicted_rate` is in the job's units per second; `run_hours` is the estimate for all the work there, without set-up.
    Raises `UnusableInput` for a speed in another unit, or one that is more than ten times off.
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
        raise UnusableInput.at("running", "hours", message="is given although no work is done; leave it out")
    predicted = left.done * run_hours
    factor = max(running.hours - setup_hours, LEAST_TRAINING * predicted) / predicted
    _refuse_absurd("hours", factor)
    return Measured(factor=factor, rate=running.hours, predicted=setup_hours + predicted, unit="h")


def _refuse_absurd(name: str, factor: float) -> None:
    if not 1 / MOST_TIMES_OFF <= factor <= MOST_TIMES_OFF:
        how = f"{factor:.3g} times slower" if factor > 1 else f"{1 / factor:.3g} times faster"
        message = f"means {how} than estimated, more than {MOST_TIMES_OFF:g} times off; correct it, or the machines it was measured on"
        raise UnusableInput.at("running", name, message=message)


def learned_on_this_machine(
    past_runs: tuple[PastRun, ...], work: Work, accelerator: str, log_sigma: float, measured: Measured | None
) -> LearnedCorrections:
    """Corrections from past runs and the measured speed together."""
    if measured is None:
        return learned_from(past_runs, work.task)
    log = math.log(measured.factor)
    run = PastRun(
        task=work.task,
        accelerator=accelerator,
        log_hours=log,
        extra_sigma=GOODPUT_SIGMA if measured.unit == "h" else 0.0,
        log_sigma=log_sigma,
    )
    base = learned_from((*past_runs, run), work.task)
    return replace(
        base, corrections=tuple(_as_measured(correction, accelerator, log) for correction in base.corrections)
    )


def _as_measured(correction: AcceleratorCorrection, accelerator: str, log: float) -> AcceleratorCorrection:
    return replace(correction, hours=Shift(log=log, runs=1)) if correction.accelerator == accelerator else correction
