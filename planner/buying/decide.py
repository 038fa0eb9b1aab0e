"""Own, commit or rent: the answer to a forecast."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from catalog.columns import Columns
from catalog.owned import OwnedMachine
from planner.buying.answer import Decided, Impossible, Instead, Proof, Purchase
from planner.buying.binding import binding
from planner.buying.break_even import breaks_even
from planner.buying.forecast import Forecast, Machine
from planner.buying.model import Model, model_of, refuse_what_is_too_large
from planner.buying.parts import (
    busy_share,
    commitments,
    costs_of,
    machines_to_buy,
    rents,
    runs_a_year,
    spending,
    upfront_of_terms,
    uses,
)
from planner.buying.risk import risk
from planner.buying.sensitivity import MOST_SHARES, sensitivity
from planner.buying.served import Served, is_there, served
from planner.buying.statements import assumptions, warnings
from planner.buying.terms import Node, Spending
from planner.buying.words import in_words
from planner.optimise.buying import Expanded, expand
from planner.settings import PlannerSettings

Floats = NDArray[np.float64]


def decide(
    forecast: Forecast, columns: Columns, settings: PlannerSettings, owned: tuple[OwnedMachine, ...] = ()
) -> Decided | Impossible:
    """What to buy, commit to and rent so that the forecast costs least over the horizon, at the start's value.

    `owned` machines and the commitments that `settings` hold serve it too, as what is paid for already.

    Raises `UnusableInput` for jobs that contradict themselves or the catalogue, and for more than can be solved.
    """
    given = served(forecast, columns, settings, owned)
    homeless = _homeless(forecast, given)
    if homeless:
        reason = "nothing that may be bought, committed to or rented runs it in time and within its requirements"
        return Impossible(forecast=forecast, snapshot_id=columns.snapshot_id, jobs=homeless, reason=reason)
    model = model_of(forecast, given)
    refuse_what_is_too_large(model.expansion)
    best = expand(model.expansion)
    if best is None:
        owned_only = tuple(j for j, each in enumerate(given.rented) if each is None)
        reason = "nothing can be rented for it, and the machines for it do not fit into the limits"
        return Impossible(forecast=forecast, snapshot_id=columns.snapshot_id, jobs=owned_only, reason=reason)
    return _decided(forecast, columns, given, model, best)


def _homeless(forecast: Forecast, given: Served) -> tuple[int, ...]:
    """Jobs with runs that no source can do."""
    able = np.isfinite(given.machine_hours).any(axis=0)
    return tuple(
        j
        for j, each in enumerate(forecast.jobs)
        if not able[j] and given.rented[j] is None and max(each.runs_per_year) > 0
    )


def _decided(forecast: Forecast, columns: Columns, given: Served, model: Model, best: Expanded) -> Decided:
    buy = _purchases(given, forecast, model, best)
    commit = commitments(forecast, given, model, best)
    spend = spending(forecast, given, model, best)
    rent = rents(forecast, given, model, best)
    stay = _without(model, best, _new(given, model))
    return Decided(
        forecast=forecast,
        snapshot_id=columns.snapshot_id,
        use=uses(forecast, given, model, best),
        buy=buy,
        commit=commit,
        spend=spend,
        rent=rent,
        costs=costs_of(given, model, best, stay),
        risk=None if stay is None else risk(forecast, model, best, stay),
        binding=binding(given, model, best, lambda units: in_words(given, model, units)),
        instead=_instead(given, model, best),
        upfront_usd=sum(each.units * each.machine.usd for each in buy) + upfront_of_terms(model, best),
        watts=sum(each.units * each.machine.watts for each in buy),
        slots=sum(each.units * each.machine.slots for each in buy),
        sensitivity=sensitivity(forecast, given, model, best),
        proof=Proof(
            objective_usd=best.objective_usd,
            bound_usd=best.bound_usd,
            gap=best.gap,
            solver=best.solver,
            machines=len(forecast.machines),
            terms=sum(isinstance(each, Node | Spending) and not is_there(each) for each in given.sources),
            blocks=len(model.expansion.hours),
            variables=best.variables,
        ),
        assumptions=assumptions(forecast, given, model, best, commits=bool(commit or spend)),
        warnings=warnings(forecast, buy, rent, spend, best.gap),
    )


def _new(given: Served, model: Model) -> NDArray[np.bool_]:
    """[units]: what is decided about; the others are there already."""
    return np.array([not is_there(given.sources[each.source]) for each in model.units], np.bool_)


def _without(model: Model, best: Expanded, units: NDArray[np.bool_]) -> Expanded | None:
    """The best answer with none of these units."""
    if not (best.units[units] > 0).any():
        return best
    return _again(model, best, np.where(units, 0.0, model.expansion.most_units))


#: The machines that come closest to paying of those that are not bought, and how many of them are asked after.
CLOSEST = 3


def _instead(given: Served, model: Model, best: Expanded) -> tuple[Instead, ...]:
    """What the best answer with at least one of a machine costs more, for the machines that come closest to paying.

    Close is what a unit misses, as a share of its price; one that can do no job is not asked after.
    """
    data = model.expansion
    able = np.isfinite(data.machine_hours)
    mine = [u for u in machines_to_buy(given, model) if not best.units[u] and able[u].any()]
    missing = best.missing_usd / np.maximum(1.0, data.fixed_usd)
    found = []
    for u in sorted(mine, key=lambda u: float(missing[u]))[:CLOSEST]:
        least = data.least_units.copy()
        least[u] = 1.0
        other = expand(replace(data, least_units=least), likely=best.units > 0, most_shares=MOST_SHARES)
        source = given.sources[model.units[u].source]
        if other is not None and isinstance(source, Machine):
            found.append(
                Instead(
                    machine=source,
                    units=round(float(other.units[u])),
                    extra_usd=max(0.0, other.objective_usd - best.objective_usd),
                    never=bool((data.running_usd[u] >= data.rent_usd)[able[u]].all()),
                )
            )
    return tuple(sorted(found, key=lambda each: each.extra_usd))


def _purchases(given: Served, forecast: Forecast, model: Model, best: Expanded) -> tuple[Purchase, ...]:
    found = []
    for u in machines_to_buy(given, model):
        machine = given.sources[model.units[u].source]
        if best.units[u] and isinstance(machine, Machine):
            instead = _again(model, best, _none_of(model.expansion.most_units, u))
            missing = _again(model, best, _none_of(best.units, u))
            found.append(
                Purchase(
                    machine=machine,
                    units=round(float(best.units[u])),
                    busy=busy_share(model, best, u),
                    runs_per_year=runs_a_year(forecast, model, best, u),
                    breaks_even_years=None if missing is None else breaks_even(forecast, given, model, best, missing),
                    saves_usd=None if instead is None else instead.objective_usd - best.objective_usd,
                )
            )
    return tuple(found)


def _again(model: Model, best: Expanded, most_units: Floats) -> Expanded | None:
    """The best answer with at most so many units."""
    changed = replace(model.expansion, most_units=most_units)
    return expand(changed, likely=best.units > 0, most_shares=MOST_SHARES)


def _none_of(most_units: Floats, u: int) -> Floats:
    most = most_units.copy()
    most[u] = 0.0
    return most
