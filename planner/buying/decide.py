"""Own, commit or rent: the answer to a forecast."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from catalog.columns import Columns
from planner.answer import Choice
from planner.buying.answer import Commit, Costs, Decided, Impossible, Proof, Purchase, Rent
from planner.buying.break_even import breaks_even
from planner.buying.finance import HOURS_PER_YEAR
from planner.buying.forecast import Forecast
from planner.buying.model import Model, model_of, refuse_what_is_too_large
from planner.buying.sensitivity import sensitivity
from planner.buying.served import Served, served
from planner.buying.statements import assumptions, warnings
from planner.optimise.buying import Expanded, expand
from planner.settings import PlannerSettings

Floats = NDArray[np.float64]


def decide(forecast: Forecast, columns: Columns, settings: PlannerSettings) -> Decided | Impossible:
    """What to buy, commit to and rent so that the forecast costs least over the horizon, at the start's value.

    Raises `UnusableInput` for jobs that contradict themselves or the catalogue, and for more than can be solved.
    """
    given = served(forecast, columns, settings)
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
    buy = _purchases(forecast, model, best)
    commit = _commitments(forecast, given, model, best)
    rent = _rents(forecast, given, model, best)
    return Decided(
        forecast=forecast,
        snapshot_id=columns.snapshot_id,
        buy=buy,
        commit=commit,
        rent=rent,
        costs=costs_of(forecast, model, best),
        upfront_usd=sum(each.units * each.machine.usd for each in buy) + _upfront_of_terms(model, best),
        watts=sum(each.units * each.machine.watts for each in buy),
        slots=sum(each.units * each.machine.slots for each in buy),
        sensitivity=sensitivity(forecast, given, model, best),
        proof=Proof(
            objective_usd=best.objective_usd,
            bound_usd=best.bound_usd,
            gap=best.gap,
            solver=best.solver,
            machines=len(forecast.machines),
            terms=len(given.nodes),
            blocks=len(model.expansion.hours),
            variables=best.variables,
        ),
        assumptions=assumptions(forecast, model, commits=bool(commit), waits=None in given.rented),
        warnings=warnings(forecast, buy, rent, best.gap),
    )


def machine_hours(model: Model, best: Expanded) -> Floats:
    """[blocks, units]: machines of each unit at work in each block."""
    able = np.where(np.isfinite(model.expansion.machine_hours), model.expansion.machine_hours, 0.0)
    return np.asarray(np.einsum("blj,lj,bj->bl", best.share, able, model.expansion.runs_per_hour), np.float64)


def _years(model: Model) -> Floats:
    """Undiscounted years of each block: of its period, its share."""
    lengths = np.array([sum(duration for _, duration in each.spans) for each in model.periods])
    return np.asarray(lengths[model.period_of] * model.chance_of, np.float64)


def _busy(model: Model, best: Expanded, u: int) -> float:
    """Share of the hours of a unit's own periods that it works, all of the same kind together."""
    years = _years(model) * model.expansion.lasts[u]
    return float((machine_hours(model, best)[:, u] * years).sum() / (years.sum() * best.units[u]))


def _runs(forecast: Forecast, model: Model, best: Expanded, u: int) -> tuple[float, ...]:
    """Runs a year of each job on a unit, on average over the horizon."""
    per_hour = best.share[:, u, :] * model.expansion.runs_per_hour
    total = (per_hour * _years(model)[:, None]).sum(axis=0) * HOURS_PER_YEAR / forecast.horizon_years
    return tuple(float(each) for each in total)


def _purchases(forecast: Forecast, model: Model, best: Expanded) -> tuple[Purchase, ...]:
    found = []
    for u, unit in enumerate(model.units):
        if unit.source < len(forecast.machines) and best.units[u]:
            instead = expand(replace(model.expansion, most_units=_none_of(model.expansion.most_units, u)))
            missing = expand(replace(model.expansion, most_units=_none_of(best.units.astype(np.float64), u)))
            found.append(
                Purchase(
                    machine=forecast.machines[unit.source],
                    units=int(best.units[u]),
                    busy=_busy(model, best, u),
                    runs_per_year=_runs(forecast, model, best, u),
                    breaks_even_years=None if missing is None else breaks_even(forecast, model, best, missing),
                    saves_usd=None if instead is None else instead.objective_usd - best.objective_usd,
                )
            )
    return tuple(found)


def _none_of(most_units: Floats, u: int) -> Floats:
    most = most_units.copy()
    most[u] = 0.0
    return most


def _commitments(forecast: Forecast, given: Served, model: Model, best: Expanded) -> tuple[Commit, ...]:
    found = []
    market = given.market
    for u, unit in enumerate(model.units):
        if unit.source < len(forecast.machines) or not best.units[u]:
            continue
        node = given.nodes[unit.source - len(forecast.machines)]
        offer = market.columns.offer(int(market.snapshot.original[node.place]))
        spans = [span for p in unit.periods for span in model.periods[p].spans]
        paid = sum(duration * usd for _, duration, usd in unit.even_usd) + sum(usd for _, usd in unit.sums_usd)
        found.append(
            Commit(
                offer=offer,
                accelerator=market.columns.instance_types[int(market.snapshot.type_index[node.place])].accelerator,
                units=int(best.units[u]),
                from_year=min(start for start, _ in spans),
                until_year=max(start + duration for start, duration in spans),
                obligation_usd=paid * int(best.units[u]),
                busy=_busy(model, best, u),
                runs_per_year=_runs(forecast, model, best, u),
            )
        )
    return tuple(found)


def _rents(forecast: Forecast, given: Served, model: Model, best: Expanded) -> tuple[Rent, ...]:
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


def costs_of(forecast: Forecast, model: Model, best: Expanded) -> Costs:
    """The parts of the objective."""
    given = model.expansion
    fixed = given.fixed_usd * best.units
    own = np.array([each.source < len(forecast.machines) for each in model.units], np.bool_)
    runs = best.share * given.runs_per_hour[:, None, :] * given.hours[:, None, None]
    running = float((runs * np.where(np.isfinite(given.running_usd), given.running_usd, 0.0)).sum())
    rentable = np.isfinite(given.rent_usd)
    total = (given.runs_per_hour * given.hours[:, None]).sum(axis=0)
    rest = np.maximum(0.0, total - runs.sum(axis=(0, 1)))
    renting = float((rest * np.where(rentable, given.rent_usd, 0.0)).sum())
    return Costs(
        machines_usd=float(fixed[own].sum()),
        terms_usd=float(fixed[~own].sum()),
        running_usd=running,
        renting_usd=renting,
        rent_only_usd=float(total @ given.rent_usd) if rentable[total > 0].all() and rentable.all() else None,
    )


def _upfront_of_terms(model: Model, best: Expanded) -> float:
    return float(
        sum(int(best.units[u]) * usd for u, each in enumerate(model.units) for at, usd in each.sums_usd if at == 0)
    )
