"""Cost a year of a decision in each scenario: of own machines, of commitments, and of renting.

What is paid at once is spread evenly, as an equivalent annual cost: with the present value F of a unit, and D the present
value of a dollar a year over the years that the unit serves (`running_years`), its cost is F / D a year. The present value
of all years is then the cost of the scenario.

Cost of a decision in each scenario of the forecast, compared with buying and committing to nothing.

Machines and terms are chosen before the scenario is known, so their cost is the same in all scenarios; running and
renting costs differ. With probabilities p_s and present values C_s (answer) and N_s (nothing bought):

    saves_s = N_s - C_s,   sum_s p_s saves_s = the expected saving,   P(loss) = sum of p_s over saves_s < 0

Within a scenario random arrivals average out over the years and are ignored here.

Break-even of a purchase: the first day on which the decision with it has cost no more than the one without it.

Present values are summed as costs fall due: prices and replacements when they are paid, terms and running costs evenly
over their years. Resale values do not count.

The limits on space, power and budget that bind the decision, and what each costs.

A limit binds if the best answer without it, under all other limits, costs less. Two limits that have the same effect
(power and cooling of one machine) may bind only together; they are then named together, with the saving without both.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.model.procurement import BindingLimit, ProcurementRisk, ScenarioCost, ScenarioYears, YearlyCost
from gpuplan.planner.procurement.capacity_expansion import Expanded, expand
from gpuplan.planner.procurement.forecast import Forecast, Machine
from gpuplan.planner.procurement.present_value import HOURS_PER_YEAR, present, purchase_flows, running_years
from gpuplan.planner.procurement.procurement_model import Model
from gpuplan.planner.procurement.procurement_parts import source_name
from gpuplan.planner.procurement.procurement_sensitivity import MOST_SHARES
from gpuplan.planner.procurement.rounded_figures import money, signed_money, six_digits
from gpuplan.planner.procurement.served_jobs import Served, is_there

Floats = NDArray[np.float64]


#: Savings below this share of the cost are the solver's tolerance.
_TOLERANCE = 1e-6
UNITS = {
    "slots": "slots",
    "power_watts": "W of power",
    "cooling_watts": "W of cooling",
    "upfront_usd": "USD upfront",
    "machines": "machines",
}


def binding(given: Served, model: Model, best: Expanded, words: Callable[[Floats], str]) -> tuple[BindingLimit, ...]:
    """The limits that bind, in the order in which they are stated. Limits that bind together form one entry."""
    names = model.limits
    limits_found = [b for k in range(len(names)) if (b := _freed(given, model, best, (k,), words)) is not None]
    if limits_found or len(names) < 2:
        return tuple(limits_found)
    together = _freed(given, model, best, tuple(range(len(names))), words)
    if together is None:
        return ()
    tight = tuple(k for k in range(len(names)) if _short(given, model, best, k))
    fewer = _freed(given, model, best, tight, words) if len(tight) > 1 else None
    return (together if fewer is None else fewer,)


def _freed(
    given: Served, model: Model, best: Expanded, limits: tuple[int, ...], words: Callable[[Floats], str]
) -> BindingLimit | None:
    """The answer without these limits; None if it would not cost less."""
    data = model.expansion
    remaining = np.array([k not in limits for k in range(len(model.limits))], np.bool_)
    other = expand(
        replace(data, uses=data.uses[remaining], available=data.available[remaining]),
        likely=best.units > 0,
        most_shares=MOST_SHARES,
    )
    if other is None or best.objective_usd - other.objective_usd <= _TOLERANCE * max(1.0, abs(best.objective_usd)):
        return None
    k = next((limit for limit in limits if _short(given, model, best, limit)), limits[0])
    return BindingLimit(
        limit=" and ".join(model.limits[limit] for limit in limits),
        used=six_digits(float(data.uses[k] @ best.units)),
        available=six_digits(float(data.available[k])),
        short=_short(given, model, other, k, best),
        without_it=words(other.units),
        would_save_usd=money(best.objective_usd - other.objective_usd),
    )


def _short(given: Served, model: Model, wanted: Expanded, k: int, best: Expanded | None = None) -> str:
    """How much of limit `k` one more machine of the answer would need; empty if it fits."""
    data = model.expansion
    have = wanted if best is None else best
    used, most = float(data.uses[k] @ have.units), float(data.available[k])
    for u, unit in enumerate(model.units):
        source, needs = given.sources[unit.source], float(data.uses[k, u])
        wants_more = wanted.units[u] > have.units[u] if best is not None else wanted.units[u] > 0
        if needs and wants_more and used + needs > most * (1 + 1e-9):
            name = source_name(given, source)
            what = "machine" if isinstance(source, Machine) else "node"
            number = round(float(have.units[u])) + 1
            return (
                f"{what} number {number} of {name} would bring the need to {used + needs:,.0f} {UNITS[model.limits[k]]}, "
                f"and there are {most:,.0f}"
            )
    return ""


#: Comparisons of the sums per year; the crossing is interpolated between two of them.
POINTS_PER_YEAR = 120


def breaks_even(forecast: Forecast, given: Served, model: Model, best: Expanded, without: Expanded) -> float | None:
    """Years until the answer has cost no more than the one `without`; None if that never happens."""
    years = np.linspace(0.0, forecast.horizon_years, max(2, round(POINTS_PER_YEAR * forecast.horizon_years) + 1))
    ahead = _spent(forecast, given, model, without, years) - _spent(forecast, given, model, best, years)
    reached = np.flatnonzero(ahead >= 0)
    if not len(reached):
        return None
    i = int(reached[0])
    if i == 0:
        return 0.0
    before, after = float(ahead[i - 1]), float(ahead[i])
    return float(years[i - 1] + (years[i] - years[i - 1]) * (-before) / (after - before))


def _spent(forecast: Forecast, given: Served, model: Model, answer: Expanded, years: Floats) -> Floats:
    """The present value spent by each of these times, without resale."""
    spent = np.zeros(len(years))
    rate = forecast.discount_rate
    for u, unit in enumerate(model.units):
        count, source = float(answer.units[u]), given.sources[unit.source]
        if not count or is_there(source):
            continue
        if isinstance(source, Machine):
            flows = purchase_flows(source.usd, source.residual_usd, source.life_years, forecast.horizon_years)
            due = [(at, usd) for at, usd in flows if usd > 0]
        else:
            due = list(unit.sums_usd)
            for start, duration, usd in unit.even_usd:
                spent += count * usd * _elapsed(start, duration, years, rate)
        for at, usd in due:
            spent += count * usd * present(at, rate) * (years >= at)
    for p, usd_a_year in enumerate(_running_a_year(model, answer)):
        for start, duration in model.periods[p].spans:
            spent += usd_a_year * _elapsed(start, duration, years, rate)
    return spent


def _elapsed(start: float, duration: float, years: Floats, rate: float) -> Floats:
    """The present value of a dollar per year, paid from `start` until each of these times or the end."""
    until = np.clip(years - start, 0.0, duration)
    return np.array([running_years(start, float(year), rate) for year in until])


def _running_a_year(model: Model, answer: Expanded) -> Floats:
    """USD per year of running and renting in each period."""
    given = model.expansion
    running = np.where(np.isfinite(given.running_usd), given.running_usd, 0.0)
    rent = np.where(np.isfinite(given.rent_usd), given.rent_usd, 0.0)
    done = answer.share * given.runs_per_hour[:, None, :]
    rented = np.maximum(0.0, given.runs_per_hour - done.sum(axis=1))
    per_hour = (done * running).sum(axis=(1, 2)) + rented @ rent
    usd_by_period = np.zeros(len(model.periods))
    np.add.at(usd_by_period, model.period_of, per_hour * model.chance_of * HOURS_PER_YEAR)
    return usd_by_period


#: A smaller loss is the solver's tolerance.
_TOLERANCE_USD = 0.005


def risk(forecast: Forecast, model: Model, best: Expanded, stay: Expanded) -> ProcurementRisk:
    """Costs and savings by scenario; scenarios of probability 0 are left out."""
    chances = np.array([probability for _, probability in forecast.scenarios])
    cost, nothing = (_by_scenario(model, answer, chances) for answer in (best, stay))
    saves = nothing - cost
    scenarios = tuple(
        ScenarioCost(name=name, probability=p, cost_usd=money(float(cost[s])), saves_usd=signed_money(float(saves[s])))
        for s, (name, p) in enumerate(forecast.scenarios)
        if p > 0
    )
    loses = float(chances[saves < -_TOLERANCE_USD].sum())
    return ProcurementRisk(loses_probability=six_digits(loses), scenarios=scenarios)


def _by_scenario(model: Model, answer: Expanded, chances: Floats) -> Floats:
    """[scenarios]: present value of the answer's cost in each scenario."""
    data = model.expansion
    running = np.where(np.isfinite(data.running_usd), data.running_usd, 0.0)
    rent = np.where(np.isfinite(data.rent_usd), data.rent_usd, 0.0)
    done = answer.share * data.runs_per_hour[:, None, :]
    rented = np.maximum(0.0, data.runs_per_hour - done.sum(axis=1))
    usd = ((done * running).sum(axis=(1, 2)) + rented @ rent) * data.hours
    varying = np.bincount(model.scenario_of, weights=usd, minlength=len(chances))
    fixed = float(data.fixed_usd @ answer.units)
    return fixed + np.divide(varying, chances, out=np.zeros(len(chances)), where=chances > 0)


def cost_over_years(forecast: Forecast, given: Served, model: Model, best: Expanded) -> tuple[ScenarioYears, ...]:
    """The cost of each stretch of years with the same demand, by scenario; scenarios of probability 0 are left out."""
    is_machine = np.array([isinstance(given.sources[unit.source], Machine) for unit in model.units], np.bool_)
    fixed = _fixed_a_year(forecast, model, best)
    running, renting = _varying_a_year(model, best)
    scenarios = []
    for s, (name, probability) in enumerate(forecast.scenarios):
        if probability <= 0:
            continue
        years = []
        for p, period in enumerate(model.periods):
            in_block = (model.period_of == p) & (model.scenario_of == s)
            share = model.chance_of[in_block] / probability
            by_unit = fixed[p] + share @ running[in_block]
            years.append(
                YearlyCost(
                    from_year=six_digits(period.spans[0][0]),
                    until_year=six_digits(sum(period.spans[-1])),
                    own_usd_per_year=money(float(by_unit[is_machine].sum())),
                    commitments_usd_per_year=money(float(by_unit[~is_machine].sum())),
                    renting_usd_per_year=money(float(share @ renting[in_block])),
                )
            )
        scenarios.append(ScenarioYears(name=name, probability=probability, years=tuple(years)))
    return tuple(scenarios)


def _fixed_a_year(forecast: Forecast, model: Model, best: Expanded) -> Floats:
    """[periods, units]: the equivalent annual cost of purchases and commitments in the periods that they serve."""
    fixed = np.zeros((len(model.periods), len(model.units)))
    present = [
        sum(running_years(start, duration, forecast.discount_rate) for start, duration in period.spans)
        for period in model.periods
    ]
    for u, unit in enumerate(model.units):
        for p in unit.periods:
            fixed[p, u] = best.units[u] * unit.fixed_usd / sum(present[other] for other in unit.periods)
    return fixed


def _varying_a_year(model: Model, best: Expanded) -> tuple[Floats, Floats]:
    """Running cost [blocks, units] and cost of renting [blocks], in USD a year at the load of the block."""
    data = model.expansion
    done = best.share * data.runs_per_hour[:, None, :] * HOURS_PER_YEAR
    running = (done * np.where(np.isfinite(data.running_usd), data.running_usd, 0.0)).sum(axis=2)
    rest = np.maximum(0.0, data.runs_per_hour * HOURS_PER_YEAR - done.sum(axis=1))
    return running, rest @ np.where(np.isfinite(data.rent_usd), data.rent_usd, 0.0)
