"""The utilisation and the electricity price at which another decision would be better.

The decision is solved again at fixed factors of the forecast, to the same proof as the answer unless the proof is large
(`MOST_SHARES`). Then the gap is that of the linear relaxation and is stated with the step. In both directions from 1,
the change is located between the last factor with the same kinds of machines and terms and the first one with other
kinds. A change of numbers within the same kinds does not count. A change that is undone within one step is not seen.

For the price of electricity e the change is exact: an answer (units and shares) costs a_i + b_i e, so the least cost is
the lower envelope of lines. The decision is solved again where the lines of two known answers meet. If nothing is
cheaper there, that is the change; otherwise the new answer replaces the one of the same kinds (Eisner and Severance
1976, J. ACM 23(4)). Runs change the load itself, so the cost is not linear in them: bisection finds the factor to
`PRECISION`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.model.procurement import ForecastSweep, ProcurementSensitivity, SweepStep
from gpuplan.planner.procurement.capacity_expansion import RELATIVE_GAP, Expanded, expand
from gpuplan.planner.procurement.forecast import Forecast
from gpuplan.planner.procurement.procurement_model import Model, model_of
from gpuplan.planner.procurement.procurement_parts import in_words
from gpuplan.planner.procurement.rounded_figures import money, six_digits
from gpuplan.planner.procurement.served_jobs import Served

Floats = NDArray[np.float64]

FACTORS = (0.25, 0.5, 0.75, 1.5, 2.0, 4.0)
#: Factors for a model with large proofs.
FEW_FACTORS = (0.5, 2.0)
#: Further factors, tried only if nothing has changed before.
FURTHER = (8.0, 16.0, 32.0)
#: Relative precision of the change with the number of runs.
PRECISION = 0.02
_MOST_ROUNDS = 40
#: Larger proofs take seconds each; then the answer is feasible and optimal within its `gap`.
MOST_SHARES = 4_000

Asked = Callable[[float], Expanded | None]
#: Returns the factor of the change, given an answer with the same kinds and one with others, each with its factor.
Turn = Callable[[tuple[float, Expanded], tuple[float, Expanded | None]], tuple[float, Expanded | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """Shared by all steps: the figure that is multiplied, how to solve, how to locate the change, the answer at 1, and the
    wording of an answer.
    """

    swept: Literal["times_the_runs", "times_the_price"]
    precision: float
    asked: Asked
    turn: Turn
    best: Expanded
    words: Callable[[Floats], str]
    further: tuple[float, ...] = ()

    def same(self, expanded: Expanded | None) -> bool:
        """Whether both answers have the same kinds of machines and terms."""
        return expanded is not None and np.array_equal(expanded.units > _NOTHING, self.best.units > _NOTHING)

    def step(self, factor: float, expanded: Expanded | None) -> SweepStep:
        """The answer at a factor as a step."""
        times = float(f"{factor:.3g}")
        words = "" if expanded is None else self.words(expanded.units)
        return SweepStep(
            times_the_runs=times if self.swept == "times_the_runs" else None,
            times_the_price=times if self.swept == "times_the_price" else None,
            answer=words or "does not fit into the limits",
            cost_usd=None if expanded is None else money(expanded.objective_usd),
            gap=0.0 if expanded is None else six_digits(expanded.gap),
        )


#: Fewer units (dollars per hour) count as none.
_NOTHING = 1e-6


def sensitivity(forecast: Forecast, given: Served, model: Model, best: Expanded) -> ProcurementSensitivity:
    """The effect of the number of runs, and of the electricity price if machines can be used."""
    likely = best.units > _NOTHING

    def words(units: Floats) -> str:
        return in_words(given, model, units)

    def runs(factor: float) -> Expanded | None:
        return expand(model_of(forecast, given, busier=factor).expansion, likely=likely, most_shares=MOST_SHARES)

    def power(factor: float) -> Expanded | None:
        return expand(model_of(forecast, given, electricity=factor).expansion, likely=likely, most_shares=MOST_SHARES)

    def halved(same: tuple[float, Expanded], other: tuple[float, Expanded | None]) -> tuple[float, Expanded | None]:
        while abs(other[0] / same[0] - 1.0) > PRECISION:
            middle = (same[0] * other[0]) ** 0.5
            between = runs(middle)
            if between is not None and utilisation.same(between):
                same = middle, between
            else:
                other = middle, between
        return other

    def met(same: tuple[float, Expanded], other: tuple[float, Expanded | None]) -> tuple[float, Expanded | None]:
        return _met(electricity, lambda answer: _power_usd(given, model, answer), same, other)

    utilisation = _Question(
        swept="times_the_runs", precision=PRECISION, asked=runs, turn=halved, best=best, words=words, further=FURTHER
    )
    electricity = _Question(swept="times_the_price", precision=0.0, asked=power, turn=met, best=best, words=words)
    powered = bool((given.kwh[np.isfinite(given.kwh)] > 0).any())
    return ProcurementSensitivity(utilisation=_sweep(utilisation), electricity=_sweep(electricity) if powered else None)


def _sweep(question: _Question) -> ForecastSweep:
    large = question.best.variables > MOST_SHARES
    factors = FEW_FACTORS if large else FACTORS
    answers: dict[float, Expanded | None] = {factor: question.asked(factor) for factor in factors}
    if not large and all(question.same(answers[factor]) for factor in factors if factor > 1):
        for factor in question.further:
            answers[factor] = question.asked(factor)
            if not question.same(answers[factor]):
                break
    every = sorted({**answers, 1.0: question.best}.items(), key=lambda one: one[0])
    return ForecastSweep(
        precision=question.precision,
        steps=tuple(question.step(factor, answer) for factor, answer in every),
        changes_below=_change(question, answers, sorted((f for f in answers if f < 1), reverse=True)),
        changes_above=_change(question, answers, sorted(f for f in answers if f > 1)),
    )


def _change(question: _Question, answers: dict[float, Expanded | None], factors: list[float]) -> SweepStep | None:
    """The nearest change of kinds among `factors`, ordered away from 1, and the answer there."""
    same = 1.0, question.best
    for factor in factors:
        answer = answers[factor]
        if answer is None or not question.same(answer):
            return question.step(*question.turn(same, (factor, answer)))
        same = factor, answer
    return None


def _power_usd(given: Served, model: Model, answer: Expanded) -> float:
    """The cost of an answer's electricity at the forecast's price: the slope of its line."""
    source = np.array([unit.source for unit in model.units], np.int64)
    kwh = given.kwh[source]
    usd = np.where(np.isfinite(kwh), kwh, 0.0) * given.usd_per_kwh[source][:, None]
    data = model.expansion
    return float(np.einsum("blj,bj,lj,b->", answer.share, data.runs_per_hour, usd, data.hours))


def _met(
    question: _Question,
    slope: Callable[[Expanded], float],
    same: tuple[float, Expanded],
    other: tuple[float, Expanded | None],
) -> tuple[float, Expanded | None]:
    """The factor at which the envelope changes to answers of other kinds; exact up to the proof's gap."""
    for _ in range(_MOST_ROUNDS):
        (at, one), (other_factor, two) = same, other
        if two is None:
            return other
        rise, other_rise = slope(one), slope(two)
        if abs(rise - other_rise) <= 1e-12 * max(1.0, abs(rise)):
            return other
        factor = (two.objective_usd - other_rise * other_factor - one.objective_usd + rise * at) / (rise - other_rise)
        low, high = sorted((at, other_factor))
        factor = min(max(factor, low), high)
        line = one.objective_usd + rise * (factor - at)
        expanded = question.asked(factor)
        if expanded is None or expanded.objective_usd >= line - 10 * RELATIVE_GAP * max(1.0, abs(line)):
            return factor, two
        if question.same(expanded):
            same = factor, expanded
        else:
            other = factor, expanded
    return other
