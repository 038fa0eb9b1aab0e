"""The inputs of the expansion model: periods, blocks of load, and the cost of a unit of each source.

Periods: if the load grows, every year is a period. If it does not, all whole longest terms form one period and the rest
of the horizon another, because a shorter term is renewed in the same way each time. A source under a term lasts for the
periods that it covers. Its whole term is paid, even beyond the horizon.
"""

import math
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.procurement.commitments import Node, Spending
from gpuplan.planner.procurement.expansion_model import Expansion
from gpuplan.planner.procurement.forecast import Forecast, Machine
from gpuplan.planner.procurement.load_duration import Blocks, even, fluctuating
from gpuplan.planner.procurement.present_value import HOURS_PER_YEAR, commitment, purchase_value, running_years
from gpuplan.planner.procurement.served_jobs import Served, is_available

Floats = NDArray[np.float64]

#: Most shares of runs in one model; load levels are merged to stay below.
MOST_VARIABLES = 8_000
#: The typical number of sources in the model at once; column generation excludes most others.
SOURCES_AT_ONCE = 8
FEWEST_LEVELS, MOST_LEVELS = 4, 60
#: Most shares of runs to solve: twice the largest model that takes some seconds.
MOST_SOLVED = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """Equal spans of the horizon (start, duration in years); `growth_years` since the start for each job."""

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
    """The expansion model, and the meaning of its columns and blocks.

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
    """The periods of a forecast in chronological order."""
    horizon, ends = forecast.horizon_years, forecast.existing_years
    if any(job.growth for job in forecast.jobs) or (ends is not None and ends < horizon):
        years = [float(y) for y in range(math.ceil(horizon - 1e-9))]
        further_ends = [] if ends is None or ends >= horizon else [ends]
        starts = sorted({*years, *further_ends})
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
    """Every column: machines for the whole horizon, commitments for each stretch of periods that their term covers, and
    existing supply until it ends.
    """
    every = tuple(range(len(periods)))
    ends = forecast.horizon_years if forecast.existing_years is None else forecast.existing_years
    while_committed = tuple(p for p in every if periods[p].spans[0][0] < ends - 1e-9)
    units: list[Unit] = []
    for n, source in enumerate(given.sources):
        amount = is_available(source)
        if amount is not None:
            over = every if isinstance(source, Machine) else while_committed
            units.append(Unit(source=n, periods=over, fixed_usd=0.0, most=amount))
            continue
        match source:
            case Machine():
                units.append(Unit(source=n, periods=every, fixed_usd=_purchased(source, forecast)))
            case Node():
                name = given.market.columns.kinds[int(given.market.snapshot.kind_index[source.place])]
                units += _entered(n, source.usd_per_hour, name, periods, forecast)
            case Spending():
                units += _entered(n, 1.0, source.pool.price_kind, periods, forecast)
    return tuple(units)


def _purchased(machine: Machine, forecast: Forecast) -> float:
    horizon = forecast.horizon_years
    return purchase_value(machine.usd, machine.residual_usd, machine.life_years, horizon, forecast.discount_rate)


def _entered(n: int, usd_per_hour: float, kind: str, periods: tuple[Period, ...], forecast: Forecast) -> list[Unit]:
    """New commitments to spend per hour, one for each stretch of periods that they can cover."""
    return [
        replace(_under_term(usd_per_hour, kind, starts, forecast.discount_rate), source=n, periods=stretch)
        for stretch, starts in _stretches(periods, _term_years(kind))
    ]


def _stretches(periods: tuple[Period, ...], term_years: float) -> list[tuple[tuple[int, ...], list[float]]]:
    """(periods covered, starts of the terms that cover them); terms begin at whole multiples of their length."""
    if len(periods) > 1 and all(len(period.spans) == 1 and period.spans[0][1] <= 1.0 + 1e-9 for period in periods):
        of: dict[int, list[int]] = {}
        for p, period in enumerate(periods):
            of.setdefault(math.floor(period.spans[0][0] / term_years + 1e-9), []).append(p)
        return [(tuple(stretch), [k * term_years]) for k, stretch in of.items()]
    stretches: list[tuple[tuple[int, ...], list[float]]] = []
    for p, period in enumerate(periods):
        starts = [
            start + i * term_years
            for start, duration in period.spans
            for i in range(math.ceil(duration / term_years - 1e-9))
        ]
        stretches.append(((p,), starts))
    return stretches


def _under_term(usd_per_hour: float, name: str, starts: list[float], rate: float) -> Unit:
    """A node under terms that begin at `starts`; the caller sets source and periods."""
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
    """The model with the forecast's runs and electricity price multiplied by these factors."""
    periods = periods_of(forecast)
    units = units_of(forecast, given, periods)
    source = np.array([unit.source for unit in units], np.int64)
    hours, rent = given.machine_hours, _rent_usd(given)
    running = given.kwh * given.usd_per_kwh[:, None] * electricity + given.other_usd
    # A job that cannot be rented has to wait for a machine, because no number of machines covers every random peak.
    able = np.isfinite(hours).any(axis=0) & np.isfinite(rent)
    most = _levels(forecast, periods)
    shares, runs, period_of, scenario_of, chance = [], [], [], [], []
    joined = False
    typical = _typical(forecast, given, units)
    for p, period in enumerate(periods):
        years = sum(running_years(start, duration, forecast.discount_rate) for start, duration in period.spans)
        for s, (_, probability) in enumerate(forecast.scenarios):
            rate = busier * np.array(
                [job.runs_per_year[s] * (1 + job.growth) ** period.growth_years for job in forecast.jobs]
            )
            blocks = _blocks(rate / HOURS_PER_YEAR, typical, able, most, wait=forecast.jobs_wait)
            joined |= len(blocks.share) == most and not forecast.jobs_wait
            shares.append(blocks.share * probability * years * HOURS_PER_YEAR)
            runs.append(blocks.runs_per_hour)
            period_of += [p] * len(blocks.share)
            scenario_of += [s] * len(blocks.share)
            chance.append(blocks.share * probability)
    lasts = np.array([[p in unit.periods for p in period_of] for unit in units], np.bool_)
    lasts = lasts.reshape(len(units), len(period_of))
    names, uses, available = _limits(forecast, given, units)
    expansion = Expansion(
        fixed_usd=np.array([unit.fixed_usd for unit in units]),
        most_units=np.array([unit.most for unit in units]),
        machine_hours=hours[source],
        running_usd=np.where(np.isfinite(hours), running, np.inf)[source],
        rent_usd=rent,
        hours=np.concatenate(shares),
        runs_per_hour=np.concatenate(runs),
        lasts=lasts,
        uses=uses,
        available=available,
        whole=np.array([not isinstance(given.sources[unit.source], Spending) for unit in units], np.bool_),
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
    """Raise `UnusableInput` at `jobs` for a model that takes a solver more than minutes."""
    count = expansion.runs_per_hour.size
    if count > MOST_SOLVED:
        raise UnusableInput.at(
            "jobs",
            message=f"with these scenarios and years come to {count:,} levels of load, and {MOST_SOLVED:,} are the most; "
            "give fewer jobs or scenarios, a shorter horizon, or leave out growth_per_year",
        )


def _rent_usd(given: Served) -> Floats:
    return np.array([np.inf if choice is None else choice.cost.expected / 1e6 for choice in given.rented])


def _blocks(
    rate: Floats, typical: tuple[Floats, NDArray[np.int64]], able: NDArray[np.bool_], most: int, *, wait: bool
) -> Blocks:
    """The load of one scenario in one period. Jobs that are not `able` have an even load: jobs that can only be rented
    share no machines, and jobs that cannot be rented wait.
    """
    run_hours, sizes = typical
    if wait or not able.any():
        return even(rate)
    blocks = fluctuating(rate[able], run_hours[able], sizes[able], most)
    runs = np.tile(rate, (len(blocks.share), 1))
    runs[:, able] = blocks.runs_per_hour
    return Blocks(share=blocks.share, runs_per_hour=runs)


def _typical(forecast: Forecast, given: Served, units: tuple[Unit, ...]) -> tuple[Floats, NDArray[np.int64]]:
    """Hours and size of a run of each job on its cheapest source if that is busy all the time.

    Sizes are concurrent accelerators as multiples of the smallest job's. Hours are 0 and the size is 1 if no source can
    run it.
    """
    per_hour = np.full(len(given.machine_hours), np.inf)
    for unit in units:
        per_hour[unit.source] = min(per_hour[unit.source], unit.fixed_usd / forecast.horizon_years / HOURS_PER_YEAR)
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
    """The most load levels per scenario and period that keep the model small."""
    pairs = SOURCES_AT_ONCE * len(forecast.jobs) * len(periods) * len(forecast.scenarios)
    return min(MOST_LEVELS, max(FEWEST_LEVELS, MOST_VARIABLES // max(1, pairs)))


def _limits(forecast: Forecast, given: Served, units: tuple[Unit, ...]) -> tuple[tuple[str, ...], Floats, Floats]:
    """Name, use per unit and amount of each stated limit.

    Only the upfront share of a term counts. Existing machines and commitments use nothing of the limits.
    """
    limits = forecast.limits
    priced_configurations = [
        source if isinstance(source := given.sources[u.source], Machine) and source.owned is None else None
        for u in units
    ]
    upfront = [sum(usd for at, usd in unit.sums_usd if at == 0) for unit in units]
    rows = (
        ("slots", limits.slots, [float(m.slots) if m else 0.0 for m in priced_configurations]),
        ("power_watts", limits.power_watts, [m.watts if m else 0.0 for m in priced_configurations]),
        ("cooling_watts", limits.cooling_watts, [m.watts if m else 0.0 for m in priced_configurations]),
        (
            "upfront_usd",
            limits.upfront_usd,
            [m.usd if m else term for m, term in zip(priced_configurations, upfront, strict=True)],
        ),
        ("machines", limits.machines, [1.0 if m else 0.0 for m in priced_configurations]),
    )
    stated = [(name, float(most), use) for name, most, use in rows if most is not None]
    uses = np.array([use for _, _, use in stated]).reshape(len(stated), len(units))
    return tuple(name for name, _, _ in stated), uses, np.array([most for _, most, _ in stated])
