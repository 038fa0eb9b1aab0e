"""The sentences under a decision to buy: what it assumes, and what to know before money is spent."""

from datetime import date

from planner.buying.answer import Purchase, Rent
from planner.buying.forecast import Forecast
from planner.buying.model import Model
from planner.explain.statements import STALE_AFTER_DAYS

#: Prices of accelerators move by more than a tenth within so many days.
OLD_PRICE_DAYS = 365
#: A gap above this is worth a warning.
_OPEN_GAP = 1e-4


def assumptions(forecast: Forecast, model: Model, *, commits: bool, waits: bool) -> tuple[str, ...]:
    """What the answer takes for granted, the most consequential first."""
    said = [
        _arrivals(forecast),
        *(["jobs that nothing can be rented for wait until a machine is free"] if waits else []),
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
        "machines in the inventory and commitments already held are not counted: this is for work beyond them",
    ]
    if len(forecast.scenarios) > 1:
        names = ", ".join(f"{name} {probability:.0%}" for name, probability in forecast.scenarios)
        said.append(
            f"one scenario holds for all jobs and the whole horizon ({names}); machines are chosen before it is known"
        )
    if commits:
        said.append("a term that begins within the horizon is paid to its end, and renewed as long as its period lasts")
    if model.levels_joined:
        said.append(
            "levels of load are put together in steps, each at its mean: a small change of load within a step is not seen"
        )
    return tuple(dict.fromkeys([*said, *forecast.assumptions]))


def _arrivals(forecast: Forecast) -> str:
    if forecast.jobs_wait:
        return (
            "runs wait until a machine is free, so that the load is even (jobs_wait); deadlines hold for the run itself"
        )
    return "runs come at random times (Poisson) and start at once: one that finds no free machine is rented for until one is free"


def warnings(forecast: Forecast, buy: tuple[Purchase, ...], rent: tuple[Rent, ...], gap: float) -> tuple[str, ...]:
    """What may make the answer wrong."""
    said = []
    for offer in dict.fromkeys(each.choice.offer for each in rent if each.choice is not None):
        what = f"{offer.instance_type} in {offer.region} ({offer.price_kind})"
        said += [f"{what}: {figure.replace('_', ' ')} is modelled, not published" for figure in offer.modelled]
        age_days = (forecast.start - offer.observed_at).days
        if age_days > STALE_AFTER_DAYS:
            said.append(f"{what}: the price was observed {age_days} days before the start; check it")
    for each in buy:
        machine = each.machine
        said += [f"{machine.name}: {figure.replace('_', ' ')} is modelled, not quoted" for figure in machine.modelled]
        if machine.as_of and (forecast.start.date() - date.fromisoformat(machine.as_of)).days > OLD_PRICE_DAYS:
            said.append(f"{machine.name}: the price is of {machine.as_of}; give a quotation of today (prices)")
        if each.breaks_even_years is None and each.saves_usd is not None:
            said.append(f"{machine.name} pays off only by what it is sold for at the end")
    if gap > _OPEN_GAP:
        said.append(f"the time ran out: an answer up to {gap:.2%} cheaper may exist")
    return tuple(dict.fromkeys(said))
