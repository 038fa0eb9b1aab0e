"""What credits change: the sum paid, never the choice.

A plan is the cheapest by what it costs at list or negotiated prices. Credits are the user's own money, with other uses
and sometimes an end date: were they to make a dear provider look free, the plan would spend a thousand dollars of
credit to save ten of cash, and nobody would see it. So they are taken off the plan's cost afterwards, and where an
alternative would cost less out of pocket, that is said beside the plan.

Per provider p with credits K_p that are still good when the run is done: paid_p = max(0, cost_p - K_p).
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from catalog.money import usd_display, usd_micros
from planner.answer import Choice, Planned
from planner.cost.bill import LONGEST_RUN_HOURS
from planner.settings import Credit


@dataclass(frozen=True, slots=True, kw_only=True)
class Credited:
    """Micro-dollars: credits used on the plan, what is left to pay, and the alternative (label, left to pay) with less
    to pay than that, if any. `sentence` says all of it.
    """

    applied: int
    out_of_pocket: int
    least: tuple[str, int] | None
    sentence: str


def after_credits(plan: Planned) -> Credited:
    """What is left to pay of a plan, and which of its feasible alternatives leaves least.

    Alternatives hold the cheapest of every provider, and credits are granted per provider: no other configuration
    that is done in time for the same credits leaves less.
    """
    granted = plan.settings.credits
    paid = out_of_pocket(tuple(phase.choice for phase in plan.phases), granted, plan.start, plan.hours.confident)
    others = [
        (out_of_pocket((each.choice,), granted, plan.start, each.choice.hours.confident), each.label)
        for each in plan.alternatives
        if each.meets_deadline and each.meets_budget
    ]
    best = min(others, default=None)
    least = (best[1], best[0]) if best is not None and best[0] < paid else None
    applied = sum(phase.choice.cost.expected for phase in plan.phases) - paid
    return Credited(applied=applied, out_of_pocket=paid, least=least, sentence=_sentence(applied, paid, least))


def out_of_pocket(choices: tuple[Choice, ...], granted: tuple[Credit, ...], start: datetime, hours: float) -> int:
    """Micro-dollars left to pay once each provider's credits that outlast the run are used on its part of it."""
    end = start + timedelta(hours=min(hours, LONGEST_RUN_HOURS))
    left = {each.provider: 0 for each in granted}
    for each in granted:
        if each.expires is None or end <= each.expires:
            left[each.provider] += usd_micros(each.usd)
    costs: dict[str, int] = {}
    for choice in choices:
        provider = choice.offer.provider
        costs[provider] = costs.get(provider, 0) + choice.cost.expected
    return sum(max(0, cost - left.get(provider, 0)) for provider, cost in costs.items())


def _sentence(applied: int, paid: int, least: tuple[str, int] | None) -> str:
    said = f"credits cover {usd_display(applied)}: {usd_display(paid)} are left to pay; they do not change the choice"
    if least is None:
        return said
    return f"{said}, and {least[0]} would leave {usd_display(least[1])} to pay"
