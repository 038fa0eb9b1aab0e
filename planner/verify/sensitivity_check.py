"""Check of the sensitivity to deadline and price, with the frontier of the enumeration."""

import math

from gpuplan.planner.verify.configuration_enumeration import at_price
from gpuplan.planner.verify.configuration_survey import Survey, slope
from gpuplan.planner.verify.ladder_proof_check import CHANGING, CHEAPEST
from gpuplan.planner.verify.offer_groups import OfferGroup
from gpuplan.planner.verify.plan_outcome import Outcome
from gpuplan.planner.verify.verification_context import Context

CHECK = "alternatives"
#: Relative tolerance within which hours are those of the plan.
SAME = 1e-12


def sensitivity(context: Context, outcome: Outcome, survey: Survey) -> None:
    """Check the next cheaper and next faster configuration; there are none for objectives other than cost."""
    field_coverage, job = context.field_coverage, context.submitted_plan.job
    # The stated cost, which the check of costs holds to its parts: a difference from it has no rounding of its own.
    mine = field_coverage.micros("cost_usd", "expected")
    front, confident_hours = survey.frontier(), outcome.confident
    of_cost = job.objective == "cost"
    late = job.deadline_hours
    slower = (
        [one for one in front if one[1] < mine and late is not None and one[0] > late * (1 + SAME)] if of_cost else []
    )
    faster = [one for one in front if one[0] < confident_hours * (1 - SAME)] if of_cost else []
    per_hour = slope(front, job.deadline_hours) if of_cost and job.deadline_hours is not None else 0.0
    why = "not the value from the frontier of the enumeration"
    field_coverage.is_number(CHECK, ("sensitivity", "deadline_usd_per_hour"), per_hour, why, relative=1e-6)
    steps = (
        ("next_cheaper", "saves_usd", (slower[0][0], mine - slower[0][1]) if slower else None),
        ("next_faster", "costs_usd", (faster[-1][0], faster[-1][1] - mine) if faster else None),
    )
    for name, money, step in steps:
        if field_coverage.is_there(CHECK, ("sensitivity", name), step is not None, why) and step is not None:
            field_coverage.is_number(CHECK, ("sensitivity", name, "deadline_hours"), _enough(step[0]), why)
            # The error of a difference is the sum of the errors of both costs, each rounded to micro-dollars.
            room = (1 + context.relative * (2 * mine + abs(step[1]))) / max(abs(step[1]), 1)
            field_coverage.is_money(CHECK, ("sensitivity", name, money), step[1], why, relative=room)
    _optimal_until(context, outcome, survey)


def _optimal_until(context: Context, outcome: Outcome, survey: Survey) -> None:
    """Check the price up to which a plan on one configuration stays cheapest: where the next best offer has the same
    cost.
    """
    field_coverage, mine = context.field_coverage, outcome.micros
    at = ("sensitivity", "holds_until_usd_per_node_hour")
    if outcome.alone is None:
        field_coverage.is_same(CHECK, at, None, "several prices hold it together")
        return
    if field_coverage.has(*CHEAPEST) or field_coverage.has(*CHANGING):
        field_coverage.is_same(CHECK, at, None, "another choice is the cheapest: chances decide")
        return
    cost_breakdown, named = outcome.alone.cost_breakdown, outcome.alone.part.named
    paid = mine - sum(
        round(part * 1e6) for part in (cost_breakdown.storage, cost_breakdown.egress, cost_breakdown.power)
    )
    rivals = [
        priced.micros
        for priced in survey.best_of_offer_group.values()
        if not _is_of(priced.offer_group, named.offer_group)
    ]
    rivals += _elsewhere(context, named.offer_group)
    if context.submitted_plan.job.objective != "cost" or not rivals or not paid:
        field_coverage.is_same(CHECK, at, None, "no offer competes with it, or nothing is paid by the hour")
        return
    shown = named.offer_group.micros if named.offer is None else named.offer.usd_micros_per_hour
    until = shown * (1 + max(0.0, min(rivals) - mine) / paid)
    field_coverage.is_money(
        CHECK, at, until, "not the price at which the next best offer costs the same", relative=1e-9 + context.relative
    )


def _is_of(one: OfferGroup, other: OfferGroup) -> bool:
    """Whether two offer groups are the same machine, place and price kind."""
    return all(
        getattr(one, name) == getattr(other, name) for name in ("source_number", "place", "kind", "rate", "reason")
    ) and (one.machine.type.name == other.machine.type.name)


def _elsewhere(context: Context, mine: OfferGroup) -> list[int]:
    """Costs at the second cheapest price of the plan's own offer group, in another zone, if there is one."""
    offer_group = next(
        (offer_group for offer_group in context.open_offers.offer_groups if _is_of(offer_group, mine)), None
    )
    if offer_group is None or offer_group.second is None:
        return []
    others = [at_price(offer_group, offer_group.second)] if mine.micros <= offer_group.micros else [offer_group]
    priced = context.enumeration.priced(others, context.submitted_plan.job.constraints.max_nodes)
    return [configuration.micros for configuration in priced if not configuration.broken]


def _enough(hours: float) -> float:
    """The hours rounded up to nine significant digits."""
    digits = 10.0 ** (math.floor(math.log10(hours)) - 8)
    shown = float(f"{hours:.9g}")
    return shown if shown >= hours else float(f"{shown + digits:.9g}")
