"""Break-even of a purchase: the first day on which the decision with it has cost no more than the one without it.

Present values are summed as costs fall due: prices and replacements when they are paid, terms and running costs evenly
over their years. Resale values do not count.
"""

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.procurement.capacity_expansion import Expanded
from gpuplan.planner.procurement.forecast import Forecast, Machine
from gpuplan.planner.procurement.present_value import HOURS_PER_YEAR, present, purchase_flows, running_years
from gpuplan.planner.procurement.procurement_model import Model
from gpuplan.planner.procurement.served_jobs import Served, is_there

Floats = NDArray[np.float64]

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
