"""What an estimate rests on that the user did not state: the largest doubts about its hours, and the assumed values."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from gpuplan.planner.model.estimate import AssumedField, Doubt
from gpuplan.planner.model.job import Training
from gpuplan.planner.performance.fitted_constants import value
from gpuplan.planner.performance.goodput import modelled_goodput
from gpuplan.planner.performance.prediction_bands import Z80, sigma_of
from gpuplan.planner.workload.step_work import Work

#: How many doubts an estimate names.
MOST_DOUBTS = 3
#: The least ratio of the hours at both ends of a doubt that is named.
LEAST_EFFECT = 1.02
_DEFAULT = Training()
#: Hours of the job with another work or training, inf where it cannot run.
HoursOf = Callable[[Work, Training], float]


def doubts_of(work: Work, training: Training, hours: float, hours_of: HoursOf, *, measured: bool) -> tuple[Doubt, ...]:
    """The largest doubts first; `hours` are those estimated, `measured` whether runs of the chip's generation were fitted."""
    doubts = [_class_doubt(work), *_software_doubt(work, training, hours, hours_of)]
    doubts += _batch_doubt(work, training, hours, hours_of)
    if not measured:
        spread = math.exp(Z80 * value("band_sigma_unmeasured"))
        doubts.append(
            Doubt(
                what="no run on this generation of accelerators was measured",
                effect_low=1 / spread,
                effect_high=spread,
                state="gpuplan calibrate on one of them",
            )
        )
    doubts = [doubt for doubt in doubts if doubt.effect_high / doubt.effect_low >= LEAST_EFFECT]
    return tuple(sorted(doubts, key=lambda doubt: doubt.effect_low / doubt.effect_high)[:MOST_DOUBTS])


def _class_doubt(work: Work) -> Doubt:
    spread = math.exp(Z80 * sigma_of(work.task))
    return Doubt(
        what=f"measured runs of class {work.task} differ from their estimates by up to this factor, in 80 of 100 cases",
        effect_low=1 / spread,
        effect_high=spread,
        state="gpuplan actuals with a run of your own, or workload kind measured",
    )


def _software_doubt(work: Work, training: Training, hours: float, hours_of: HoursOf) -> list[Doubt]:
    """The effect of eager software, where the software is the default."""
    if training.software != _DEFAULT.software:
        return []
    factor = hours_of(work, replace(training, software="eager")) / hours
    if not math.isfinite(factor):
        return []
    what = f"software assumed {training.software}: eager software would take {factor:.2g}x"
    low, high = sorted((1.0, factor))
    return [Doubt(what=what, effect_low=low, effect_high=high, state="training.software")]


def _batch_doubt(work: Work, training: Training, hours: float, hours_of: HoursOf) -> list[Doubt]:
    """The effect of twice and of half the batch, where the batch is the default."""
    if not work.batch_is_default:
        return []
    factors = [
        hours_of(replace(work, units_per_step=work.units_per_step * times), training) / hours
        for times in (2.0, 0.5)
        if work.units_per_sample <= work.units_per_step * times <= work.units_total
    ]
    factors = [factor for factor in factors if math.isfinite(factor)]
    if not factors:
        return []
    what = f"batch assumed {work.units_per_step:,.0f} {work.unit}: twice that would take {factors[0]:.2g}x"
    low, high = min(1.0, *factors), max(1.0, *factors)
    field = "workload.global_batch_tokens" if work.unit == "tokens" else "workload.global_batch_samples"
    return [Doubt(what=what, effect_low=low, effect_high=high, state=field)]


def assumed_of(
    work: Work, training: Training, precision: str, goodput: float | None, gpus: int
) -> tuple[AssumedField, ...]:
    """The values that the estimate chose, each with its reason."""
    assumed = []
    if training.software == _DEFAULT.software:
        assumed.append(AssumedField(field="training.software", value=training.software, why="the default"))
    if training.precision == "auto":
        assumed.append(AssumedField(field="training.precision", value=precision, why="the fastest that trains safely"))
    if work.batch_is_default:
        field = "workload.global_batch_tokens" if work.unit == "tokens" else "workload.global_batch_samples"
        assumed.append(
            AssumedField(field=field, value=work.units_per_step, why="of the model, or by its size and amount")
        )
    if goodput is None:
        share = round(float(modelled_goodput(np.array([float(gpus)]))[0]), 4)
        assumed.append(
            AssumedField(field="settings.goodput", value=share, why="failures, checkpoints and evaluation, modelled")
        )
    return tuple(assumed)
