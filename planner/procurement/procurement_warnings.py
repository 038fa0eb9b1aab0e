"""The assumptions and warnings of a procurement decision."""

from datetime import date

from gpuplan.catalog.model.offer import Offer
from gpuplan.catalog.model.regions import place_in_words
from gpuplan.planner.explain.assumptions_and_warnings import STALE_AFTER_DAYS
from gpuplan.planner.procurement.capacity_expansion import Expanded
from gpuplan.planner.procurement.commitments import Spending
from gpuplan.planner.procurement.forecast import Forecast, Machine
from gpuplan.planner.procurement.procurement_model import Model
from gpuplan.planner.procurement.procurement_plan import Purchase, Rent, Spend
from gpuplan.planner.procurement.served_jobs import Served, is_there

#: Within this many days accelerator prices change by more than a tenth.
OLD_PRICE_DAYS = 365
#: A larger gap gets a warning.
_OPEN_GAP = 1e-4


def assumptions(forecast: Forecast, given: Served, model: Model, best: Expanded, *, commits: bool) -> tuple[str, ...]:
    """The assumptions of the answer, the most consequential first."""
    priced_configurations = any(
        not is_there(given.sources[u.source]) and n > 0 for u, n in zip(model.units, best.units, strict=True)
    )
    sentences = [
        _arrivals(forecast),
        *(["jobs that cannot be rented wait until a machine is free"] if None in given.rented else []),
        "a run may use any machine that finishes it in time, and several runs share a machine by its accelerators",
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
        *_on_owned_supply(forecast, given, priced_configurations=priced_configurations),
    ]
    if len(forecast.scenarios) > 1:
        names = ", ".join(f"{name} {probability:.0%}" for name, probability in forecast.scenarios)
        sentences.append(
            f"one scenario holds for all jobs and the whole horizon ({names}); machines are chosen before it is known"
        )
    if commits:
        sentences.append(
            "a term that begins within the horizon is paid to its end, and renewed as long as its period lasts"
        )
    if any(isinstance(source, Spending) for source in given.sources):
        sentences.append(
            "a savings plan covers what runs in an hour up to its dollars at the plan's rates, what is beyond is rented "
            "and what is not used is lost; each job runs where the plan's rate and its other costs are least"
        )
    if model.levels_joined:
        sentences.append(
            "levels of load are put together in steps, each at its mean: a small change of load within a step is not seen"
        )
    return tuple(dict.fromkeys([*sentences, *forecast.assumptions]))


def _on_owned_supply(forecast: Forecast, given: Served, *, priced_configurations: bool) -> list[str]:
    """Assumptions about existing machines and commitments."""
    sources = [source for source in given.sources if is_there(source)]
    if not sources:
        return ["no own machines and no held commitments are counted: none are in the inventory or the settings"]
    sentences = ["what you have is paid for: own machines cost electricity only, held commitments nothing"]
    if any(isinstance(source, Machine) for source in sources):
        sentences.append(
            "machines in the inventory last the whole horizon, and work in the share of its hours that is free"
        )
    if any(not isinstance(source, Machine) for source in sources):
        until = "the whole horizon (held_until says where they end sooner)"
        if forecast.existing_years is not None:
            until = (
                f"{forecast.existing_years:.2f} years (held_until); none is renewed but by what is committed to here"
            )
        sentences.append(f"held commitments last {until}")
    if any(isinstance(source, Spending) and source.existing_usd is not None for source in sources):
        sentences.append(
            "a held savings plan is charged at the rates of the catalogue, the cheaper of the kinds of plan: a Compute "
            "Savings Plan covers less where another is cheaper; state its rates as discounts"
        )
    if priced_configurations and forecast.limits.stated:
        sentences.append("the limits are for what is bought on top of what you have")
    return sentences


def _arrivals(forecast: Forecast) -> str:
    if forecast.jobs_wait:
        return (
            "runs wait until a machine is free, so that the load is even (jobs_wait); deadlines hold for the run itself"
        )
    return "runs come at random times (Poisson) and start at once: one that finds no free machine is rented for until one is free"


def warnings(
    forecast: Forecast, buy: tuple[Purchase, ...], rent: tuple[Rent, ...], spend: tuple[Spend, ...], gap: float
) -> tuple[str, ...]:
    """Figures and conditions that may make the answer wrong."""
    sentences = []
    for plan in spend:
        for fromkey in dict.fromkeys(source for source in plan.plan.on if source is not None):
            age_days = (forecast.start - fromkey.observed_at).days
            if age_days > STALE_AFTER_DAYS:
                what = _named(fromkey)
                sentences.append(f"{what}: the rate was observed {age_days} days before the start; check it")
    for offer in dict.fromkeys(rent.choice.offer for rent in rent if rent.choice is not None):
        what = _named(offer)
        sentences += [f"{what}: {figure.replace('_', ' ')} is modelled, not published" for figure in offer.modelled]
        age_days = (forecast.start - offer.observed_at).days
        if age_days > STALE_AFTER_DAYS:
            sentences.append(f"{what}: the price was observed {age_days} days before the start; check it")
    for purchase in buy:
        machine = purchase.machine
        sentences += [
            f"{machine.name}: {figure.replace('_', ' ')} is modelled, not quoted" for figure in machine.modelled
        ]
        if machine.as_of and (forecast.start.date() - date.fromisoformat(machine.as_of)).days > OLD_PRICE_DAYS:
            years = (forecast.start.date() - date.fromisoformat(machine.as_of)).days / 365
            sentences.append(
                f"{machine.name}: the price is of {machine.as_of}, {years:.1f} years old; give a quotation of today (prices)"
            )
        if purchase.breaks_even_years is None and purchase.saves_usd is not None:
            sentences.append(f"{machine.name} breaks even only with its resale value at the end")
    if gap > _OPEN_GAP:
        sentences.append(f"the time limit ended the search: an answer up to {gap:.2%} cheaper may exist")
    return tuple(dict.fromkeys(sentences))


def _named(offer: Offer) -> str:
    """`p5.48xlarge in aws us-east-1, on demand`."""
    place = place_in_words(offer.provider, offer.region)
    return f"{offer.instance_type} in {place}, {offer.price_kind.replace('_', ' ')}"
