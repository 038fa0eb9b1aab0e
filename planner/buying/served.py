"""What each source does for each job: machine-hours, running cost and size of a run, from the planner's own estimates.

A machine that is bought or owned may run a job on some of its accelerators and others beside it: of the counts that
keep the job's deadline the one with the least share of machine-hours is taken. A committed node and the cheapest rented
configuration are what a plan would choose, at the same speed, storage, egress and set-up as there.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from catalog.columns import Columns
from catalog.owned import OwnedMachine
from catalog.price_kinds import price_kinds
from planner.answer import Choice
from planner.buying.forecast import Forecast, ForecastJob, Machine
from planner.buying.own import owned_as_machines
from planner.buying.questions import constrained, every, in_time, question_of
from planner.buying.terms import Node, Spending, held_nodes, new_nodes, spendings, under_terms
from planner.candidates.gather import candidates, over
from planner.candidates.market import Market, held_markets, owned_market, rented
from planner.candidates.requirements import kinds_asked
from planner.choice import cheapest, in_words
from planner.cost.bill import Bill
from planner.discounts import discounted
from planner.held_spend import charged
from planner.settings import PlannerSettings

Floats = NDArray[np.float64]
#: Machine-hours, kWh, other USD, accelerators and hours on the clock of a run.
_Run = tuple[float, float, float, float, float]


type Source = Machine | Node | Spending


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Served:
    """What `sources` do, machines to buy and own first. Arrays are [sources, jobs], inf where it cannot be done.

    `machine_hours` of a run (for `Spending`, USD at the plan's rates), `kwh` (of own machines, PUE included) and
    `other_usd` (storage, egress) of it, `accelerators` at work during it and its `run_hours`. `usd_per_kwh` [sources].
    `rented` is the cheapest rented configuration per job, None where none will do.
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


def there_is(source: Source) -> float | None:
    """How much of it the user has already, so that nothing is decided about it but its use; None for what is new."""
    match source:
        case Machine():
            return None if source.own is None else float(source.own.machines)
        case Node():
            return None if source.held is None else float(source.held)
        case Spending():
            return source.held_usd


def is_there(source: Source) -> bool:
    """Whether the user has it already."""
    return there_is(source) is not None


def served(
    forecast: Forecast, columns: Columns, settings: PlannerSettings, owned: tuple[OwnedMachine, ...] = ()
) -> Served:
    """Estimates of every job on every machine, node under a term, savings plan and rented configuration.

    `owned` machines and what `settings` say is held serve too. Raises `UnusableInput` for what is held and is not in
    the snapshot.
    """
    columns = discounted(columns, settings.discounts)
    held_markets(columns, settings.held)
    charged(columns, replace(settings, discounts=()))
    market = rented(columns)
    machines = (*forecast.machines, *owned_as_machines(owned, forecast))
    own = np.stack([_own(each, forecast, settings, machines) for each in forecast.jobs], axis=2)
    under_term = [under_terms(each, forecast, market, settings) for each in forecast.jobs]
    nodes, run = new_nodes(market, under_term, forecast)
    held, run_held = held_nodes(market, under_term, settings)
    plans, run_planned = spendings(market, under_term, forecast, settings)
    parts = np.concatenate((own, run, run_held, run_planned), axis=1)
    sources: tuple[Source, ...] = (*machines, *nodes, *held, *plans)
    return Served(
        market=market,
        sources=sources,
        machine_hours=parts[0],
        kwh=parts[1],
        usd_per_kwh=np.array([_usd_per_kwh(each, forecast) for each in sources]),
        other_usd=parts[2],
        accelerators=parts[3],
        run_hours=parts[4],
        rented=tuple(_rented(each, market, forecast, settings) for each in forecast.jobs),
    )


def _usd_per_kwh(source: Source, forecast: Forecast) -> float:
    own = source.own if isinstance(source, Machine) else None
    return forecast.electricity_usd_per_kwh if own is None else own.usd_per_kwh


def _own(each: ForecastJob, forecast: Forecast, settings: PlannerSettings, machines: tuple[Machine, ...]) -> Floats:
    """[5, machines]: what a run takes on each machine that may be bought or that the user has."""
    found = np.full((5, len(machines)), np.inf)
    flat = [(m, count, part) for m, machine in enumerate(machines) for count, part in machine.parts]
    if not flat:
        return found
    market = owned_market(tuple(part for _, _, part in flat), "marginal", forecast.start)
    stated = each.job.constraints
    own = replace(stated, price_kinds=("owned",), providers=(), regions=(), geography=(), instance_types=())
    free = constrained(each, own)
    table = every(candidates(question_of(free, market, forecast, settings)))
    table = table.take(in_time(table, each))
    names = {part.instance_type.name: (m, count) for m, count, part in flat}
    type_index = market.snapshot.type_index[table.place]
    for i, t in enumerate(type_index.tolist()):
        part = market.owned[t]
        m, count = names[part.instance_type.name]
        setup = settings.setup_hours if part.windows else None
        _keep_least(found, m, _run_on(table.bill, i, count * int(table.nodes[i]), machines[m], setup))
    return found


def _run_on(bill: Bill, i: int, used: int, machine: Machine, setup: float | None) -> _Run:
    """One configuration on `used` accelerators of a machine; the run has its share of the machine-hours that are free.

    Free windows (`setup` is then given) stretch the hours on the clock and not the work.
    """
    busy = float(bill.hours[i]) if setup is None else float(bill.run_hours[i]) + setup
    kwh = busy * used / machine.accelerators * machine.watts / 1000 * machine.whole.pue
    other = float(bill.storage_usd[i] + bill.egress_usd[i])
    hours = busy * used / machine.accelerators / machine.free_share if machine.free_share else np.inf
    return hours, kwh, other, float(used), busy


def _keep_least(found: Floats, m: int, run: _Run) -> None:
    """Least machine-hours; of equals, least energy."""
    if run[:2] < tuple(found[:2, m]):
        found[:, m] = run


def _rented(each: ForecastJob, market: Market, forecast: Forecast, settings: PlannerSettings) -> Choice | None:
    """The cheapest configuration without an obligation that meets the job's deadline and budget."""
    kinds = tuple(
        name
        for name in kinds_asked(each.job.constraints)
        if not price_kinds()[name].owned and not price_kinds()[name].term_hours
    )
    if not kinds:
        return None
    asked = constrained(each, replace(each.job.constraints, price_kinds=tuple(sorted(kinds))))
    found = candidates(question_of(asked, market, forecast, settings))
    index = cheapest(found.table, over(found.table, each.job.deadline_hours, each.job.budget_usd) == 0)
    return None if index is None else in_words(found, found.table, index)
