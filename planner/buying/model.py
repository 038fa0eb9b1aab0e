"""From what sources do for jobs to the model: periods, blocks of load, and what a unit of each source costs.

Periods: where the load does not grow, a term that fits into the longest one is renewed alike every time, so all
whole longest terms are one period and what is left of the horizon another; with growth every year is one. A source
under a term lasts for the periods it covers and is paid whole, also where the horizon cuts it.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from catalog.errors import UnusableInput
from catalog.price_kinds import price_kinds
from planner.buying.finance import HOURS_PER_YEAR, commitment, purchases, running_years
from planner.buying.forecast import Forecast
from planner.buying.load import Blocks, even, fluctuating
from planner.buying.served import Served
from planner.optimise.buying import Expansion, variables

Floats = NDArray[np.float64]

#: Shares of runs in one model; at 100,000 HiGHS takes minutes. Levels of load are put together to stay below.
MOST_VARIABLES = 8_000
FEWEST_LEVELS = 4
#: Twice the largest that is solved in some seconds.
MOST_SOLVED = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """Spans of the horizon (start, duration in years) that are alike; `growth_years` since the start for each job."""

    spans: tuple[tuple[float, float], ...]
    growth_years: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One column of the model: source `source` (of `Served`), over `periods`; its flows are (year, USD) steps and
    (start, duration, USD a year) of even payments.
    """

    source: int
    periods: tuple[int, ...]
    fixed_usd: float
    even_usd: tuple[tuple[float, float, float], ...] = ()
    sums_usd: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Model:
    """The expansion, and what its columns and blocks stand for.

    `period_of` and `chance_of` [blocks]: the period of a block, and the undiscounted share of the period's hours.
    """

    expansion: Expansion
    units: tuple[Unit, ...]
    periods: tuple[Period, ...]
    period_of: NDArray[np.int64]
    chance_of: Floats
    levels_joined: bool


def periods_of(forecast: Forecast) -> tuple[Period, ...]:
    """The periods of a forecast, in order of time."""
    horizon = forecast.horizon_years
    if any(each.growth for each in forecast.jobs):
        years = math.ceil(horizon - 1e-9)
        return tuple(Period(spans=((float(y), min(1.0, horizon - y)),), growth_years=float(y)) for y in range(years))
    longest = max((_term_years(kind) for kind in forecast.commitments), default=horizon)
    whole = math.floor(horizon / longest + 1e-9)
    spans = tuple((i * longest, longest) for i in range(whole))
    left = horizon - whole * longest
    periods = (Period(spans=spans),) if spans else ()
    return (*periods, Period(spans=((whole * longest, left),))) if left > 1e-9 else periods


def _term_years(kind: str) -> float:
    return price_kinds()[kind].term_hours / HOURS_PER_YEAR


def units_of(forecast: Forecast, given: Served, periods: tuple[Period, ...]) -> tuple[Unit, ...]:
    """Every column: machines for the whole horizon, nodes for each stretch of periods that their term covers."""
    horizon, rate = forecast.horizon_years, forecast.discount_rate
    every = tuple(range(len(periods)))
    units = [
        Unit(source=m, periods=every, fixed_usd=purchases(each.usd, each.residual_usd, each.life_years, horizon, rate))
        for m, each in enumerate(forecast.machines)
    ]
    kinds = given.market.columns.kinds
    for n, node in enumerate(given.nodes):
        name = kinds[int(given.market.snapshot.kind_index[node.place])]
        units += [
            replace(
                _under_term(node.usd_per_hour, name, starts, rate), source=len(forecast.machines) + n, periods=stretch
            )
            for stretch, starts in _stretches(periods, _term_years(name))
        ]
    return tuple(units)


def _stretches(periods: tuple[Period, ...], term_years: float) -> list[tuple[tuple[int, ...], list[float]]]:
    """(periods covered, starts of the terms that cover them)."""
    if len(periods) > 1 and all(len(each.spans) == 1 and each.spans[0][1] <= 1.0 + 1e-9 for each in periods):
        step = max(1, round(term_years))
        covered = [tuple(range(y, min(y + step, len(periods)))) for y in range(0, len(periods), step)]
        return [(each, [periods[each[0]].spans[0][0]]) for each in covered]
    found: list[tuple[tuple[int, ...], list[float]]] = []
    for p, period in enumerate(periods):
        starts = [
            start + i * term_years
            for start, duration in period.spans
            for i in range(math.ceil(duration / term_years - 1e-9))
        ]
        found.append(((p,), starts))
    return found


def _under_term(usd_per_hour: float, name: str, starts: list[float], rate: float) -> Unit:
    """A node under terms that begin at `starts`; source and periods are for the caller to say."""
    term, upfront = _term_years(name), price_kinds()[name].upfront_share
    yearly = usd_per_hour * HOURS_PER_YEAR
    return Unit(
        source=-1,
        periods=(),
        fixed_usd=sum(commitment(usd_per_hour, term, upfront, start, rate) for start in starts),
        even_usd=tuple((start, term, (1 - upfront) * yearly) for start in starts if upfront < 1),
        sums_usd=tuple((start, upfront * yearly * term) for start in starts if upfront),
    )


def model_of(forecast: Forecast, given: Served, *, busier: float = 1.0, electricity: float = 1.0) -> Model:
    """The model, at so many times the runs and the price of electricity of the forecast."""
    periods = periods_of(forecast)
    units = units_of(forecast, given, periods)
    source = np.array([each.source for each in units], np.int64)
    hours, rent = given.machine_hours, _rent_usd(given)
    running = given.kwh * forecast.electricity_usd_per_kwh * electricity + given.other_usd
    # A job that cannot be rented has to wait for a machine: no number of them is enough for every chance.
    able = np.isfinite(hours).any(axis=0) & np.isfinite(rent)
    most = _levels(forecast, given, units, periods)
    shares, runs, period_of, chance = [], [], [], []
    joined = False
    typical = _typical(forecast, given, units)
    for p, period in enumerate(periods):
        years = sum(running_years(start, duration, forecast.discount_rate) for start, duration in period.spans)
        for s, (_, probability) in enumerate(forecast.scenarios):
            rate = busier * np.array(
                [each.runs_per_year[s] * (1 + each.growth) ** period.growth_years for each in forecast.jobs]
            )
            blocks = _blocks(rate / HOURS_PER_YEAR, typical, able, most, wait=forecast.jobs_wait)
            joined |= len(blocks.share) == most and not forecast.jobs_wait
            shares.append(blocks.share * probability * years * HOURS_PER_YEAR)
            runs.append(blocks.runs_per_hour)
            period_of += [p] * len(blocks.share)
            chance.append(blocks.share * probability)
    lasts = np.array([[p in each.periods for p in period_of] for each in units], np.bool_)
    lasts = lasts.reshape(len(units), len(period_of))
    uses, available = _limits(forecast, units)
    expansion = Expansion(
        fixed_usd=np.array([each.fixed_usd for each in units]),
        most_units=np.full(len(units), np.inf),
        machine_hours=hours[source],
        running_usd=np.where(np.isfinite(hours), running, np.inf)[source],
        rent_usd=rent,
        hours=np.concatenate(shares),
        runs_per_hour=np.concatenate(runs),
        lasts=lasts,
        uses=uses,
        available=available,
    )
    return Model(
        expansion=expansion,
        units=units,
        periods=periods,
        period_of=np.array(period_of, np.int64),
        chance_of=np.concatenate(chance),
        levels_joined=joined,
    )


def refuse_what_is_too_large(expansion: Expansion) -> None:
    """Raise `UnusableInput` at `jobs` for a model that no solver ends on in minutes."""
    count = variables(expansion)
    if count > MOST_SOLVED:
        raise UnusableInput.at(
            "jobs",
            message=f"with these scenarios, years and machines come to {count:,} choices, and {MOST_SOLVED:,} are the most; "
            "give fewer jobs or scenarios, name machines and commitments, or leave out growth_per_year",
        )


def _rent_usd(given: Served) -> Floats:
    return np.array([np.inf if each is None else each.cost.expected / 1e6 for each in given.rented])


def _blocks(
    rate: Floats, typical: tuple[Floats, NDArray[np.int64]], able: NDArray[np.bool_], most: int, *, wait: bool
) -> Blocks:
    """Load of one scenario in one period. Jobs that are not `able` come evenly: those that only renting can do share
    nothing, and those that cannot be rented wait.
    """
    run_hours, sizes = typical
    if wait or not able.any():
        return even(rate)
    blocks = fluctuating(rate[able], run_hours[able], sizes[able], most)
    runs = np.tile(rate, (len(blocks.share), 1))
    runs[:, able] = blocks.runs_per_hour
    return Blocks(share=blocks.share, runs_per_hour=runs)


def _typical(forecast: Forecast, given: Served, units: tuple[Unit, ...]) -> tuple[Floats, NDArray[np.int64]]:
    """Hours and size of a run of each job on the source that does it cheapest when busy all the time.

    Sizes are accelerators at once, as multiples of the smallest job's. Zero and one where no source can do it.
    """
    per_hour = np.full(len(given.machine_hours), np.inf)
    for each in units:
        per_hour[each.source] = min(per_hour[each.source], each.fixed_usd / forecast.horizon_years / HOURS_PER_YEAR)
    able = np.isfinite(given.machine_hours)
    cost = np.where(able, given.machine_hours, np.inf) * per_hour[:, None]
    if not len(cost):
        return np.zeros(len(forecast.jobs)), np.ones(len(forecast.jobs), np.int64)
    best = cost.argmin(axis=0)
    jobs = np.arange(len(forecast.jobs))
    some = able[best, jobs]
    whole = np.array(
        [each.accelerators for each in forecast.machines] + [_devices(given, n.place) for n in given.nodes]
    )
    hours = np.zeros(len(jobs))
    size = np.ones(len(jobs))
    size[some] = given.accelerators[best, jobs][some]
    hours[some] = (given.machine_hours[best, jobs] * whole[best])[some] / size[some]
    least = size[some].min(initial=np.inf)
    units_of_size = np.maximum(1, np.rint(size / (least if np.isfinite(least) else 1.0)))
    return hours, units_of_size.astype(np.int64)


def _devices(given: Served, place: int) -> int:
    shapes = given.market.snapshot.shapes
    return int(shapes.devices[shapes.of_type[given.market.snapshot.type_index[place]]])


def _levels(forecast: Forecast, given: Served, units: tuple[Unit, ...], periods: tuple[Period, ...]) -> int:
    """How many levels of load each scenario of each period may have, so that the model stays small."""
    pairs = sum(int(np.isfinite(given.machine_hours[each.source]).sum()) * len(each.periods) for each in units) * len(
        forecast.scenarios
    )
    return max(FEWEST_LEVELS, MOST_VARIABLES // max(1, pairs))


def _limits(forecast: Forecast, units: tuple[Unit, ...]) -> tuple[Floats, Floats]:
    """Use per unit and what there is, one row per limit that is stated; of a term only what is paid upfront counts."""
    limits, machines = forecast.limits, forecast.machines
    none = [0.0] * len(units)
    upfront = [sum(usd for at, usd in each.sums_usd if at == 0) for each in units]
    rows: list[tuple[float | None, list[float], list[float]]] = [
        (limits.slots, [float(each.slots) for each in machines], none),
        (limits.power_watts, [each.watts for each in machines], none),
        (limits.cooling_watts, [each.watts for each in machines], none),
        (limits.upfront_usd, [each.usd for each in machines], upfront),
        (limits.machines, [1.0] * len(machines), none),
    ]
    stated = [(float(most), bought, term) for most, bought, term in rows if most is not None]
    uses = np.zeros((len(stated), len(units)))
    for k, (_, bought, term) in enumerate(stated):
        uses[k] = [bought[each.source] if each.source < len(machines) else term[u] for u, each in enumerate(units)]
    return uses, np.array([most for most, _, _ in stated])
