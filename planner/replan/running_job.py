"""A running job: its progress, its machines, its cost so far, and its measured speed.

Corrections from a speed measured on the running job: in full on its accelerator, in part on others.

Past runs of other jobs are shrunk, since jobs differ (`performance.learned_corrections`). The rate of this very job on its
accelerator needs no shrinking: the estimate there becomes the measured rate. Other accelerators learn from it as from
any past run.
"""

import math
from dataclasses import dataclass, replace
from datetime import datetime

from gpuplan.catalog.runtime.errors import Fault, UnusableInput
from gpuplan.planner.model.job import TrainingJob
from gpuplan.planner.model.learned import AcceleratorCorrection, LearnedCorrections, Shift
from gpuplan.planner.model.replan import Measured
from gpuplan.planner.performance.learned_corrections import learned_from
from gpuplan.planner.performance.past_runs import PastRun
from gpuplan.planner.performance.run_comparison import GOODPUT_SIGMA, LEAST_TRAINING
from gpuplan.planner.workload.step_work import Work

#: A measured speed further than this from the estimate is probably a mistake; past runs have the same limit.
MOST_TIMES_OFF = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class On:
    """The machines that run the job, or ran it last. An empty `provider`, `region` or `zone` is looked up if unambiguous."""

    instance_type: str
    nodes: int
    provider: str = ""
    region: str = ""
    zone: str = ""
    price_kind: str = "on_demand"


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """Work as a share of the job's (unit `share`), or in the job's own unit (tokens, samples) or steps."""

    value: float
    unit: str = "share"


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """Units of work per second, measured while it trains; an empty unit is the job's own."""

    value: float
    unit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnderWay:
    """The state of a job at `now`.

    `on` is None for a job without machines and without work done. `up` is false if its machines are gone: then only the
    `saved` part of `done` counts (None: all of it). `up_hours` count from when the machines came up (None: from the job's
    start). `spent_usd` is sunk and reduces the budget. `rate` is a speed; otherwise `hours` are the hours of this much work
    on these machines, set-up included.
    """

    now: datetime
    done: Amount = Amount(value=0.0)
    on: On | None = None
    saved: Amount | None = None
    up: bool = True
    up_hours: float | None = None
    spent_usd: float = 0.0
    rate: Speed | None = None
    hours: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """The remaining share of the work, the job from now on, and the time passed.

    `done` is the share of work done, `saved_share` the share that need not be done again.
    """

    job: TrainingJob
    share: float
    done: float
    saved_share: float
    elapsed_hours: float
    start: datetime


def left_of(job: TrainingJob, work: Work, running: UnderWay) -> Left:
    """The rest of a job with a start. Raises `UnusableInput` with every contradiction, at fields under `running`."""
    start = job.start
    if start is None:
        raise UnusableInput.at("start", message="a time with a zone is needed: it fixes what durations count from")
    faults: list[Fault] = []
    done = _share(running.done, work, "done", faults)
    saved = done
    if running.saved is not None:
        saved = _share(running.saved, work, "saved", faults)
        if not faults and saved > done:
            faults.append(
                Fault(
                    ("running", "saved"),
                    f"{saved:.4g} of the work is more than what is done ({done:.4g}); give at most that",
                )
            )
    if not faults and done >= 1:
        faults.append(Fault(("running", "done"), "is the whole job: nothing is left to plan; give less than 1"))
    elapsed = (running.now - start).total_seconds() / 3600
    faults += _of_time_and_money(job, running, elapsed)
    if done > 0 and running.on is None and not faults:
        faults.append(
            Fault(
                ("running", "on"), "is missing: name the machines that did the work, as --on and --nodes or by --plan"
            )
        )
    if faults:
        raise UnusableInput(*faults)
    saved = done if running.up else saved
    return Left(
        job=_from_now(job, running, 1 - saved, elapsed),
        share=1 - saved,
        done=done,
        saved_share=saved,
        elapsed_hours=elapsed,
        start=start,
    )


def _of_time_and_money(job: TrainingJob, running: UnderWay, elapsed: float) -> list[Fault]:
    faults = []
    if elapsed < 0:
        message = f"{_time(running.now)} is before the job's start, {_time(job.start)}; give a later time"
        faults.append(Fault(("now",), message))
    deadline = job.deadline_hours
    if deadline is not None and 0 <= deadline <= elapsed:
        late = elapsed - deadline
        message = f"has passed: {deadline:.6g} h after the start, {late:.4g} h ago; give a later one, or leave it out"
        faults.append(Fault(("job", "deadline"), message))
    if running.spent_usd < 0:
        faults.append(
            Fault(("running", "spent_usd"), f"{running.spent_usd:g} is negative; give what was spent, 0 or more")
        )
    on = running.on
    if on is not None and on.nodes < 1:
        faults.append(Fault(("running", "on", "nodes"), f"{on.nodes} is not accepted; give a whole number from 1"))
    up = running.up_hours
    if up is not None and (up < 0 or up > elapsed + 1e-6):
        message = f"{up:g} h is not accepted; machines came up between the job's start and now: 0 to {elapsed:.6g} h"
        faults.append(Fault(("running", "up_hours"), message))
    return faults


def _share(amount: Amount, work: Work, name: str, faults: list[Fault]) -> float:
    """An amount of work as a share of all of it."""
    wholes = {"share": 1.0, work.unit: work.units_total, "steps": work.steps}
    if amount.unit not in wholes:
        accepted = "a share such as 0.4 or 40%, or " + " or ".join(whole for whole in wholes if whole != "share")
        faults.append(Fault(("running", name), f"{amount.unit!r} is not the unit of this job; give {accepted}"))
        return 0.0
    whole = wholes[amount.unit]
    share = amount.value / whole
    if not 0 <= share <= 1 + 1e-9:
        of = "" if amount.unit == "share" else f" of {whole:.6g} {amount.unit}"
        faults.append(
            Fault(
                ("running", name),
                f"{amount.value:g}{of} is not accepted; give what is done: from 0 to the whole job (1)",
            )
        )
        return 0.0
    return min(share, 1.0)


def _from_now(job: TrainingJob, running: UnderWay, share: float, elapsed: float) -> TrainingJob:
    """The rest of the job: the remaining time and money, and the share of the carbon budget of the remaining work."""
    constraints = job.constraints
    if running.on is not None:
        cap = constraints.carbon_budget_kg
        constraints = replace(
            constraints,
            # A replan is a question about changing machines.
            max_phases=max(2, constraints.max_phases),
            carbon_budget_kg=None if cap is None else cap * share,
        )
    return replace(
        job,
        start=running.now,
        deadline_hours=None if job.deadline_hours is None else job.deadline_hours - elapsed,
        # A micro-dollar stands for zero: a limit must be above zero.
        budget_usd=None if job.budget_usd is None else max(job.budget_usd - running.spent_usd, 1e-6),
        constraints=constraints,
    )


def _time(moment: datetime | None) -> str:
    return "unknown" if moment is None else f"{moment:%Y-%m-%dT%H:%MZ}"


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
