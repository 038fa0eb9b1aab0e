"""The sentences under a decision to buy: what it assumes, and what to know before money is spent."""

from datetime import date

from planner.buying.answer import Purchase, Rent, Spend
from planner.buying.forecast import Forecast, Machine
from planner.buying.model import Model
from planner.buying.served import Served, is_there
from planner.buying.terms import Spending
from planner.explain.statements import STALE_AFTER_DAYS
from planner.optimise.buying import Expanded

#: Prices of accelerators move by more than a tenth within so many days.
OLD_PRICE_DAYS = 365
#: A gap above this is worth a warning.
_OPEN_GAP = 1e-4


def assumptions(forecast: Forecast, given: Served, model: Model, best: Expanded, *, commits: bool) -> tuple[str, ...]:
    """What the answer takes for granted, the most consequential first."""
    bought = any(not is_there(given.sources[u.source]) and n > 0 for u, n in zip(model.units, best.units, strict=True))
    said = [
        _arrivals(forecast),
        *(["jobs that nothing can be rented for wait until a machine is free"] if None in given.rented else []),
        "a run may be done on any machine that does it in time, and several share one machine by its accelerators",
        "the mix of jobs at each level of load is its average there",
        (
            "own machines are bought at the start and replaced at the end of their life at the same price; prices of "
            "clouds, electricity and machines stay as they are"
        ),
        (
            f"sums are discounted at {forecast.discount_rate:.3g} a year, and machines are sold at the end of the horizon "
            "for their straight-line value"
        ),
        "electricity is paid while a machine works; staff, space and repairs are not counted",
        "a bought machine works for one job or part of one; nodes bought with a network between them may work together",
        *_there(forecast, given, bought=bought),
    ]
    if len(forecast.scenarios) > 1:
        names = ", ".join(f"{name} {probability:.0%}" for name, probability in forecast.scenarios)
        said.append(
            f"one scenario holds for all jobs and the whole horizon ({names}); machines are chosen before it is known"
        )
    if commits:
        said.append("a term that begins within the horizon is paid to its end, and renewed as long as its period lasts")
    if any(isinstance(each, Spending) for each in given.sources):
        said.append(
            "a savings plan covers what runs in an hour up to its dollars at the plan's rates, what is beyond is rented "
            "and what is not used is lost; each job runs where the plan's rate and its other costs are least"
        )
    if model.levels_joined:
        said.append(
            "levels of load are put together in steps, each at its mean: a small change of load within a step is not seen"
        )
    return tuple(dict.fromkeys([*said, *forecast.assumptions]))


def _there(forecast: Forecast, given: Served, *, bought: bool) -> list[str]:
    """What is taken of machines and commitments that the user has."""
    sources = [each for each in given.sources if is_there(each)]
    if not sources:
        return ["no own machines and no held commitments are counted: none are in the inventory or the settings"]
    said = ["what you have is paid for: own machines cost electricity only, held commitments nothing"]
    if any(isinstance(each, Machine) for each in sources):
        said.append("machines in the inventory last the whole horizon, and work in the share of its hours that is free")
    if any(not isinstance(each, Machine) for each in sources):
        until = "the whole horizon (held_until says where they end sooner)"
        if forecast.held_years is not None:
            until = f"{forecast.held_years:.2f} years (held_until); none is renewed but by what is committed to here"
        said.append(f"held commitments last {until}")
    if any(isinstance(each, Spending) and each.held_usd is not None for each in sources):
        said.append(
            "a held savings plan is charged at the rates of the catalogue, the cheaper of the kinds of plan: a Compute "
            "Savings Plan covers less where another is cheaper; state its rates as discounts"
        )
    if bought and forecast.limits.stated:
        said.append("the limits are for what is bought on top of what you have")
    return said


def _arrivals(forecast: Forecast) -> str:
    if forecast.jobs_wait:
        return (
            "runs wait until a machine is free, so that the load is even (jobs_wait); deadlines hold for the run itself"
        )
    return "runs come at random times (Poisson) and start at once: one that finds no free machine is rented for until one is free"


def warnings(
    forecast: Forecast, buy: tuple[Purchase, ...], rent: tuple[Rent, ...], spend: tuple[Spend, ...], gap: float
) -> tuple[str, ...]:
    """What may make the answer wrong."""
    said = []
    for plan in spend:
        for each in dict.fromkeys(each for each in plan.plan.on if each is not None):
            age_days = (forecast.start - each.observed_at).days
            if age_days > STALE_AFTER_DAYS:
                what = f"{each.instance_type} in {each.region} ({each.price_kind})"
                said.append(f"{what}: the rate was observed {age_days} days before the start; check it")
    for offer in dict.fromkeys(each.choice.offer for each in rent if each.choice is not None):
        what = f"{offer.instance_type} in {offer.region} ({offer.price_kind})"
        said += [f"{what}: {figure.replace('_', ' ')} is modelled, not published" for figure in offer.modelled]
        age_days = (forecast.start - offer.observed_at).days
        if age_days > STALE_AFTER_DAYS:
            said.append(f"{what}: the price was observed {age_days} days before the start; check it")
    for purchase in buy:
        machine = purchase.machine
        said += [f"{machine.name}: {figure.replace('_', ' ')} is modelled, not quoted" for figure in machine.modelled]
        if machine.as_of and (forecast.start.date() - date.fromisoformat(machine.as_of)).days > OLD_PRICE_DAYS:
            years = (forecast.start.date() - date.fromisoformat(machine.as_of)).days / 365
            said.append(
                f"{machine.name}: the price is of {machine.as_of}, {years:.1f} years old; give a quotation of today (prices)"
            )
        if purchase.breaks_even_years is None and purchase.saves_usd is not None:
            said.append(f"{machine.name} pays off only by what it is sold for at the end")
    if gap > _OPEN_GAP:
        said.append(f"the time ran out: an answer up to {gap:.2%} cheaper may exist")
    return tuple(dict.fromkeys(said))
