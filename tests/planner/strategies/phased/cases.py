"""Small cases in which moves may pay, and the plan of one or two phases that is found for them. Standbys are left aside."""

import random
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction

from gpuplan.catalog.model.availability_windows import FreeSpan
from gpuplan.catalog.model.offer import InstanceType
from gpuplan.catalog.model.owned_machine import OwnedMachine
from gpuplan.catalog.model.spot_waits import spot_waits
from gpuplan.catalog.snapshots.offer_columns import Columns, columns_of
from gpuplan.planner.candidates.candidate_set import Candidates, candidates, over
from gpuplan.planner.candidates.configuration_choice import cheapest
from gpuplan.planner.candidates.markets import markets
from gpuplan.planner.candidates.planning_problem import Question
from gpuplan.planner.model.job import TrainingJob
from gpuplan.planner.model.settings import PlannerSettings
from gpuplan.planner.strategies.phased.phase_search import cheapest_in_phases
from gpuplan.planner.strategies.schedule import Schedule, in_phases, on_one_configuration
from gpuplan.planner.strategies.strategy_choice import limit_micros
from gpuplan.planner.workload import work_of
from tests.planner.small_catalogues import DEVICES, OBSERVED, START, random_columns, random_job
from tests.planner.spot_settings import replaced_at_once
from tests.planner.strategies.phased.plain import STEPS, Search

SETTINGS = replaced_at_once(least_saving_of_a_move_percent=0.0)
#: Waits of an hour, and nodes that are lost together as often as in the table of waits.
WAITING = replace(SETTINGS, spot_wait_hours=1.0, node_loss_exponent=spot_waits().loss_node_exponent)
OWN_AND_BOOKED = ("on_demand", "spot", "capacity_block", "flex_start", "owned")


def found_for(
    job: TrainingJob,
    columns: Columns,
    owned: tuple[OwnedMachine, ...] = (),
    settings: PlannerSettings = SETTINGS,
) -> Candidates:
    """The candidates of a job."""
    question = Question(
        job=job,
        work=work_of(job.workload, job.training),
        markets=markets(columns, owned, settings, START),
        start=START,
        settings=settings,
    )
    return candidates(question)


def best_schedule(candidates: Candidates) -> Schedule | None:
    """The cheapest of one configuration and of two phases."""
    job = candidates.question.job
    chosen = cheapest(candidates.table, over(candidates.table, job.deadline_hours, job.budget_usd) == 0)
    phased = cheapest_in_phases(candidates, limit_micros(candidates, chosen))
    if phased is not None:
        return in_phases(candidates, phased)
    return None if chosen is None else on_one_configuration(candidates, chosen)


def rented_case(
    seed: int, settings: PlannerSettings = SETTINGS
) -> tuple[TrainingJob, Columns, tuple[OwnedMachine, ...]]:
    """A few offers, few nodes, and a deadline between what the fastest and the cheapest of them take."""
    draw = random.Random(f"rented {seed}")
    columns = random_columns(draw, types=1, offers=draw.choice((4, 6, 8)))
    job = replace(random_job(draw), budget_usd=None)
    job = replace(job, constraints=replace(job.constraints, max_nodes=draw.choice((1, 2, 3)), price_kinds=()))
    return _tight(draw, job, columns, (), settings), columns, ()


def booked_case(
    seed: int, settings: PlannerSettings = SETTINGS
) -> tuple[TrainingJob, Columns, tuple[OwnedMachine, ...]]:
    """Kinds that bill whole days or end after some, and an own machine that is free now and then."""
    draw = random.Random(f"booked {seed}")
    columns = random_columns(draw, types=1, offers=draw.choice((2, 3, 4)))
    offers = {}
    for offer in columns.offers:
        kind = draw.choice(("capacity_block", "flex_start")) if offer.price_kind == "reserved_1y" else offer.price_kind
        changed = replace(offer, price_kind=kind)
        offers[changed.key] = changed
    columns = columns_of("booked", OBSERVED, columns.instance_types, list(offers.values()))
    owned = (_rig(draw),) if draw.random() < 0.8 else ()
    job = replace(random_job(draw), budget_usd=None)
    constraints = replace(job.constraints, max_nodes=draw.choice((1, 2)), price_kinds=OWN_AND_BOOKED)
    return _tight(draw, replace(job, constraints=constraints), columns, owned, settings), columns, owned


def _rig(draw: random.Random) -> OwnedMachine:
    spans, end = [], draw.uniform(0, 100)
    for _ in range(draw.choice((1, 2, 3))):
        begin, end = end, end + draw.uniform(3, 80)
        spans.append(FreeSpan(start=START + timedelta(hours=begin), end=START + timedelta(hours=end)))
        end += draw.uniform(1, 60)
    instance_type = InstanceType(
        provider="local",
        name="rig",
        accelerator=draw.choice(DEVICES),
        accelerator_count=Fraction(draw.choice((1, 2, 4))),
        vcpus=32.0,
        scaleup_domain=8,
        network_gbps=50.0,
        clusters=True,
        source="drawn",
    )
    return OwnedMachine(
        instance_type=instance_type,
        region="lab",
        machines=draw.choice((1, 2)),
        usd_per_hour_full=draw.uniform(0, 1),
        power_watts=500.0,
        pue=1.2,
        usd_per_kwh=0.3,
        windows=tuple(spans),
    )


def _tight(
    draw: random.Random,
    job: TrainingJob,
    columns: Columns,
    owned: tuple[OwnedMachine, ...],
    settings: PlannerSettings,
) -> TrainingJob:
    """The job with a deadline that the cheapest configuration misses, as far as there is a choice."""
    search = Search(replace(job, deadline_hours=None), columns, settings, owned)
    alone = [search.priced(order, (STEPS,)) for order in search.orders(1)]
    alone = sorted((plan for plan in alone if plan.hours < 1e5), key=lambda plan: plan.hours)
    if not alone:
        return replace(job, deadline_hours=100.0)
    fastest, cheap = alone[0].hours, min(alone, key=lambda plan: plan.micros).hours
    return replace(job, deadline_hours=fastest * max(cheap / fastest, 1.3) ** draw.uniform(0.02, 1.0))
