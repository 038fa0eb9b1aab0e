"""The parts of an answer, read off the solved model: how much each source works, and what it is owed and costs."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from planner.answer import Choice
from planner.buying.answer import Commit, Costs, Rent, Spend, Use
from planner.buying.finance import HOURS_PER_YEAR
from planner.buying.forecast import Forecast, Machine
from planner.buying.model import Model, Unit
from planner.buying.served import Served, is_there
from planner.buying.terms import Node, Spending
from planner.buying.words import source_name
from planner.optimise.buying import Expanded

Floats = NDArray[np.float64]


def machines_to_buy(given: Served, model: Model) -> list[int]:
    """Units that are machines to buy."""
    return [
        u
        for u, each in enumerate(model.units)
        if isinstance(source := given.sources[each.source], Machine) and source.own is None
    ]


def machine_hours(model: Model, best: Expanded) -> Floats:
    """[blocks, units]: machines of each unit at work in each block."""
    able = np.where(np.isfinite(model.expansion.machine_hours), model.expansion.machine_hours, 0.0)
    return np.asarray(np.einsum("blj,lj,bj->bl", best.share, able, model.expansion.runs_per_hour), np.float64)


def _years(model: Model) -> Floats:
    """Undiscounted years of each block: of its period, its share."""
    lengths = np.array([sum(duration for _, duration in each.spans) for each in model.periods])
    return np.asarray(lengths[model.period_of] * model.chance_of, np.float64)


def busy_share(model: Model, best: Expanded, u: int) -> float:
    """Share of the hours of a unit's own periods that it works, all of the same kind together."""
    years = _years(model) * model.expansion.lasts[u]
    return float((machine_hours(model, best)[:, u] * years).sum() / (years.sum() * best.units[u]))


def runs_a_year(forecast: Forecast, model: Model, best: Expanded, u: int) -> tuple[float, ...]:
    """Runs a year of each job on a unit, on average over the horizon."""
    per_hour = best.share[:, u, :] * model.expansion.runs_per_hour
    total = (per_hour * _years(model)[:, None]).sum(axis=0) * HOURS_PER_YEAR / forecast.horizon_years
    return tuple(float(each) for each in total)


def uses(forecast: Forecast, given: Served, model: Model, best: Expanded) -> tuple[Use, ...]:
    """What is there already, used or not."""
    found = []
    for u, unit in enumerate(model.units):
        source = given.sources[unit.source]
        if not is_there(source) or not unit.periods:
            continue
        whole = replace(best, units=np.full(len(best.units), unit.most))
        what = source_name(given, source)
        busy = busy_share(model, whole, u)
        found.append(Use(what=what, units=unit.most, busy=busy, runs_per_year=runs_a_year(forecast, model, best, u)))
    return tuple(found)


def commitments(forecast: Forecast, given: Served, model: Model, best: Expanded) -> tuple[Commit, ...]:
    """What is entered into under a term, node by node."""
    found = []
    market = given.market
    for u, unit in enumerate(model.units):
        node = given.sources[unit.source]
        if not isinstance(node, Node) or node.held is not None or not best.units[u]:
            continue
        first, last = _span(model, unit)
        found.append(
            Commit(
                offer=market.columns.offer(int(market.snapshot.original[node.place])),
                accelerator=market.columns.instance_types[int(market.snapshot.type_index[node.place])].accelerator,
                units=round(float(best.units[u])),
                from_year=first,
                until_year=last,
                obligation_usd=_paid(unit) * float(best.units[u]),
                busy=busy_share(model, best, u),
                runs_per_year=runs_a_year(forecast, model, best, u),
            )
        )
    return tuple(found)


def spending(forecast: Forecast, given: Served, model: Model, best: Expanded) -> tuple[Spend, ...]:
    """Savings plans that are entered into."""
    found = []
    for u, unit in enumerate(model.units):
        plan = given.sources[unit.source]
        if isinstance(plan, Spending) and plan.held_usd is None and best.units[u] > _LEAST_SPENT:
            first, last = _span(model, unit)
            found.append(
                Spend(
                    plan=plan,
                    usd_per_hour=float(best.units[u]),
                    from_year=first,
                    until_year=last,
                    obligation_usd=_paid(unit) * float(best.units[u]),
                    busy=busy_share(model, best, u),
                    runs_per_year=runs_a_year(forecast, model, best, u),
                )
            )
    return tuple(found)


#: AWS takes commitments from a tenth of a cent per hour on.
_LEAST_SPENT = 1e-3


def _span(model: Model, unit: Unit) -> tuple[float, float]:
    """From and until when a commitment serves, in years."""
    spans = [span for p in unit.periods for span in model.periods[p].spans]
    return min(start for start, _ in spans), max(start + duration for start, duration in spans)


def _paid(unit: Unit) -> float:
    """What one unit is owed for in the end, in dollars of the day."""
    return sum(duration * usd for _, duration, usd in unit.even_usd) + sum(usd for _, usd in unit.sums_usd)


def rents(forecast: Forecast, given: Served, model: Model, best: Expanded) -> tuple[Rent, ...]:
    """One element per job."""
    demand = model.expansion.runs_per_hour
    years = _years(model)[:, None]
    wanted = (demand * years).sum(axis=0) * HOURS_PER_YEAR / forecast.horizon_years
    left = (demand * np.maximum(0.0, 1.0 - best.share.sum(axis=1)) * years).sum(axis=0)
    left *= HOURS_PER_YEAR / forecast.horizon_years
    found = []
    for j, choice in enumerate(given.rented):
        share = float(left[j] / wanted[j]) if wanted[j] > 0 else 0.0
        share = 0.0 if share < _NOTHING else share
        kept: Choice | None = choice if share else None
        found.append(Rent(choice=kept, runs_per_year=float(left[j]) if share else 0.0, share=share))
    return tuple(found)


#: A share of runs below this is a solver's tolerance, not something to rent.
_NOTHING = 1e-7


def costs_of(given: Served, model: Model, best: Expanded, stay: Expanded | None) -> Costs:
    """The parts of the objective."""
    data = model.expansion
    fixed = data.fixed_usd * best.units
    own = np.zeros(len(fixed), np.bool_)
    own[machines_to_buy(given, model)] = True
    runs = best.share * data.runs_per_hour[:, None, :] * data.hours[:, None, None]
    running = float((runs * np.where(np.isfinite(data.running_usd), data.running_usd, 0.0)).sum())
    rentable = np.isfinite(data.rent_usd)
    total = (data.runs_per_hour * data.hours[:, None]).sum(axis=0)
    rest = np.maximum(0.0, total - runs.sum(axis=(0, 1)))
    renting = float((rest * np.where(rentable, data.rent_usd, 0.0)).sum())
    return Costs(
        machines_usd=float(fixed[own].sum()),
        terms_usd=float(fixed[~own].sum()),
        running_usd=running,
        renting_usd=renting,
        rent_only_usd=float(total @ data.rent_usd) if rentable.all() else None,
        stay_usd=None if stay is None else stay.objective_usd,
    )


def upfront_of_terms(model: Model, best: Expanded) -> float:
    """What is paid at the start for one and all of the terms."""
    return float(
        sum(float(best.units[u]) * usd for u, each in enumerate(model.units) for at, usd in each.sums_usd if at == 0)
    )
