"""What a run of a plan measured, held against what the plan said of it, and what that teaches.

    hours predicted for a share f of the job  = set-up + f x (hours of the plan - set-up)
    hours of training behind measured hours H = H - (predicted - f x hours with goodput + (n - f x expected) x loss)

where n preemptions were counted and each loses a restart and half a checkpoint interval. A measured throughput says
the same with less noise, so hours teach only where it is missing.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from catalog.actuals import Actual
from planner.estimate.bands import Z80
from planner.estimate.learned import SIGMA_MEMORY
from planner.past_runs import PastRun
from planner.workload.work import Work

Document = dict[str, Any]

#: 95th percentile of the standard normal, as the plan's p95 has it.
Z95 = 1.6449
#: Share of wall time that trains in published long runs: 0.6 to 0.8 (Llama 2/3, OPT, BLOOM reports), read as the
#: 10th to 90th percentile: (ln 0.8 - ln 0.6) / (2 x 1.2816). Measured hours carry it, a measured throughput does not.
GOODPUT_SIGMA = 0.11
#: Measured hours that set-up and preemptions explain alone leave at least this share of the predicted training.
LEAST_TRAINING = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What a plan says that a run of it can be held against; for the whole job, wall hours with everything in.

    `hours` are the median, around which the band lies.

    `training_hours` include goodput. `hours_sigma` is the spread of ln(hours after set-up), `log_sigma` that of the
    training alone before anything was learned. The factors are what had been learned by then and is in the figures.
    `hours_per_preemption` is 0.0 on machines that nobody takes back.
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


def expected_of(plan: Document, work: Work) -> Expected:
    """What a plan document says of the run of its one phase."""
    phase, setup = plan["phases"][0], float(plan["settings"]["setup_hours"])
    # Plans of releases that had no median called it expected.
    hours, p95 = float(plan["hours"].get("median", plan["hours"]["expected"])), float(plan["hours"]["p95"])
    learned = phase.get("learned", {})
    interval = phase["checkpoint_interval_hours"]
    lost = 0.0 if interval is None else float(plan["settings"]["restart_hours"]) + float(interval) / 2
    sigma = float(phase["log_sigma"])
    return Expected(
        hours=hours,
        setup_hours=setup,
        training_hours=float(phase["hours_with_goodput"]),
        hours_sigma=math.log((p95 - setup) / (hours - setup)) / Z95 if p95 > hours > setup else sigma,
        throughput=float(phase["throughput"]["value"]),
        throughput_sigma=sigma,
        unit=str(phase["throughput"]["unit"]),
        units_total=work.units_total,
        memory_gib=float(phase["memory_gib_per_accelerator"]),
        preemptions=float(phase["expected_preemptions"]),
        hours_per_preemption=lost,
        log_sigma=float(learned.get("log_sigma_before", sigma)),
        hours_factor=float(learned.get("hours_factor", 1.0)),
        memory_factor=float(learned.get("memory_factor", 1.0)),
    )


def as_document(expected: Expected) -> Document:
    """As it is kept beside a report."""
    return asdict(expected)


def comparison(actual: Actual) -> Document:
    """Each figure that was measured with its prediction, their ratio, and whether it lies inside the 80 % band."""
    expected = Expected(**actual.expected)
    share, setup = actual.share_done, expected.setup_hours
    spread = math.exp(Z80 * expected.hours_sigma)
    after = expected.hours_of(share) - setup
    found = {
        "hours": _against(actual.hours, expected.hours_of(share), setup + after / spread, setup + after * spread),
        "throughput": _within(actual.throughput, expected.throughput, expected.throughput_sigma),
        "peak_memory_gib": _within(actual.peak_memory_gib, expected.memory_gib, SIGMA_MEMORY),
        "preemptions": _counts(actual.preemptions, share * expected.preemptions),
    }
    return {name: each for name, each in found.items() if each is not None}


def _within(measured: float | None, predicted: float, sigma: float) -> Document | None:
    return _against(measured, predicted, predicted * math.exp(-Z80 * sigma), predicted * math.exp(Z80 * sigma))


def _counts(measured: int | None, mean: float) -> Document | None:
    return _against(measured, mean, poisson_quantile(mean, 0.1), poisson_quantile(mean, 0.9))


def _against(measured: float | None, predicted: float, low: float, high: float) -> Document | None:
    if measured is None:
        return None
    return {
        "measured": measured,
        "predicted": _round(predicted),
        "ratio": _round(measured / predicted) if predicted else None,
        "band": {"low": _round(low), "high": _round(high)},
        "inside_band": low <= measured <= high,
    }


def poisson_quantile(mean: float, probability: float) -> int:
    """The least count that a Poisson variable of this mean does not exceed with at least this probability.

    By the normal approximation with continuity correction above a mean of 400, where it is right to within one.
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
    """The reports that count, of reports in the order of time: one on a running job only until the next on its plan."""
    last = {each.plan_id: number for number, each in enumerate(actuals)}
    return tuple(each for number, each in enumerate(actuals) if not each.running or number == last[each.plan_id])


def past_runs(actuals: Sequence[Actual]) -> tuple[PastRun, ...]:
    """What reports in the order of time teach."""
    runs = (_past_run(each) for each in counting(actuals))
    return tuple(run for run in runs if run.log_hours is not None or run.log_memory is not None)


def _past_run(actual: Actual) -> PastRun:
    """Against the prediction as it would have been without any learning."""
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
    """(ln(measured / plainly predicted hours of training), share of the measured time that is training)."""
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
