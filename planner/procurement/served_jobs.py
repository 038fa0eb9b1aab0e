"""Machine-hours, running cost and size of a run of each job on each source, from the planner's estimates.

A bought or owned machine may run several jobs at once, each on some of its accelerators. Among the counts that meet the
job's deadline, the one with the least share of machine-hours is used. Committed nodes and rented configurations are
those of a plan, with the same speed, storage, egress and set-up.
"""

from dataclasses import dataclass, replace
from datetime import timedelta
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.offer import InstanceType
from gpuplan.catalog.model.owned_machine import OwnedMachine
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.planner.candidates.candidate_set import candidates, over
from gpuplan.planner.candidates.configuration_choice import cheapest, in_words
from gpuplan.planner.candidates.job_requirements import kinds_asked
from gpuplan.planner.candidates.markets import Market, commitment_markets, owned_market, rented
from gpuplan.planner.cost.cost_breakdown import CostBreakdown
from gpuplan.planner.cost.planned_prices import planned_prices
from gpuplan.planner.cost.spend_commitments import charged
from gpuplan.planner.model.outcome import Choice
from gpuplan.planner.model.settings import PlannerSettings
from gpuplan.planner.procurement.commitments import Node, Spending, committed_nodes, new_nodes, spendings, under_terms
from gpuplan.planner.procurement.forecast import (
    Forecast,
    ForecastJob,
    Machine,
    constrained,
    every,
    in_time,
    question_of,
)
from gpuplan.planner.procurement.present_value import HOURS_PER_YEAR


def owned_as_machines(owned: tuple[OwnedMachine, ...], forecast: Forecast) -> tuple[Machine, ...]:
    """Owned machines as sources; jobs may use a part of each, as of machines to buy."""
    return tuple(
        Machine(
            name=owned_machine.instance_type.name,
            parts=_parts(owned_machine),
            usd=0.0,
            life_years=forecast.horizon_years,
            residual_usd=0.0,
            watts=owned_machine.power_watts,
            slots=0,
            source="the inventory",
            as_of="",
            owned=owned_machine,
            free_share=free_share(owned_machine, forecast),
        )
        for owned_machine in owned
    )


def free_share(machine: OwnedMachine, forecast: Forecast) -> float:
    """The share of the horizon's hours in which a machine is free."""
    if not machine.windows:
        return 1.0
    start = forecast.start
    end = start + timedelta(hours=forecast.horizon_years * HOURS_PER_YEAR)
    spans = sorted(span for window in machine.windows for span in window.spans(start, end))
    free, until = timedelta(0), start
    for begins, ends in spans:
        last = min(ends, end)
        if last > until:
            free, until = free + (last - max(begins, until)), last
    return free / (end - start)


def _parts(machine: OwnedMachine) -> tuple[tuple[int, OwnedMachine], ...]:
    whole = machine.instance_type
    count = max(1, int(whole.accelerator_count))
    fewer = [size for size in (1, 2, 4, 8, 16, 32) if size < count and count % size == 0]
    named = (count, replace(machine, instance_type=replace(whole, name=_name(whole, count))))
    return (*((size, _part(machine, size, count)) for size in fewer), named)


def _part(machine: OwnedMachine, some: int, count: int) -> OwnedMachine:
    """`some` of its accelerators with their share of the host."""
    whole, share = machine.instance_type, some / count
    part = replace(
        whole,
        name=_name(whole, some),
        accelerator_count=Fraction(some),
        vcpus=None if whole.vcpus is None else whole.vcpus * share,
        ram_gib=None if whole.ram_gib is None else whole.ram_gib * share,
        local_disk_gb=None if whole.local_disk_gb is None else whole.local_disk_gb * share,
        clusters=False,
        fixed_nodes=None,
    )
    return replace(machine, instance_type=part, machines=1, power_watts=max(1.0, machine.power_watts * share))


def _name(whole: InstanceType, some: int) -> str:
    """A name that differs from the names of machines to buy."""
    return f"{whole.name} (own, {some})"


Floats = NDArray[np.float64]
#: Figures of a run: machine-hours, kWh, other USD, accelerators and wall hours.
_Run = tuple[float, float, float, float, float]


type Source = Machine | Node | Spending


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Served:
    """A run of each job on each source; bought and owned machines first. Arrays are [sources, jobs], inf if impossible.

    `machine_hours` is USD at the plan's rates for `Spending`. `kwh` is of bought and owned machines, PUE included;
    `other_usd` is storage and egress; `run_hours` are wall hours. `usd_per_kwh` is [sources]. `rented` is the cheapest
    rented configuration per job, None if there is none.
    """

    market: Market
    sources: tuple[Source, ...]
    machine_hours: Floats
    kwh: Floats
    usd_per_kwh: Floats
    other_usd: Floats
    accelerators: Floats
    run_hours: Floats
    rented: tuple[Choice | None, ...]


def is_available(source: Source) -> float | None:
    """The existing amount of a source, of which only the use is decided; None for a new source."""
    match source:
        case Machine():
            return None if source.owned is None else float(source.owned.machines)
        case Node():
            return None if source.held is None else float(source.held)
        case Spending():
            return source.existing_usd


def is_there(source: Source) -> bool:
    """Whether the source already exists."""
    return is_available(source) is not None


def served(
    forecast: Forecast, columns: Columns, settings: PlannerSettings, owned: tuple[OwnedMachine, ...] = ()
) -> Served:
    """Estimates of every job on every machine, node under a term, savings plan and rented configuration.

    Existing supply is `owned` and the commitments of `settings`. Raises `UnusableInput` for a commitment that is not in
    the snapshot.
    """
    columns = planned_prices(columns, settings, forecast.start)
    commitment_markets(columns, settings.held)
    charged(columns, replace(settings, discounts=()))
    market = rented(columns)
    machines = (*forecast.machines, *owned_as_machines(owned, forecast))
    on_owned = np.stack([_on_owned_machines(job, forecast, settings, machines) for job in forecast.jobs], axis=2)
    under_term = [under_terms(job, forecast, market, settings) for job in forecast.jobs]
    nodes, run = new_nodes(market, under_term, forecast)
    committed, run_committed = committed_nodes(market, under_term, settings)
    plans, run_planned = spendings(market, under_term, forecast, settings)
    parts = np.concatenate((on_owned, run, run_committed, run_planned), axis=1)
    sources: tuple[Source, ...] = (*machines, *nodes, *committed, *plans)
    return Served(
        market=market,
        sources=sources,
        machine_hours=parts[0],
        kwh=parts[1],
        usd_per_kwh=np.array([_usd_per_kwh(source, forecast) for source in sources]),
        other_usd=parts[2],
        accelerators=parts[3],
        run_hours=parts[4],
        rented=tuple(_rented(job, market, forecast, settings) for job in forecast.jobs),
    )


def _usd_per_kwh(source: Source, forecast: Forecast) -> float:
    owned_machine = source.owned if isinstance(source, Machine) else None
    return forecast.electricity_usd_per_kwh if owned_machine is None else owned_machine.usd_per_kwh


def _on_owned_machines(
    forecast_job: ForecastJob, forecast: Forecast, settings: PlannerSettings, machines: tuple[Machine, ...]
) -> Floats:
    """[5, machines]: the figures of a run on each machine to buy or owned."""
    costs = np.full((5, len(machines)), np.inf)
    flat = [(m, count, part) for m, machine in enumerate(machines) for count, part in machine.parts]
    if not flat:
        return costs
    market = owned_market(tuple(part for _, _, part in flat), "marginal", forecast.start)
    stated = forecast_job.job.constraints
    owned_only = replace(stated, price_kinds=("owned",), providers=(), regions=(), geography=(), instance_types=())
    free = constrained(forecast_job, owned_only)
    table = every(candidates(question_of(free, market, forecast, settings)))
    table = table.take(in_time(table, forecast_job))
    names = {part.instance_type.name: (m, count) for m, count, part in flat}
    type_index, setup_hours = market.snapshot.type_index[table.place], table.run().setup_hours
    for i, t in enumerate(type_index.tolist()):
        part = market.owned[t]
        m, count = names[part.instance_type.name]
        setup = float(setup_hours[i]) if part.windows else None
        _least_only(costs, m, _run_on(table.cost_breakdown, i, count * int(table.nodes[i]), machines[m], setup))
    return costs


def _run_on(cost_breakdown: CostBreakdown, i: int, used: int, machine: Machine, setup: float | None) -> _Run:
    """One configuration on `used` accelerators of a machine; the run takes its share of the free machine-hours.

    Availability windows (given by `setup`) extend the wall hours but not the work.
    """
    busy = float(cost_breakdown.hours[i]) if setup is None else float(cost_breakdown.run_hours[i]) + setup
    kwh = busy * used / machine.accelerators * machine.watts / 1000 * machine.whole.pue
    other = float(cost_breakdown.storage_usd[i] + cost_breakdown.egress_usd[i])
    hours = busy * used / machine.accelerators / machine.free_share if machine.free_share else np.inf
    return hours, kwh, other, float(used), busy


def _least_only(costs: Floats, m: int, run: _Run) -> None:
    """Keep the run with the least machine-hours; of equal ones the least energy."""
    if run[:2] < tuple(costs[:2, m]):
        costs[:, m] = run


def _rented(forecast_job: ForecastJob, market: Market, forecast: Forecast, settings: PlannerSettings) -> Choice | None:
    """The cheapest configuration without an obligation that meets the job's deadline and budget."""
    kinds = tuple(
        name
        for name in kinds_asked(forecast_job.job.constraints)
        if not price_kinds()[name].owned and not price_kinds()[name].term_hours
    )
    if not kinds:
        return None
    asked = constrained(forecast_job, replace(forecast_job.job.constraints, price_kinds=tuple(sorted(kinds))))
    candidate_set = candidates(question_of(asked, market, forecast, settings))
    index = cheapest(
        candidate_set.table,
        over(candidate_set.table, forecast_job.job.deadline_hours, forecast_job.job.budget_usd) == 0,
    )
    return None if index is None else in_words(candidate_set, candidate_set.table, index)
