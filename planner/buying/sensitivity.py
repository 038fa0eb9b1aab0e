"""At what utilisation, and at what price of electricity, another answer would be better.

The question is asked again at fixed factors of the forecast, each proven as the answer itself is unless the proof is
large (`MOST_SHARES`); the gap is then that of the linear relaxation, and stands beside the step. Between 1 and the
first of them, either way, at which other kinds of machines or terms are in the answer, the change is looked for; numbers
of a kind change sooner, and are not what is looked for. An answer that turns and turns back within one step is not seen.

The price of electricity e is exact: an answer (units and shares) costs a_i + b_i e whatever e is, so the least cost is
the lower envelope of lines. Where the lines of two known answers meet, the question is asked again: if nothing is
cheaper there, the change is there; else the new answer takes the place of the one of its kinds (Eisner and Severance
1976, J. ACM 23(4)). Runs change the load itself, which no line follows: there the factor is halved to `PRECISION`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.buying.answer import Sensitivity, Step, Sweep
from planner.buying.forecast import Forecast
from planner.buying.model import Model, model_of
from planner.buying.served import Served
from planner.buying.words import in_words
from planner.optimise.buying import RELATIVE_GAP, Expanded, expand

Floats = NDArray[np.float64]

FACTORS = (0.25, 0.5, 0.75, 1.5, 2.0, 4.0)
#: Those of a model whose proofs are large.
FEW_FACTORS = (0.5, 2.0)
#: Asked only where nothing has changed until then.
FURTHER = (8.0, 16.0, 32.0)
#: The change with the number of runs is found to this, relatively.
PRECISION = 0.02
_MOST_ROUNDS = 40
#: Larger proofs take seconds each: an answer is then real, and the least to within its `gap`.
MOST_SHARES = 4_000

Asked = Callable[[float], Expanded | None]
#: Factor of the change, given an answer of the same kinds and one of others, each with its factor.
Turn = Callable[[tuple[float, Expanded], tuple[float, Expanded | None]], tuple[float, Expanded | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """What every step needs: how to ask, how to find the change, the answer at 1, and words for an answer."""

    asked: Asked
    turn: Turn
    best: Expanded
    words: Callable[[Floats], str]
    further: tuple[float, ...] = ()

    def same(self, found: Expanded | None) -> bool:
        """Whether the same kinds of machines and terms are in both answers."""
        return found is not None and np.array_equal(found.units > _NOTHING, self.best.units > _NOTHING)

    def step(self, factor: float, found: Expanded | None) -> Step:
        """In words."""
        if found is None:
            return Step(factor=factor, to="", total_usd=None)
        return Step(factor=factor, to=self.words(found.units), total_usd=found.objective_usd, gap=found.gap)


#: Fewer units (dollars per hour) are none.
_NOTHING = 1e-6


def sensitivity(forecast: Forecast, given: Served, model: Model, best: Expanded) -> Sensitivity:
    """How the answer moves with the number of runs, and with the price of electricity where machines may work."""
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

    utilisation = _Question(asked=runs, turn=halved, best=best, words=words, further=FURTHER)
    electricity = _Question(asked=power, turn=met, best=best, words=words)
    powered = bool((given.kwh[np.isfinite(given.kwh)] > 0).any())
    return Sensitivity(utilisation=_sweep(utilisation), electricity=_sweep(electricity) if powered else None)


def _sweep(question: _Question) -> Sweep:
    large = question.best.variables > MOST_SHARES
    factors = FEW_FACTORS if large else FACTORS
    found: dict[float, Expanded | None] = {factor: question.asked(factor) for factor in factors}
    if not large and all(question.same(found[factor]) for factor in factors if factor > 1):
        for factor in question.further:
            found[factor] = question.asked(factor)
            if not question.same(found[factor]):
                break
    steps = [question.step(factor, each) for factor, each in found.items()]
    steps.append(question.step(1.0, question.best))
    return Sweep(
        steps=tuple(sorted(steps, key=lambda each: each.factor)),
        below=_change(question, found, sorted((f for f in found if f < 1), reverse=True)),
        above=_change(question, found, sorted(f for f in found if f > 1)),
    )


def _change(question: _Question, found: dict[float, Expanded | None], factors: list[float]) -> Step | None:
    """The nearest change of kinds among `factors`, which lead away from 1, and the answer there."""
    same = 1.0, question.best
    for factor in factors:
        answer = found[factor]
        if answer is None or not question.same(answer):
            return question.step(*question.turn(same, (factor, answer)))
        same = factor, answer
    return None


def _power_usd(given: Served, model: Model, answer: Expanded) -> float:
    """What the electricity of an answer costs at the price of the forecast: the slope of its line."""
    source = np.array([each.source for each in model.units], np.int64)
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
    """Where the envelope goes over from answers of the same kinds to others; exact to the gap of a proof."""
    for _ in range(_MOST_ROUNDS):
        (at, one), (there, two) = same, other
        if two is None:
            return other
        rise, other_rise = slope(one), slope(two)
        if abs(rise - other_rise) <= 1e-12 * max(1.0, abs(rise)):
            return other
        factor = (two.objective_usd - other_rise * there - one.objective_usd + rise * at) / (rise - other_rise)
        low, high = sorted((at, there))
        factor = min(max(factor, low), high)
        line = one.objective_usd + rise * (factor - at)
        found = question.asked(factor)
        if found is None or found.objective_usd >= line - 10 * RELATIVE_GAP * max(1.0, abs(line)):
            return factor, two
        if question.same(found):
            same = factor, found
        else:
            other = factor, found
    return other
