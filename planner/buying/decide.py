"""Own, commit or rent: the answer to a forecast."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from catalog.columns import Columns
from catalog.owned import OwnedMachine
from planner.answer import Choice
from planner.buying.answer import Commit, Costs, Decided, Impossible, Instead, Proof, Purchase, Rent, Spend, Use
from planner.buying.binding import binding
from planner.buying.break_even import breaks_even
from planner.buying.finance import HOURS_PER_YEAR
from planner.buying.forecast import Forecast, Machine
from planner.buying.model import Model, Unit, model_of, refuse_what_is_too_large
from planner.buying.risk import risk
from planner.buying.sensitivity import MOST_SHARES, sensitivity
from planner.buying.served import Served, is_there, served
from planner.buying.statements import assumptions, warnings
from planner.buying.terms import Node, Spending
from planner.buying.words import in_words, source_name
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
    commit = _commitments(forecast, given, model, best)
    spend = _spending(forecast, given, model, best)
    rent = _rents(forecast, given, model, best)
    stay = _without(model, best, _new(given, model))
    return Decided(
        forecast=forecast,
        snapshot_id=columns.snapshot_id,
        use=_uses(forecast, given, model, best),
        buy=buy,
        commit=commit,
        spend=spend,
        rent=rent,
        costs=costs_of(given, model, best, stay),
        risk=None if stay is None else risk(forecast, model, best, stay),
        binding=binding(given, model, best, lambda units: in_words(given, model, units)),
        instead=_instead(given, model, best),
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
    mine = [u for u in _machines(given, model) if not best.units[u] and able[u].any()]
    found = []
    for u in sorted(mine, key=lambda u: float(best.missing_usd[u] / max(1.0, data.fixed_usd[u])))[:CLOSEST]:
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


def _machines(given: Served, model: Model) -> list[int]:
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


def _busy(model: Model, best: Expanded, u: int) -> float:
    """Share of the hours of a unit's own periods that it works, all of the same kind together."""
    years = _years(model) * model.expansion.lasts[u]
    return float((machine_hours(model, best)[:, u] * years).sum() / (years.sum() * best.units[u]))


def _runs(forecast: Forecast, model: Model, best: Expanded, u: int) -> tuple[float, ...]:
    """Runs a year of each job on a unit, on average over the horizon."""
    per_hour = best.share[:, u, :] * model.expansion.runs_per_hour
    total = (per_hour * _years(model)[:, None]).sum(axis=0) * HOURS_PER_YEAR / forecast.horizon_years
    return tuple(float(each) for each in total)


def _uses(forecast: Forecast, given: Served, model: Model, best: Expanded) -> tuple[Use, ...]:
    """What is there already, used or not."""
    found = []
    for u, unit in enumerate(model.units):
        source = given.sources[unit.source]
        if not is_there(source) or not unit.periods:
            continue
        whole = replace(best, units=np.full(len(best.units), unit.most))
        what = source_name(given, source)
        busy = _busy(model, whole, u)
        found.append(Use(what=what, units=unit.most, busy=busy, runs_per_year=_runs(forecast, model, best, u)))
    return tuple(found)


def _purchases(given: Served, forecast: Forecast, model: Model, best: Expanded) -> tuple[Purchase, ...]:
    found = []
    for u in _machines(given, model):
        machine = given.sources[model.units[u].source]
        if best.units[u] and isinstance(machine, Machine):
            instead = _again(model, best, _none_of(model.expansion.most_units, u))
            missing = _again(model, best, _none_of(best.units, u))
            found.append(
                Purchase(
                    machine=machine,
                    units=round(float(best.units[u])),
                    busy=_busy(model, best, u),
                    runs_per_year=_runs(forecast, model, best, u),
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


def _commitments(forecast: Forecast, given: Served, model: Model, best: Expanded) -> tuple[Commit, ...]:
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
                busy=_busy(model, best, u),
                runs_per_year=_runs(forecast, model, best, u),
            )
        )
    return tuple(found)


def _spending(forecast: Forecast, given: Served, model: Model, best: Expanded) -> tuple[Spend, ...]:
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
                    busy=_busy(model, best, u),
                    runs_per_year=_runs(forecast, model, best, u),
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


def costs_of(given: Served, model: Model, best: Expanded, stay: Expanded | None) -> Costs:
    """The parts of the objective."""
    data = model.expansion
    fixed = data.fixed_usd * best.units
    own = np.zeros(len(fixed), np.bool_)
    own[_machines(given, model)] = True
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


def _upfront_of_terms(model: Model, best: Expanded) -> float:
    return float(
        sum(float(best.units[u]) * usd for u, each in enumerate(model.units) for at, usd in each.sums_usd if at == 0)
    )
