"""Cost a year of a decision in each scenario: of own machines, of commitments, and of renting.

What is paid at once is spread evenly, as an equivalent annual cost: with the present value F of a unit, and D the present
value of a dollar a year over the years that the unit serves (`running_years`), its cost is F / D a year. The present value
of all years is then the cost of the scenario.
"""

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.model.procurement import ScenarioYears, YearlyCost
from gpuplan.planner.procurement.capacity_expansion import Expanded
from gpuplan.planner.procurement.forecast import Forecast, Machine
from gpuplan.planner.procurement.present_value import HOURS_PER_YEAR, running_years
from gpuplan.planner.procurement.procurement_model import Model
from gpuplan.planner.procurement.rounded_figures import money, six_digits
from gpuplan.planner.procurement.served_jobs import Served

Floats = NDArray[np.float64]


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
