"""The capacity ladder of a saved plan as the terms of a replay: its choices, the machines on demand, and the run."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpuplan.api.services.spot_run_of_plan import offer_rows, sold
from gpuplan.catalog.model.capacity_prior import capacity_prior
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.planner.candidates.preemption_waits import waits_of
from gpuplan.planner.candidates.setup_hours import setup_hours_of
from gpuplan.planner.cost.preemption_and_checkpoint_interval import interrupted
from gpuplan.planner.model.plan import Plan, PlanAnswer, PlannedAnswer
from gpuplan.planner.model.shared import Configuration, Machines
from gpuplan.planner.model.stated_settings import stated_settings
from gpuplan.planner.spot_policy.availability_traces import DEFAULT_STEP_HOURS
from gpuplan.planner.spot_policy.ladder_rules import LadderTerms
from gpuplan.planner.spot_policy.run_parameters import Place, SpotTerms

#: What names the machines of a choice.
MACHINE_NAMES = ("provider", "region", "zone", "instance_type", "nodes", "price_kind")


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderChoice:
    """The machines of a choice of the ladder, and the hours of its work if nothing interrupts it."""

    machines: Machines
    work_hours: float

    @property
    def permanent(self) -> bool:
        """Whether its machines are not interruptible."""
        return not price_kinds()[self.machines.price_kind].interruptible

    @property
    def usd_per_hour(self) -> float:
        """The price of all nodes."""
        return float(self.machines.usd_per_node_hour) * self.machines.nodes

    @property
    def pool(self) -> tuple[str, ...]:
        """Its machines, place, nodes and kind."""
        return tuple(str(getattr(self.machines, name)) for name in MACHINE_NAMES)


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderOfPlan:
    """The terms of a replay with the choice of every place, the machines on demand last, and their numbers in the ladder.

    Machines on demand that are no choice of the ladder have the number after its last.
    """

    plan: Plan
    terms: LadderTerms
    choices: tuple[LadderChoice, ...]
    numbers: tuple[int, ...]


def ladder_of_plan(answer: PlanAnswer, columns: Columns, refused: float) -> LadderOfPlan:
    """The ladder of a planned answer over the columns of its snapshot; requests on demand are refused at a rate.

    Raises `UnusableInput` for a plan without a deadline, of several planned phases, without interruptible choices, or
    without machines on demand.
    """
    plan = _replayable(answer)
    ladder, demand = _choices(plan, columns), _cheapest_on_demand(plan, columns)
    places = [choice for choice in ladder if choice.pool != demand.pool]
    numbers = {choice.pool: number for number, choice in enumerate(ladder, start=1)}
    choices = (*places, demand)
    index = {choice.pool: place for place, choice in enumerate(choices)}
    return LadderOfPlan(
        plan=plan,
        terms=_terms(plan, choices, tuple(index[choice.pool] for choice in ladder), refused),
        choices=choices,
        numbers=tuple(numbers.get(choice.pool, len(ladder) + 1) for choice in choices),
    )


def _replayable(answer: PlanAnswer) -> Plan:
    """The plan of an answer, if its ladder can be replayed."""
    if not isinstance(answer, PlannedAnswer):
        raise UnusableInput.at("plan", message="is no plan: no machines meet the job's requirements")
    plan = answer.plan
    if sum(not phase.is_standby for phase in plan.phases) > 1:
        raise UnusableInput.at("plan", message="moves between machines; only a ladder of one phase can be replayed")
    if plan.job.get("deadline") is None:
        raise UnusableInput.at(
            "plan", message="has no deadline, so there is no time to be late for; plan the job with one"
        )
    return plan


def _choices(plan: Plan, columns: Columns) -> list[LadderChoice]:
    """The plan's own machines, then its next choices."""
    phase = plan.phases[0]
    growth = math.exp(phase.log_sigma**2 / 2)
    first = LadderChoice(machines=phase, work_hours=phase.hours_with_goodput * growth)
    rows = () if plan.capacity_ladder is None else plan.capacity_ladder.next_choices
    rest = [LadderChoice(machines=row, work_hours=_work_hours(row, plan, columns)) for row in rows]
    choices = [first, *rest]
    if all(choice.permanent for choice in choices):
        raise UnusableInput.at(
            "plan", message="has no interruptible choice in its ladder, so no trace says anything of it"
        )
    return choices


def _cheapest_on_demand(plan: Plan, columns: Columns) -> LadderChoice:
    """The cheapest machines on demand that the plan names among its alternatives and meet the deadline."""
    rows = [row for row in plan.alternatives if price_kinds()[row.price_kind].is_plain and row.meets_deadline]
    if not rows:
        message = "names no machines on demand that meet the deadline; allow on_demand in constraints.price_kinds"
        raise UnusableInput.at("plan", message=message)
    row = min(rows, key=lambda row: row.cost_usd)
    return LadderChoice(machines=row, work_hours=_work_hours(row, plan, columns))


def _work_hours(row: Configuration, plan: Plan, columns: Columns) -> float:
    """Expected hours of a choice without its set-up and without the preemptions and waits that the plan expects."""
    settings, phase = stated_settings(plan), plan.phases[0]
    hours = max(row.hours - _setup_hours(row, plan, columns), 1e-6)
    if not price_kinds()[row.price_kind].interruptible:
        return hours
    rate = _rate(row, plan, columns) * settings.nodes_lost(row)
    if rate <= 0:
        return hours
    write, work = settings.write_hours_of(phase), hours
    wait = np.array([_wait_hours(row, plan, columns)])
    for _ in range(30):
        ran = interrupted(
            np.array([work]),
            np.array([write]),
            settings.restart_hours,
            np.array([rate]),
            wait_hours=wait,
        )
        work *= hours / float(ran.run_hours[0] + ran.waiting_hours[0])
    return work


def _rate(row: Configuration, plan: Plan, columns: Columns) -> float:
    """Preemptions per node-hour of the offer in its snapshot, or the settings' default."""
    of_kind = columns.kind_index == list(columns.kinds).index(row.price_kind)
    for index in np.flatnonzero(offer_rows(columns, row) & of_kind).tolist():
        rate = float(columns.interruptions_per_hour[index])
        if columns.offer(index).zone == row.zone and not math.isnan(rate):
            return rate
    return stated_settings(plan).default_interruptions_per_hour


def _wait_hours(row: Configuration, plan: Plan, columns: Columns) -> float:
    """Hours without machines after a preemption, as the plan's settings state or as the planner models them."""
    stated = stated_settings(plan).spot_wait_hours
    if stated is not None:
        return stated
    at = np.flatnonzero(sold(columns, row) & (columns.kind_index == list(columns.kinds).index(row.price_kind)))
    type_ = columns.type_index[at[:1]].astype(np.intp)
    return float(waits_of(columns, type_, np.array([len(at)]), np.array([row.nodes]), plan.start.year)[0])


def _setup_hours(row: Configuration, plan: Plan, columns: Columns) -> float:
    """Hours before the first step of a choice, as the plan's settings state or as the planner models them."""
    stated, kind = stated_settings(plan).setup_hours, list(columns.kinds).index(row.price_kind)
    at = np.flatnonzero(sold(columns, row) & (columns.kind_index == kind))[:1]
    type_, kinds = columns.type_index[at].astype(np.intp), np.full(len(at), kind)
    nodes = np.full(len(at), row.nodes)
    return float(setup_hours_of(columns, type_, kinds, nodes, stated)[0])


def _terms(plan: Plan, choices: Sequence[LadderChoice], order: tuple[int, ...], refused: float) -> LadderTerms:
    """The run, in hours of the machines on demand, which are the last choice."""
    settings, phase, demand = stated_settings(plan), plan.phases[0], choices[-1]
    run = SpotTerms(
        work_hours=demand.work_hours,
        deadline_hours=float(plan.job["deadline"]),
        step_hours=DEFAULT_STEP_HOURS,
        changeover_hours=max(settings.setup_hours_of(phase), settings.restart_hours),
        on_demand_usd_per_hour=demand.usd_per_hour,
        places=tuple(
            Place(name=str(i), usd_per_hour=choice.usd_per_hour, speed=demand.work_hours / choice.work_hours)
            for i, choice in enumerate(choices[:-1])
        ),
        checkpoint_every_hours=phase.checkpoint_interval_hours or 0.0,
    )
    try_minutes = capacity_prior().try_minutes if plan.capacity_ladder is None else plan.capacity_ladder.try_minutes
    return LadderTerms(
        run=run,
        order=order,
        permanent=tuple(choice.permanent for choice in choices),
        try_hours=try_minutes / 60.0,
        refused=refused,
    )
