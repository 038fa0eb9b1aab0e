"""When a purchase has paid for itself: the first day on which the answer with it has cost no more than that without.

Costs are summed up as they fall due, at the start's value: prices and replacements when they are paid, terms and
running costs evenly over their years. What machines are sold for counts for nothing until they are sold.
"""

import numpy as np
from numpy.typing import NDArray

from planner.buying.finance import HOURS_PER_YEAR, present, purchase_flows, running_years
from planner.buying.forecast import Forecast, Machine
from planner.buying.model import Model
from planner.buying.served import Served, is_there
from planner.optimise.buying import Expanded

Floats = NDArray[np.float64]

#: Points in time per year at which the sums are compared; between two the crossing is interpolated.
POINTS_PER_YEAR = 120


def breaks_even(forecast: Forecast, given: Served, model: Model, best: Expanded, without: Expanded) -> float | None:
    """Years until the answer has cost no more than the one `without`, for good of the two points; None if never."""
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
    """What has been spent by each of these times, at the start's value, without income from selling."""
    spent = np.zeros(len(years))
    rate = forecast.discount_rate
    for u, unit in enumerate(model.units):
        count, each = float(answer.units[u]), given.sources[unit.source]
        if not count or is_there(each):
            continue
        if isinstance(each, Machine):
            flows = purchase_flows(each.usd, each.residual_usd, each.life_years, forecast.horizon_years)
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
    """The value of a dollar a year from `start`, paid until each of these times or the end."""
    until = np.clip(years - start, 0.0, duration)
    return np.array([running_years(start, float(each), rate) for each in until])


def _running_a_year(model: Model, answer: Expanded) -> Floats:
    """USD a year that running and renting cost in each period."""
    given = model.expansion
    running = np.where(np.isfinite(given.running_usd), given.running_usd, 0.0)
    rent = np.where(np.isfinite(given.rent_usd), given.rent_usd, 0.0)
    done = answer.share * given.runs_per_hour[:, None, :]
    rented = np.maximum(0.0, given.runs_per_hour - done.sum(axis=1))
    per_hour = (done * running).sum(axis=(1, 2)) + rented @ rent
    found = np.zeros(len(model.periods))
    np.add.at(found, model.period_of, per_hour * model.chance_of * HOURS_PER_YEAR)
    return found
