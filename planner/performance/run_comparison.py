"""Comparison of a measured run with its plan, and the `PastRun` from which corrections are learned.

    hours predicted for a share f of the job  = set-up + f x (hours of the plan - set-up)
    hours of training behind measured hours H = H - (predicted - f x hours with goodput + (n - f x expected) x loss)

Here n preemptions were counted, and each loses a restart and half a checkpoint interval. A measured throughput carries
the same information with less noise, so measured hours are used only without it.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.store.plan_store import Actual
from gpuplan.planner.model.actuals import ComparedFigure, FigureBand
from gpuplan.planner.model.plan import Plan
from gpuplan.planner.model.stated_settings import stated_settings
from gpuplan.planner.performance.learned_corrections import SIGMA_MEMORY
from gpuplan.planner.performance.past_runs import PastRun
from gpuplan.planner.performance.prediction_bands import Z80
from gpuplan.planner.workload.step_work import Work

#: 95th percentile of the standard normal, that of the plan's p95.
Z95 = 1.6449
#: Share of wall time that trains in published long runs: 0.6 to 0.8 (Llama 2/3, OPT, BLOOM reports), read as the
#: 10th to 90th percentile: (ln 0.8 - ln 0.6) / (2 x 1.2816). It affects measured hours, not a measured throughput.
GOODPUT_SIGMA = 0.11
#: Least share of the predicted training hours that remains where set-up and preemptions explain all measured hours.
LEAST_TRAINING = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The figures of a plan that a run is compared with, for the whole job.

    `hours` are the median of wall hours, around which the band lies; `training_hours` include goodput. `hours_sigma` is
    the spread of ln(hours after set-up), `log_sigma` that of the training alone without corrections. `hours_factor` and
    `memory_factor` are the corrections that the figures include. `hours_per_preemption` is 0.0 on machines that are not
    preempted.
    """

    hours: float
    setup_hours: float
    training_hours: float
    hours_sigma: float
    throughput: float
    throughput_sigma: float
    unit: str
    units_total: float
    memory_gib: float
    preemptions: float
    hours_per_preemption: float
    log_sigma: float
    hours_factor: float
    memory_factor: float

    def hours_of(self, share: float) -> float:
        """Predicted wall hours of this share of the job."""
        return self.setup_hours + share * (self.hours - self.setup_hours)


def expected_of(plan: Plan, work: Work) -> Expected:
    """The figures of a single-phase plan."""
    phase, settings = plan.phases[0], stated_settings(plan)
    setup = settings.setup_hours_of(phase)
    hours, p95 = plan.hours.median, plan.hours.p95
    learned, interval, sigma = phase.learned, phase.checkpoint_interval_hours, phase.log_sigma
    lost = 0.0 if interval is None else settings.restart_hours + interval / 2
    return Expected(
        hours=hours,
        setup_hours=setup,
        training_hours=phase.hours_with_goodput,
        hours_sigma=math.log((p95 - setup) / (hours - setup)) / Z95 if p95 > hours > setup else sigma,
        throughput=phase.throughput.value,
        throughput_sigma=sigma,
        unit=phase.throughput.unit,
        units_total=work.units_total,
        memory_gib=phase.memory_gib_per_accelerator,
        preemptions=phase.expected_preemptions,
        hours_per_preemption=lost,
        log_sigma=sigma if learned is None else learned.log_sigma_before,
        hours_factor=1.0 if learned is None else learned.hours_factor,
        memory_factor=1.0 if learned is None else learned.memory_factor,
    )


def as_document(expected: Expected) -> JsonObject:
    """The document stored with a report."""
    return asdict(expected)


def comparison(actual: Actual) -> dict[str, ComparedFigure]:
    """Every measured figure with its prediction, their ratio, and whether it lies inside the 80 % band."""
    expected = Expected(**actual.expected)
    share, setup = actual.share_done, expected.setup_hours
    spread = math.exp(Z80 * expected.hours_sigma)
    after = expected.hours_of(share) - setup
    figures = {
        "hours": _against(actual.hours, expected.hours_of(share), setup + after / spread, setup + after * spread),
        "throughput": _within(actual.throughput, expected.throughput, expected.throughput_sigma),
        "peak_memory_gib": _within(actual.peak_memory_gib, expected.memory_gib, SIGMA_MEMORY),
        "preemptions": _counts(actual.preemptions, share * expected.preemptions),
    }
    return {name: figure for name, figure in figures.items() if figure is not None}


def _within(measured: float | None, predicted: float, sigma: float) -> ComparedFigure | None:
    return _against(measured, predicted, predicted * math.exp(-Z80 * sigma), predicted * math.exp(Z80 * sigma))


def _counts(measured: int | None, mean: float) -> ComparedFigure | None:
    return _against(measured, mean, poisson_quantile(mean, 0.1), poisson_quantile(mean, 0.9))


def _against(measured: float | None, predicted: float, low: float, high: float) -> ComparedFigure | None:
    if measured is None:
        return None
    return ComparedFigure(
        measured=measured,
        predicted=_round(predicted),
        ratio=_round(measured / predicted) if predicted else None,
        band=FigureBand(low=_round(low), high=_round(high)),
        inside_band=low <= measured <= high,
    )


def poisson_quantile(mean: float, probability: float) -> int:
    """The quantile of a Poisson variable: the least count not exceeded with at least this probability.

    Above a mean of 400, the normal approximation with continuity correction, which is exact to within one.
    """
    if mean > 400:
        z = Z80 if probability > 0.5 else -Z80
        return max(0, math.ceil(mean + z * math.sqrt(mean) - 0.5))
    term = total = math.exp(-mean)
    count = 0
    while total < probability:
        count += 1
        term *= mean / count
        total += term
    return count


def counting(actuals: Sequence[Actual]) -> tuple[Actual, ...]:
    """The reports that count, given in order of time: one on a running job counts only until its plan's next report."""
    last = {actual.plan_id: number for number, actual in enumerate(actuals)}
    return tuple(
        actual for number, actual in enumerate(actuals) if not actual.running or number == last[actual.plan_id]
    )


def past_runs(actuals: Sequence[Actual]) -> tuple[PastRun, ...]:
    """The past runs behind reports, which are given in order of time."""
    runs = (_past_run(actual) for actual in counting(actuals))
    return tuple(run for run in runs if run.log_hours is not None or run.log_memory is not None)


def _past_run(actual: Actual) -> PastRun:
    """The run compared with the prediction without corrections."""
    expected = Expected(**actual.expected)
    memory = actual.peak_memory_gib
    plain_memory = expected.memory_gib / expected.memory_factor
    log_hours, training_share = _log_hours(actual, expected)
    return PastRun(
        task=actual.task,
        accelerator=actual.accelerator,
        log_hours=log_hours,
        log_memory=None if memory is None else math.log(memory / plain_memory),
        training_share=training_share,
        extra_sigma=0.0 if actual.throughput is not None else GOODPUT_SIGMA,
        log_sigma=expected.log_sigma,
    )


def _log_hours(actual: Actual, expected: Expected) -> tuple[float | None, float]:
    """(ln(measured / predicted hours of training, uncorrected), share of the measured time that is training)."""
    if actual.throughput is not None:
        return math.log(expected.throughput * expected.hours_factor / actual.throughput), 1.0
    if actual.hours is None:
        return None, 1.0
    share = actual.share_done
    training = share * expected.training_hours
    rest = expected.hours_of(share) - training
    if actual.preemptions is not None:
        rest += (actual.preemptions - share * expected.preemptions) * expected.hours_per_preemption
    rest, plain = max(0.0, rest), training / expected.hours_factor
    trained = max(actual.hours - rest, LEAST_TRAINING * plain)
    return math.log(trained / plain), plain / (plain + rest)


def _round(value: float) -> float:
    return float(f"{value:.9g}")
