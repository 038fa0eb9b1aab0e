"""At what utilisation, and at what price of electricity, another answer would be better.

The question is asked again at fixed factors of the forecast. Between 1 and the first of them, either way, at which
other kinds of machines or terms are in the answer, the factor is halved until it is known to five per cent: the nearest
change that a step sees. Numbers of a kind change sooner, and are not what is looked for; an answer that turns and
turns back within one step is not seen. Each is solved to a thousandth of its cost, or as far as a few
nodes of branch and bound lead: its cost is that of a real answer, the least to within about that.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from planner.buying.answer import Sensitivity, Step, Sweep
from planner.buying.forecast import Forecast
from planner.buying.model import Model, model_of
from planner.buying.served import Served
from planner.optimise.buying import Expanded, expand

FACTORS = (0.25, 0.5, 0.75, 1.5, 2.0, 4.0)
#: Those of a model with more shares of runs than `LARGE`, each of which takes seconds.
FEW_FACTORS = (0.5, 2.0)
LARGE = 5_000
#: The change is found to this, relatively.
PRECISION = 0.05
#: Relative gap and branch-and-bound nodes of each of these questions.
GAP = 1e-3
NODES = 50

Units = NDArray[np.int64]
Asked = Callable[[float], Expanded | None]


def sensitivity(forecast: Forecast, given: Served, model: Model, best: Expanded) -> Sensitivity:
    """How the answer moves with the number of runs, and with the price of electricity where machines may be bought."""

    def words(units: Units) -> str:
        return in_words(forecast, given, model, units)

    def runs(factor: float) -> Expanded | None:
        return expand(model_of(forecast, given, busier=factor).expansion, gap=GAP, nodes=NODES)

    def power(factor: float) -> Expanded | None:
        return expand(model_of(forecast, given, electricity=factor).expansion, gap=GAP, nodes=NODES)

    return Sensitivity(
        utilisation=_sweep(runs, best, words),
        electricity=_sweep(power, best, words) if forecast.machines else None,
    )


def _sweep(asked: Asked, best: Expanded, words: Callable[[Units], str]) -> Sweep:
    factors = FACTORS if best.variables <= LARGE else FEW_FACTORS
    found = {factor: asked(factor) for factor in factors}
    steps = {factor: _step(factor, each, words) for factor, each in found.items()}
    steps[1.0] = _step(1.0, best, words)
    falling = [factor for factor in sorted(factors, reverse=True) if factor < 1]
    rising = [factor for factor in sorted(factors) if factor > 1]
    return Sweep(
        steps=tuple(steps[factor] for factor in sorted(steps)),
        below=_turn(asked, found, best, falling, words),
        above=_turn(asked, found, best, rising, words),
    )


def _step(factor: float, found: Expanded | None, words: Callable[[Units], str]) -> Step:
    if found is None:
        return Step(factor=factor, to="", total_usd=None)
    return Step(factor=factor, to=words(found.units), total_usd=found.objective_usd)


def _same(found: Expanded | None, best: Expanded) -> bool:
    """Whether the same kinds of machines and terms are in both answers."""
    return found is not None and np.array_equal(found.units > 0, best.units > 0)


def _turn(
    asked: Asked,
    found: dict[float, Expanded | None],
    best: Expanded,
    factors: list[float],
    words: Callable[[Units], str],
) -> Step | None:
    """The nearest change of kinds among `factors`, which lead away from 1, and the answer there."""
    same = 1.0
    for other in factors:
        answer = found[other]
        if not _same(answer, best):
            return _halved(asked, best, same, _step(other, answer, words), words)
        same = other
    return None


def _halved(asked: Asked, best: Expanded, same: float, other: Step, words: Callable[[Units], str]) -> Step:
    """The change between `same` and `other`, to the precision."""
    while abs(other.factor / same - 1.0) > PRECISION:
        middle = (same * other.factor) ** 0.5
        between = asked(middle)
        if _same(between, best):
            same = middle
        else:
            other = _step(middle, between, words)
    return other


def in_words(forecast: Forecast, given: Served, model: Model, units: Units) -> str:
    """`buy 2 x HGX-H100-8, commit to 3 x p5.48xlarge (reserved_3y)`, or `rent everything`."""
    bought, terms = [], []
    columns, snapshot = given.market.columns, given.market.snapshot
    for u, each in enumerate(model.units):
        if not units[u]:
            continue
        if each.source < len(forecast.machines):
            bought.append(f"{units[u]} x {forecast.machines[each.source].name}")
        else:
            offer = columns.offer(int(snapshot.original[given.nodes[each.source - len(forecast.machines)].place]))
            terms.append(f"{units[u]} x {offer.instance_type} ({offer.price_kind})")
    said = [f"buy {', '.join(bought)}"] if bought else []
    said += [f"commit to {', '.join(terms)}"] if terms else []
    return ", ".join(said) or "rent everything"
