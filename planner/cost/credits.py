"""Credits reduce the amount paid for a plan, never the choice of the plan.

A plan is the cheapest at list or negotiated prices. Credits are the user's money, with other uses and sometimes an end
date. If they made an expensive provider look free, a plan could spend a thousand dollars of credit to save ten in cash
without showing it. So credits are deducted from the plan's cost afterwards, and the answer names an alternative that
costs less out of pocket, if there is one.

Per provider p with credits K_p that are still valid when the run ends: paid_p = max(0, cost_p - K_p).
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from gpuplan.catalog.model.money import usd_display, usd_micros
from gpuplan.planner.cost.cost_breakdown import LONGEST_RUN_HOURS
from gpuplan.planner.model.outcome import Choice, Planned
from gpuplan.planner.model.settings import Credit


@dataclass(frozen=True, slots=True, kw_only=True)
class Credited:
    """Amounts in micro-dollars: `applied` credits, `out_of_pocket` cost, and the `least` (label, amount) to pay.

    `least` is an alternative with less to pay than the plan, or None. `sentence` states all of it for the user.
    """

    applied: int
    out_of_pocket: int
    least: tuple[str, int] | None
    sentence: str


def after_credits(plan: Planned) -> Credited:
    """The out-of-pocket cost of a plan, and the feasible alternative with the lowest one.

    Alternatives include the cheapest configuration of every provider, and credits are granted per provider. So no other
    configuration that meets the deadline costs less out of pocket with the same credits.
    """
    granted = plan.settings.credits
    paid = out_of_pocket(tuple(phase.choice for phase in plan.phases), granted, plan.start, plan.hours.confident)
    others = [
        (
            out_of_pocket((alternative.choice,), granted, plan.start, alternative.choice.hours.confident),
            alternative.label,
        )
        for alternative in plan.alternatives
        if alternative.meets_deadline and alternative.meets_budget
    ]
    best = min(others, default=None)
    least = (best[1], best[0]) if best is not None and best[0] < paid else None
    applied = sum(phase.choice.cost.expected for phase in plan.phases) - paid
    return Credited(applied=applied, out_of_pocket=paid, least=least, sentence=_sentence(applied, paid, least))


def out_of_pocket(choices: tuple[Choice, ...], granted: tuple[Credit, ...], start: datetime, hours: float) -> int:
    """Micro-dollars left to pay after deducting each provider's credits that are valid beyond the end of the run."""
    end = start + timedelta(hours=min(hours, LONGEST_RUN_HOURS))
    left = {credit.provider: 0 for credit in granted}
    for credit in granted:
        if credit.expires is None or end <= credit.expires:
            left[credit.provider] += usd_micros(credit.usd)
    costs: dict[str, int] = {}
    for choice in choices:
        provider = choice.offer.provider
        costs[provider] = costs.get(provider, 0) + choice.cost.expected
    return sum(max(0, cost - left.get(provider, 0)) for provider, cost in costs.items())


def _sentence(applied: int, paid: int, least: tuple[str, int] | None) -> str:
    sentence = (
        f"credits cover {usd_display(applied)}: {usd_display(paid)} are left to pay; they do not change the choice"
    )
    if least is None:
        return sentence
    return f"{sentence}, and {least[0]} would leave {usd_display(least[1])} to pay"
