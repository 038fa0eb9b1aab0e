"""The models of the ladder that a budget trains, each with the most tokens, found with plans of the planner itself.

For one size, expected cost grows almost in proportion to tokens, so the next guess is the last one scaled to the budget;
where the deadline limits, guesses step from the tokens that the nearest size has by the same FLOPs. Over sizes, the loss at
the most tokens has one minimum, which is found from the law's own optimum by steps along the ladder.

Published laws of the loss of a dense language model: L(N, D) = E + A / N^alpha + B / D^beta.

N are parameters, D tokens seen once; the loss is in nats per token on the data of Hoffmann et al. (MassiveText).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import floor, inf, log10, sqrt
from typing import Literal

from gpuplan.planner.model.plan import Plan
from gpuplan.planner.scaling.dense_models import LADDER, DenseModel


@dataclass(frozen=True, slots=True, kw_only=True)
class LossLaw:
    """One fit: the entropy of the text, and how fast parameters and tokens approach it."""

    name: str
    source: str
    entropy: float
    parameters_factor: float
    parameters_exponent: float
    tokens_factor: float
    tokens_exponent: float

    def loss(self, parameters: float, tokens: float) -> float:
        """Nats per token of a model of so many parameters after so many tokens."""
        of_size: float = self.parameters_factor / parameters**self.parameters_exponent
        of_tokens: float = self.tokens_factor / tokens**self.tokens_exponent
        return self.entropy + of_size + of_tokens

    def best_parameters(self, flops: float) -> float:
        """Parameters of least loss for a compute budget, at 6 FLOPs per parameter and token (Hoffmann 2022, eq. 4)."""
        both = self.parameters_exponent + self.tokens_exponent
        ratio = (self.parameters_exponent * self.parameters_factor) / (self.tokens_exponent * self.tokens_factor)
        exponent: float = self.tokens_exponent / both
        return float(ratio ** (1 / both) * (flops / 6) ** exponent)


#: Hoffmann et al., Training Compute-Optimal Large Language Models (arXiv 2203.15556), approach 3, eq. 10, as rounded there.
HOFFMANN = LossLaw(
    name="Hoffmann 2022",
    source="arXiv 2203.15556, approach 3",
    entropy=1.69,
    parameters_factor=406.4,
    parameters_exponent=0.34,
    tokens_factor=410.7,
    tokens_exponent=0.28,
)
#: Besiroglu et al., Chinchilla Scaling: A replication attempt (arXiv 2404.10102), the same runs fitted again.
BESIROGLU = LossLaw(
    name="Besiroglu 2024",
    source="arXiv 2404.10102, a re-fit of the same runs",
    entropy=1.8172,
    parameters_factor=482.01,
    parameters_exponent=0.3478,
    tokens_factor=2085.43,
    tokens_exponent=0.3658,
)
LAWS = (HOFFMANN, BESIROGLU)
#: The runs that both were fitted on: up to 16 B parameters and 500 B tokens (Hoffmann 2022, section 3).
MOST_FITTED_PARAMETERS, MOST_FITTED_TOKENS = 16e9, 500e9


type Limit = Literal["budget", "deadline", "data"]
#: A budget is used up above this share; two or three plans of a size reach it.
_USED = 0.985
#: Aimed at with each guess, so that a small step of the cost stays within the budget.
_AIM = 0.993
_MOST_GUESSES = 14
#: Neighbouring guesses, one with and one without a plan in time.
_CLOSE = 1.06
#: Steps of guesses from a size that the deadline limits, and from one that nothing is known of.
_STEP, _LEAP = 1.05, 4.0
#: Fewer tokens than these are no training of a model.
_LEAST_TOKENS = 1e6
#: FLOPs of a dollar, for the first guess alone: an H100 at 40 % for 2.5 dollars per hour.
_FLOPS_PER_USD = 5.7e17
#: Over-trained sizes: shares of the smallest that a law prefers.
_SHARES = (1 / 2, 1 / 4, 1 / 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """The cheapest plan of a model and so many tokens."""

    tokens: float
    cost_usd: float
    plan: Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Affordable:
    """A model with the most tokens, and what limits them."""

    model: DenseModel
    priced: Priced
    limited_by: Limit

    def loss(self, law: LossLaw) -> float:
        """What a law expects of it."""
        return law.loss(self.model.parameters, self.priced.tokens)


@dataclass(slots=True, kw_only=True)
class Search:
    """`price` gives the cheapest plan of a model and tokens, or None where none is in time; each call makes one plan."""

    price: Callable[[DenseModel, float], Priced | None]
    budget_usd: float
    most_tokens: float = inf
    plans_made: int = 0
    affordable: dict[int, Affordable | None] = field(default_factory=dict)

    def run(self) -> Mapping[LossLaw, int]:
        """Find what each law prefers, its over-trained alternatives, and one size above; return the rungs preferred."""
        preferred: dict[LossLaw, int] = {}
        flops = self.budget_usd * _FLOPS_PER_USD
        probe = self.at(_rung(LAWS[-1].best_parameters(flops)))
        if probe is not None:
            flops = 6 * probe.model.parameters * probe.priced.tokens
        for law in LAWS:
            best = self._best(law, _rung(law.best_parameters(flops)))
            if best is not None:
                preferred[law] = best
        if preferred:
            smallest = DenseModel(layers=LADDER[min(preferred.values())]).parameters
            for share in _SHARES:
                self.at(_rung(smallest * share))
            self.at(min(max(preferred.values()) + 2, len(LADDER) - 1))
        return preferred

    def at(self, rung: int) -> Affordable | None:
        """The most tokens of a rung of the ladder; None where not even a few can be afforded."""
        if rung not in self.affordable:
            self.affordable[rung] = self._most(DenseModel(layers=LADDER[rung]))
        return self.affordable[rung]

    def _best(self, law: LossLaw, rung: int) -> int | None:
        """Step from `rung` to the least loss; down, while nothing is affordable."""
        while rung > 0 and self.at(rung) is None:
            rung -= 1
        if self.at(rung) is None:
            return None
        step = 1 if self._loss(law, rung + 1) < self._loss(law, rung) else -1
        while self._loss(law, rung + step) < self._loss(law, rung):
            rung += step
        return rung

    def _loss(self, law: LossLaw, rung: int) -> float:
        affordable = self.at(rung) if 0 <= rung < len(LADDER) else None
        return inf if affordable is None else affordable.loss(law)

    def _most(self, model: DenseModel) -> Affordable | None:
        low: Priced | None = None
        high: float = inf
        limit: Limit = "budget"
        guess, step = self._first_guess(model)
        for _ in range(_MOST_GUESSES):
            guess = min(_rounded(guess), self.most_tokens)
            if guess < _LEAST_TOKENS:
                break
            self.plans_made += 1
            priced = self.price(model, guess)
            if priced is not None and priced.cost_usd <= self.budget_usd:
                low = priced
                if guess >= self.most_tokens:
                    return Affordable(model=model, priced=low, limited_by="data")
                if priced.cost_usd >= _USED * self.budget_usd:
                    return Affordable(model=model, priced=low, limited_by="budget")
            else:
                high, limit = guess, "budget" if priced is not None else "deadline"
            if low is not None and high / low.tokens < _CLOSE:
                break
            guess, step = (
                _next(_scaled(priced, self.budget_usd), 0.0 if low is None else low.tokens, high, step),
                step * step,
            )
        return None if low is None else Affordable(model=model, priced=low, limited_by=limit)

    def _first_guess(self, model: DenseModel) -> tuple[float, float]:
        """In proportion to the nearest size that is known, by the same FLOPs; and the step from there."""
        known = [one for one in self.affordable.values() if one is not None]
        if not known:
            return self.budget_usd * _FLOPS_PER_USD / 6 / model.parameters, _LEAP
        nearest = min(known, key=lambda one: abs(log10(one.model.parameters / model.parameters)))
        guess = nearest.priced.tokens * nearest.model.parameters / model.parameters
        return guess, _STEP if nearest.limited_by == "deadline" else _LEAP


def _scaled(priced: Priced | None, budget_usd: float) -> float:
    """The tokens that use the budget up, if cost is in proportion; unknown without a plan."""
    return inf if priced is None else priced.tokens * _AIM * budget_usd / priced.cost_usd


def _next(scaled: float, low: float, high: float, step: float) -> float:
    """A guess between what has a plan within the budget and what has none, by `step` where only one is known."""
    if high == inf:
        # The deadline may come before the budget: leap no further than to the budget.
        return min(scaled, low * step)
    if not low:
        return scaled if scaled < high else high / step
    return scaled if low * _STEP < scaled < high / _STEP else sqrt(low * high)


def _rung(parameters: float) -> int:
    """The rung whose size is nearest, by ratio."""
    return min(range(len(LADDER)), key=lambda rung: abs(log10(DenseModel(layers=LADDER[rung]).parameters / parameters)))


def _rounded(tokens: float) -> float:
    """Down to three digits, so that a job file can state it."""
    if tokens <= 0 or tokens == inf:
        return tokens
    unit = 10.0 ** (floor(log10(tokens)) - 2)
    return floor(tokens / unit) * unit
