"""The schedule of a job: its phases in order, its cost and hours, and the probability of the deadline.

Every strategy returns a schedule: one configuration, two phases, or spot with a standby. The costs of the phases add up
to the cost of the schedule, to the micro-dollar.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.owned_machine import OwnedMachine
from gpuplan.planner.candidates.candidate_set import Candidates
from gpuplan.planner.candidates.configuration_choice import in_words
from gpuplan.planner.candidates.configurations import Configurations, before_work, run_of
from gpuplan.planner.candidates.place_costs import copied
from gpuplan.planner.cost.cost_breakdown import deadline_probability
from gpuplan.planner.cost.cost_quantiles import (
    cost_quantiles,
    cost_spread,
    cost_with_price,
    relative_prices,
    run_costs,
)
from gpuplan.planner.cost.preemption_and_checkpoint_interval import checkpoint_interval
from gpuplan.planner.model.outcome import CostMicros, Moved, PhaseChoice
from gpuplan.planner.model.shared import Hours
from gpuplan.planner.strategies.phased.linear_bounds import windowed_machines
from gpuplan.planner.strategies.phased.linear_underestimators import STEPS
from gpuplan.planner.strategies.phased.phase_pricing import elapsed, expected_elapsed, phase_cost
from gpuplan.planner.strategies.phased.phase_search import Phased


def phase(candidates: Candidates, table: Configurations, index: int, share: float = 1.0) -> PhaseChoice:
    """Configuration `index` as a phase that does a share of the work; the table's cost breakdown is that of the share."""
    market_number, row = int(table.market[index]), int(table.row[index])
    estimates = candidates.estimated[market_number].estimates
    choice = in_words(candidates, table, index)
    rate = float(table.cluster_rate[index])
    run, at = table.priced_configurations, table.which[index]
    work_hours = estimates.hours_with_goodput[row : row + 1] * share
    interval = (
        checkpoint_interval(work_hours, table.checkpoint_hours[index : index + 1], np.array([rate])) if rate else None
    )
    return PhaseChoice(
        choice=choice,
        precision=estimates.precisions[int(estimates.precision[row])],
        precision_substituted=bool(estimates.substituted[row]),
        layout=estimates.layout(row),
        throughput=float(estimates.units_per_second[row]),
        unit=f"{candidates.question.work.unit}/s",
        mfu=float(estimates.mfu[row]),
        memory_gib=float(estimates.peak_gib[row]),
        capacity_gib=float(estimates.capacity_gib[row]),
        training_hours=float(estimates.hours[row]) * share,
        hours_with_goodput=float(work_hours[0]),
        log_sigma=float(estimates.log_sigma[row]),
        interruptions_per_hour=rate / choice.nodes**candidates.question.settings.node_loss_exponent,
        wait_hours=float(run.wait_hours[at]) if rate else None,
        setup_hours=float(run.setup_hours[at]),
        checkpoint_interval_hours=None if interval is None else float(interval[0]),
        expected_preemptions=rate * float(table.cost_breakdown.run_hours[index]),
        carbon_kg=None if np.isnan(table.carbon_kg[index]) else float(table.carbon_kg[index]),
        correction=candidates.question.learned.of(choice.accelerator),
        share=share,
        market=market_number,
    )


Floats = NDArray[np.float64]

#: Bisection steps, from +-8 sigma, for the common factor of all hours at which the plan just meets the deadline.
_HALVINGS = 50
_MOST_SIGMA = 8.0
#: A short piece of work, in hours, to find when a window opens.
_MOMENT = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Phases in the order of their start, their total cost and hours, and the probability of meeting the deadline.

    `notes` are sentences on the assumptions of this kind of plan.
    """

    phases: tuple[PhaseChoice, ...]
    cost: CostMicros
    hours: Hours
    deadline_probability: float | None
    notes: tuple[str, ...] = ()


def on_one_configuration(candidates: Candidates, chosen: int) -> Schedule:
    """The whole job on configuration `chosen`."""
    question, table = candidates.question, candidates.table
    alone, deadline = table.take(np.array([chosen])), question.job.deadline_hours
    opens = _opens(windowed_machines(candidates, alone).get(0), question.start, 0.0)
    only = replace(phase(candidates, table, chosen), begins_hours=opens)
    before = before_work(run_of(question, alone, candidates.estimated, candidates.costs), 0)
    return Schedule(
        phases=(only,),
        cost=cost_with_price(only.choice),
        hours=only.choice.hours,
        deadline_probability=None
        if deadline is None
        else deadline_probability(table.cost_breakdown, chosen, deadline, before_hours=before),
    )


def in_phases(candidates: Candidates, phased: Phased) -> Schedule:
    """The plan of two phases as a schedule."""
    shares = [steps / STEPS for steps in phased.plan.steps]
    table = _table(phased)
    planned: list[PhaseChoice] = []
    for i, share in enumerate(shares):
        now = phase(candidates, table, i, share)
        now = replace(now, begins_hours=_begins(phased, table, i))
        planned.append(replace(now, moved=_moved(candidates, phased, planned[-1], now)) if planned else now)
    return Schedule(
        phases=tuple(planned),
        cost=_cost(planned, phased),
        hours=total_hours([part.choice.hours for part in planned]),
        deadline_probability=_in_time(candidates, phased, table),
        notes=_notes(candidates, planned),
    )


def total_cost(costs: list[CostMicros]) -> CostMicros:
    """The sum over phases, part by part; also of the median and 95 % figures, since all phases are late together."""
    names = ("compute", "storage", "egress", "power", "setup", "median", "p95")
    return CostMicros(**{name: sum(getattr(cost, name) for cost in costs) for name in names})


def _cost(phases: list[PhaseChoice], phased: Phased) -> CostMicros:
    """The total cost, with the spread of the prices that are estimates in its quantiles."""
    total = total_cost([phase.choice.cost for phase in phases])
    prices = [relative_prices(phase.choice.offer) for phase in phases]
    if all(price is None for price in prices):
        return total
    paid = phase_cost(phased.columns, phased.moving, *_row(phased))
    takeover = phased.columns.run.takeover
    lead = 0.0 if takeover is None else float(takeover.lead_usd[phased.plan.sequence[0]])
    costs = [
        run_costs(cost_spread(paid, i, one_off_usd=float(paid.egress_usd[i]) + (0.0 if i else lead)), price)
        for i, price in enumerate(prices)
    ]
    median, p95 = cost_quantiles(costs)
    return replace(total, median=median, p95=p95)


def total_hours(hours: list[Hours]) -> Hours:
    """The sum over phases of the mean and of each quantile."""
    names = ("expected", "median", "confident", "p95")
    return Hours(**{name: sum(getattr(hour, name) for hour in hours) for name in names})


def _row(phased: Phased) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The plan as one row, the form that pricing takes."""
    return np.array([phased.plan.sequence]), np.array([phased.plan.steps])


def _table(phased: Phased) -> Configurations:
    """One configuration per phase, with the cost of that phase and hours from the end of the phase before."""
    columns, moving = phased.columns, phased.moving
    sequence, steps = _row(phased)
    paid = phase_cost(columns, moving, sequence, steps)
    clock = {
        name: elapsed(columns, moving, sequence, getattr(paid, name)[None, :])[0]
        for name in ("hours_median", "hours_at_confidence", "hours_p95")
    }
    clock["hours"] = expected_elapsed(columns, moving, sequence, paid)
    whole = columns.table.take(sequence[0])
    ran = np.divide(paid.run_hours, whole.cost_breakdown.run_hours)
    return replace(whole, cost_breakdown=replace(paid, **clock), carbon_kg=whole.carbon_kg * ran)


def _begins(phased: Phased, table: Configurations, position: int) -> float:
    """Expected hours from the start until the machines of a phase start: after the move, and when a window opens."""
    column = phased.plan.sequence[position]
    begun = float(table.cost_breakdown.hours[:position].sum())
    if not position:
        begun = float(phased.columns.first_hours[column])
    else:
        before = np.array([phased.plan.sequence[position - 1]])
        begun += float(phased.moving.hours(before, np.array([column]))[0])
    return begun + _opens(phased.columns.machine[column], phased.columns.start, begun)


def _opens(machine: OwnedMachine | None, start: datetime, begun: float) -> float:
    """Hours until a machine is free, from `begun` hours after the start; 0 for None, a machine without windows."""
    if machine is None:
        return 0.0
    return max(machine.elapsed_hours(start, _MOMENT, after_hours=begun) - _MOMENT, 0.0)


def _moved(candidates: Candidates, phased: Phased, before: PhaseChoice, after: PhaseChoice) -> Moved:
    origin, offer, data = before.choice.offer, after.choice.offer, candidates.question.job.data
    stays = (origin.provider, origin.region) == (offer.provider, offer.region)
    return Moved(
        origin=origin,
        checkpoint_gb=phased.columns.checkpoint_gb,
        data_gb=0.0 if stays else copied(data, offer.provider, offer.region),
        egress=after.choice.cost.egress,
    )


def _in_time(candidates: Candidates, phased: Phased, table: Configurations) -> float | None:
    """The probability of meeting the deadline: the normal deviation of all hours at which the plan just meets it."""
    deadline = candidates.question.job.deadline_hours
    if deadline is None:
        return None
    sequence, steps = _row(phased)
    paid = phase_cost(phased.columns, phased.moving, sequence, steps)
    expected_work = paid.run_hours + paid.waiting_hours
    work, fixed = expected_work / paid.mean_factor, paid.hours - expected_work
    low, high = -_MOST_SIGMA, _MOST_SIGMA
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        busy = fixed + work * np.exp(middle * paid.sigma)
        late = elapsed(phased.columns, phased.moving, sequence, busy[None, :]).sum() > deadline
        low, high = (low, middle) if late else (middle, high)
    return NormalDist().cdf(low)


def _notes(candidates: Candidates, planned: list[PhaseChoice]) -> tuple[str, ...]:
    settings = candidates.question.settings
    notes = [
        (
            f"shares of the work are planned in steps of {100 / STEPS:g} % (the certificate states what finer ones might save), "
            "and each phase does its own share however long the others take"
        ),
        "estimates of all phases err together: hours at a confidence are the sum of those of the phases",
        "phases run in the cheapest order, owned machines as their windows allow",
        "a run moves only between machines of the same software stack and precision; its layout may change",
        "at a move the old machines are paid until the checkpoint is written, the new ones from their set-up on",
    ]
    places = {(phase.choice.offer.provider, phase.choice.offer.region) for phase in planned}
    if len(places) > 1:
        notes.append(
            f"between regions a checkpoint is sent at {settings.move_gbs:g} GB/s while no machine waits for it; the "
            "data are copied to each new region before its phase begins"
        )
    return tuple(notes)
