"""From what sources do for jobs to the model: periods, blocks of load, and what a unit of each source costs.

Periods: where the load does not grow, a term that fits into the longest one is renewed alike every time, so all
whole longest terms are one period and what is left of the horizon another; with growth every year is one. A source
under a term lasts for the periods it covers and is paid whole, also where the horizon cuts it.
"""

import math
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from catalog.errors import UnusableInput
from catalog.price_kinds import price_kinds
from planner.buying.finance import HOURS_PER_YEAR, commitment, purchases, running_years
from planner.buying.forecast import Forecast, Machine
from planner.buying.load import Blocks, even, fluctuating
from planner.buying.served import Served, there_is
from planner.buying.terms import Node, Spending
from planner.optimise.buying_model import Expansion

Floats = NDArray[np.float64]

#: Shares of runs in one model; levels of load are put together to stay below.
MOST_VARIABLES = 8_000
#: Sources that a model has at once, most others being priced out of it.
SOURCES_AT_ONCE = 8
FEWEST_LEVELS, MOST_LEVELS = 4, 60
#: Runs of a job in a block; twice the largest that is solved in some seconds.
MOST_SOLVED = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """Spans of the horizon (start, duration in years) that are alike; `growth_years` since the start for each job."""

    spans: tuple[tuple[float, float], ...]
    growth_years: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One column of the model: source `source` (of `Served`), over `periods`, at most `most` of it; its flows are (year, USD) steps and
    (start, duration, USD a year) of even payments.
    """

    source: int
    periods: tuple[int, ...]
    fixed_usd: float
    most: float = math.inf
    even_usd: tuple[tuple[float, float, float], ...] = ()
    sums_usd: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Model:
    """The expansion, and what its columns and blocks stand for.

    `period_of`, `scenario_of` and `chance_of` [blocks]: period and scenario of a block, and the undiscounted share of
    the period's hours. `limits` are the names of the expansion's limits.
    """

    expansion: Expansion
    units: tuple[Unit, ...]
    periods: tuple[Period, ...]
    period_of: NDArray[np.int64]
    scenario_of: NDArray[np.int64]
    chance_of: Floats
    limits: tuple[str, ...]
    levels_joined: bool


def periods_of(forecast: Forecast) -> tuple[Period, ...]:
    """The periods of a forecast, in order of time."""
    horizon, ends = forecast.horizon_years, forecast.held_years
    if any(each.growth for each in forecast.jobs) or (ends is not None and ends < horizon):
        years = [float(y) for y in range(math.ceil(horizon - 1e-9))]
        more = [] if ends is None or ends >= horizon else [ends]
        starts = sorted({*years, *more})
        return tuple(
            Period(spans=((start, until - start),), growth_years=math.floor(start + 1e-9))
            for start, until in pairwise([*starts, horizon])
        )
    longest = max((_term_years(kind) for kind in forecast.commitments), default=horizon)
    whole = math.floor(horizon / longest + 1e-9)
    spans = tuple((i * longest, longest) for i in range(whole))
    left = horizon - whole * longest
    periods = (Period(spans=spans),) if spans else ()
    return (*periods, Period(spans=((whole * longest, left),))) if left > 1e-9 else periods


def _term_years(kind: str) -> float:
    return price_kinds()[kind].term_hours / HOURS_PER_YEAR


def units_of(forecast: Forecast, given: Served, periods: tuple[Period, ...]) -> tuple[Unit, ...]:
    """Every column: machines for the whole horizon, commitments for each stretch of periods that their term covers,
    and what is there already for as long as it is held.
    """
    every = tuple(range(len(periods)))
    ends = forecast.horizon_years if forecast.held_years is None else forecast.held_years
    while_held = tuple(p for p in every if periods[p].spans[0][0] < ends - 1e-9)
    units: list[Unit] = []
    for n, source in enumerate(given.sources):
        amount = there_is(source)
        if amount is not None:
            over = every if isinstance(source, Machine) else while_held
            units.append(Unit(source=n, periods=over, fixed_usd=0.0, most=amount))
            continue
        match source:
            case Machine():
                units.append(Unit(source=n, periods=every, fixed_usd=_bought(source, forecast)))
            case Node():
                name = given.market.columns.kinds[int(given.market.snapshot.kind_index[source.place])]
                units += _entered(n, source.usd_per_hour, name, periods, forecast)
            case Spending():
                units += _entered(n, 1.0, source.pool.price_kind, periods, forecast)
    return tuple(units)


def _bought(each: Machine, forecast: Forecast) -> float:
    horizon = forecast.horizon_years
    return purchases(each.usd, each.residual_usd, each.life_years, horizon, forecast.discount_rate)


def _entered(n: int, usd_per_hour: float, kind: str, periods: tuple[Period, ...], forecast: Forecast) -> list[Unit]:
    """A commitment at so much per hour, once for each stretch of periods that it may cover."""
    return [
        replace(_under_term(usd_per_hour, kind, starts, forecast.discount_rate), source=n, periods=stretch)
        for stretch, starts in _stretches(periods, _term_years(kind))
    ]


def _stretches(periods: tuple[Period, ...], term_years: float) -> list[tuple[tuple[int, ...], list[float]]]:
    """(periods covered, starts of the terms that cover them); terms begin at whole multiples of their length."""
    if len(periods) > 1 and all(len(each.spans) == 1 and each.spans[0][1] <= 1.0 + 1e-9 for each in periods):
        of: dict[int, list[int]] = {}
        for p, period in enumerate(periods):
            of.setdefault(math.floor(period.spans[0][0] / term_years + 1e-9), []).append(p)
        return [(tuple(each), [k * term_years]) for k, each in of.items()]
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
    running = given.kwh * given.usd_per_kwh[:, None] * electricity + given.other_usd
    # A job that cannot be rented has to wait for a machine: no number of them is enough for every chance.
    able = np.isfinite(hours).any(axis=0) & np.isfinite(rent)
    most = _levels(forecast, periods)
    shares, runs, period_of, scenario_of, chance = [], [], [], [], []
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
            scenario_of += [s] * len(blocks.share)
            chance.append(blocks.share * probability)
    lasts = np.array([[p in each.periods for p in period_of] for each in units], np.bool_)
    lasts = lasts.reshape(len(units), len(period_of))
    names, uses, available = _limits(forecast, given, units)
    expansion = Expansion(
        fixed_usd=np.array([each.fixed_usd for each in units]),
        most_units=np.array([each.most for each in units]),
        machine_hours=hours[source],
        running_usd=np.where(np.isfinite(hours), running, np.inf)[source],
        rent_usd=rent,
        hours=np.concatenate(shares),
        runs_per_hour=np.concatenate(runs),
        lasts=lasts,
        uses=uses,
        available=available,
        whole=np.array([not isinstance(given.sources[each.source], Spending) for each in units], np.bool_),
    )
    return Model(
        expansion=expansion,
        units=units,
        periods=periods,
        period_of=np.array(period_of, np.int64),
        scenario_of=np.array(scenario_of, np.int64),
        chance_of=np.concatenate(chance),
        limits=names,
        levels_joined=joined,
    )


def refuse_what_is_too_large(expansion: Expansion) -> None:
    """Raise `UnusableInput` at `jobs` for a model that no solver ends on in minutes."""
    count = expansion.runs_per_hour.size
    if count > MOST_SOLVED:
        raise UnusableInput.at(
            "jobs",
            message=f"with these scenarios and years come to {count:,} levels of load, and {MOST_SOLVED:,} are the most; "
            "give fewer jobs or scenarios, a shorter horizon, or leave out growth_per_year",
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
    cost = np.where(able, np.where(able, given.machine_hours, 0.0) * per_hour[:, None], np.inf)
    if not len(cost):
        return np.zeros(len(forecast.jobs)), np.ones(len(forecast.jobs), np.int64)
    best = cost.argmin(axis=0)
    jobs = np.arange(len(forecast.jobs))
    some = able[best, jobs]
    hours = np.zeros(len(jobs))
    size = np.ones(len(jobs))
    size[some] = given.accelerators[best, jobs][some]
    hours[some] = given.run_hours[best, jobs][some]
    least = size[some].min(initial=np.inf)
    units_of_size = np.maximum(1, np.rint(size / (least if np.isfinite(least) else 1.0)))
    return hours, units_of_size.astype(np.int64)


def _levels(forecast: Forecast, periods: tuple[Period, ...]) -> int:
    """How many levels of load each scenario of each period may have, so that the model stays small."""
    pairs = SOURCES_AT_ONCE * len(forecast.jobs) * len(periods) * len(forecast.scenarios)
    return min(MOST_LEVELS, max(FEWEST_LEVELS, MOST_VARIABLES // max(1, pairs)))


def _limits(forecast: Forecast, given: Served, units: tuple[Unit, ...]) -> tuple[tuple[str, ...], Floats, Floats]:
    """Name, use per unit and what there is, one row per limit that is stated.

    Of a term only what is paid upfront counts; what the user has already takes nothing of what there is.
    """
    limits = forecast.limits
    bought = [
        source if isinstance(source := given.sources[u.source], Machine) and source.own is None else None for u in units
    ]
    upfront = [sum(usd for at, usd in each.sums_usd if at == 0) for each in units]
    rows = (
        ("slots", limits.slots, [float(m.slots) if m else 0.0 for m in bought]),
        ("power_watts", limits.power_watts, [m.watts if m else 0.0 for m in bought]),
        ("cooling_watts", limits.cooling_watts, [m.watts if m else 0.0 for m in bought]),
        ("upfront_usd", limits.upfront_usd, [m.usd if m else term for m, term in zip(bought, upfront, strict=True)]),
        ("machines", limits.machines, [1.0 if m else 0.0 for m in bought]),
    )
    stated = [(name, float(most), use) for name, most, use in rows if most is not None]
    uses = np.array([use for _, _, use in stated]).reshape(len(stated), len(units))
    return tuple(name for name, _, _ in stated), uses, np.array([most for _, most, _ in stated])
