"""Small cases in which moves may pay, and the plan in phases that is found for them: nets of other kinds left aside."""

import random
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction

from catalog.columns import Columns, columns_of
from catalog.free_time import FreeSpan
from catalog.offer import InstanceType
from catalog.owned import OwnedMachine
from planner.candidates.gather import Candidates, candidates, over
from planner.candidates.market import markets
from planner.choice import cheapest
from planner.job import TrainingJob
from planner.phases.cheapest import limit_micros
from planner.phases.course import Course, in_phases, on_one_configuration
from planner.phases.search import cheapest_in_phases
from planner.question import Question
from planner.settings import PlannerSettings
from planner.workload import work_of
from tests.planner.phases.plain import STEPS, Search
from tests.planner.small_catalogues import DEVICES, OBSERVED, START, random_columns, random_job

SETTINGS = PlannerSettings()
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


def best_course(found: Candidates) -> Course | None:
    """The cheapest of one configuration and of several phases."""
    job = found.question.job
    chosen = cheapest(found.table, over(found.table, job.deadline_hours, job.budget_usd) == 0)
    phased = cheapest_in_phases(found, limit_micros(found, chosen))
    if phased is not None:
        return in_phases(found, phased)
    return None if chosen is None else on_one_configuration(found, chosen)


def rented_case(seed: int) -> tuple[TrainingJob, Columns, tuple[OwnedMachine, ...]]:
    """A few offers, few nodes, and a deadline between what the fastest and the cheapest of them take."""
    draw = random.Random(f"rented {seed}")
    columns = random_columns(draw, types=1, offers=draw.choice((4, 6, 8)))
    job = replace(random_job(draw), budget_usd=None)
    job = replace(job, constraints=replace(job.constraints, max_nodes=draw.choice((1, 2, 3)), price_kinds=()))
    return _tight(draw, job, columns, ()), columns, ()


def booked_case(seed: int) -> tuple[TrainingJob, Columns, tuple[OwnedMachine, ...]]:
    """Kinds that bill whole days or end after some, and an own machine that is free now and then."""
    draw = random.Random(f"booked {seed}")
    columns = random_columns(draw, types=1, offers=draw.choice((2, 3, 4)))
    offers = {}
    for each in columns.offers:
        kind = draw.choice(("capacity_block", "flex_start")) if each.price_kind == "reserved_1y" else each.price_kind
        changed = replace(each, price_kind=kind)
        offers[changed.key] = changed
    columns = columns_of("booked", OBSERVED, columns.instance_types, list(offers.values()))
    owned = (_rig(draw),) if draw.random() < 0.8 else ()
    job = replace(random_job(draw), budget_usd=None)
    constraints = replace(job.constraints, max_nodes=draw.choice((1, 2)), price_kinds=OWN_AND_BOOKED)
    return _tight(draw, replace(job, constraints=constraints), columns, owned), columns, owned


def _rig(draw: random.Random) -> OwnedMachine:
    spans, end = [], draw.uniform(0, 100)
    for _ in range(draw.choice((1, 2, 3))):
        begin, end = end, end + draw.uniform(3, 80)
        spans.append(FreeSpan(start=START + timedelta(hours=begin), end=START + timedelta(hours=end)))
        end += draw.uniform(1, 60)
    each = InstanceType(
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
        instance_type=each,
        region="lab",
        machines=draw.choice((1, 2)),
        usd_per_hour_full=draw.uniform(0, 1),
        power_watts=500.0,
        pue=1.2,
        usd_per_kwh=0.3,
        windows=tuple(spans),
    )


def _tight(draw: random.Random, job: TrainingJob, columns: Columns, owned: tuple[OwnedMachine, ...]) -> TrainingJob:
    """The job with a deadline that the cheapest configuration misses, as far as there is a choice."""
    search = Search(replace(job, deadline_hours=None), columns, SETTINGS, owned)
    alone = [search.priced(each, (STEPS,)) for each in search.orders(1)]
    alone = sorted((each for each in alone if each.hours < 1e5), key=lambda each: each.hours)
    if not alone:
        return replace(job, deadline_hours=100.0)
    fastest, cheap = alone[0].hours, min(alone, key=lambda each: each.micros).hours
    return replace(job, deadline_hours=fastest * max(cheap / fastest, 1.3) ** draw.uniform(0.02, 1.0))
