"""Stated expectations are means: plans are run thousands of times by code that knows their figures and nothing of the planner.

A run draws one error of the estimates, lognormal and the same on all machines, then preemptions one by one, and pays what the
clock says. So a plan that stated the cost of the median run would be caught by its mean, 4 to 10 % higher.
"""

import math
import random
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import pytest

from gpuplan.catalog.model.availability_windows import FreeSpan
from gpuplan.catalog.model.offer import InstanceType, Offer
from gpuplan.catalog.model.owned_machine import OwnedMachine
from gpuplan.catalog.snapshots.offer_columns import Columns, columns_of
from gpuplan.planner.cost.billing_rounding import expected_billed
from gpuplan.planner.model.job import Constraints, Explicit, TrainingJob
from gpuplan.planner.model.outcome import NoPlan, PhaseChoice, Planned
from gpuplan.planner.planning import plan
from gpuplan.planner.strategies.schedule import Schedule
from gpuplan.planner.verify.billed_hours import expected_billed as by_verify
from tests.planner.small_catalogues import OBSERVED, START
from tests.planner.spot_settings import replaced_at_once
from tests.planner.strategies.phased.cases import best_schedule, found_for

RUNS = 20_000
#: GB that one checkpoint takes, of an explicit job of 40 GiB of states.
CHECKPOINT_GB = 40 * 1.073741824
#: Intervals are planned for the estimated hours; the last one of a run is not a whole one.
OF_THE_MODEL = 0.006
SETTINGS = replaced_at_once(least_saving_of_a_move_percent=0.0)


def machine(name: str, accelerator: str, count: int = 8) -> InstanceType:
    return InstanceType(
        provider="aws",
        name=name,
        accelerator=accelerator,
        accelerator_count=Fraction(count),
        vcpus=96.0,
        clusters=True,
        source="made up",
    )


SLOW, FAST = machine("slow", "A100-40GB-SXM"), machine("fast", "H100-80GB-SXM")


def offer(instance_type: InstanceType, usd: float, kind: str = "on_demand", rate: float | None = None) -> Offer:
    return Offer(
        provider="aws",
        region="us-east-1",
        zone="",
        instance_type=instance_type.name,
        price_kind=kind,
        usd_micros_per_hour=round(usd * 1e6),
        interruptions_per_hour=rate,
        observed_at=OBSERVED,
        source="made up",
    )


def columns(*offers: Offer) -> Columns:
    return columns_of("made up", OBSERVED, [SLOW, FAST], list(offers))


def job(deadline: float | None = None, hours: float = 40.0, **constraints: object) -> TrainingJob:
    """About so many hours on one machine of the fast kind."""
    return TrainingJob(
        name="made up",
        workload=Explicit(total_flops=hours * 3600 * 8 * 2e14, memory_gib=40.0),
        start=START,
        deadline_hours=deadline,
        constraints=Constraints(**{"max_nodes": 1} | constraints),  # type: ignore[arg-type]
    )


def planned(asked: TrainingJob, *offers: Offer, owned: tuple[OwnedMachine, ...] = ()) -> Planned:
    answer = plan(asked, columns(*offers), owned=owned, settings=SETTINGS)
    assert isinstance(answer, Planned)
    return answer


def without_standby(asked: TrainingJob, *offers: Offer) -> Schedule:
    schedule = best_schedule(found_for(asked, columns(*offers), settings=SETTINGS))
    assert schedule is not None
    return schedule


class Run(NamedTuple):
    """Hours of one run on the clock, and of each of its phases those that machines are up."""

    ends: float
    up: list[float]


def write_hours(phase: PhaseChoice) -> float:
    return CHECKPOINT_GB / SETTINGS.checkpoint_gbs / 3600 / phase.choice.nodes


def up_hours(draw: random.Random, phase: PhaseChoice, work: float) -> float:
    """Hours until so much work is done, of segments that end with a checkpoint and are done anew after a preemption."""
    rate = phase.interruptions_per_hour * phase.choice.nodes
    if not rate or phase.checkpoint_interval_hours is None:
        return work
    up, left, preempted = 0.0, work, draw.expovariate(rate)
    while left > 1e-12:
        segment = min(phase.checkpoint_interval_hours, left)
        length = segment + write_hours(phase) * segment / phase.checkpoint_interval_hours
        until = preempted - up
        if until > length:
            up, left = up + length, left - segment
            continue
        up = preempted
        while True:
            restart = draw.expovariate(rate)
            up += min(restart, SETTINGS.restart_hours)
            if restart > SETTINGS.restart_hours:
                break
        preempted = up + restart - SETTINGS.restart_hours
    return up


def in_order(draw: random.Random, planned: Planned | Schedule) -> Run:
    """One run of phases that follow each other."""
    z, ups = draw.gauss(0, 1), []
    for number, phase in enumerate(planned.phases):
        work = phase.hours_with_goodput * math.exp(phase.log_sigma * z)
        handed_over = write_hours(phase) if number < len(planned.phases) - 1 else 0.0
        ups.append(phase.setup_hours + up_hours(draw, phase, work) + handed_over)
    return Run(sum(ups), ups)


def with_standby(deadline: float) -> Callable[[random.Random, Planned | Schedule], Run]:
    """How runs go whose standby is called as soon as another attempt might leave it too late."""

    def run(draw: random.Random, planned: Planned | Schedule) -> Run:
        spot, standby = planned.phases
        z, setup, changeover = draw.gauss(0, 1), spot.setup_hours, standby.setup_hours
        assert spot.checkpoint_interval_hours is not None
        rate = spot.interruptions_per_hour * spot.choice.nodes
        work = spot.hours_with_goodput * math.exp(spot.log_sigma * z)
        all_on_standby = standby.hours_with_goodput * math.exp(standby.log_sigma * z)
        segments = max(1, math.ceil(work / spot.checkpoint_interval_hours))
        length = work / segments + write_hours(spot)
        if setup + length + changeover + all_on_standby > deadline:
            return Run(setup + length + changeover + all_on_standby, [setup + length, changeover + all_on_standby])
        clock, done = setup, 0
        while done < segments:
            last = deadline - length - changeover - all_on_standby * (1 - done / segments)
            if clock > last:
                break
            until = draw.expovariate(rate)
            clock += min(until, length)
            if until > length:
                done += 1
                continue
            back = False
            while not back and clock + SETTINGS.restart_hours <= last:
                until = draw.expovariate(rate)
                clock, back = clock + min(until, SETTINGS.restart_hours), until > SETTINGS.restart_hours
            if not back:
                break
        rest = 0.0 if done == segments else changeover + all_on_standby * (1 - done / segments)
        return Run(clock + rest, [clock, rest])

    return run


def usd(planned: Planned | Schedule, run: Run) -> float:
    """What a run pays for machines: whole seconds that they were up, a minute at least."""
    total = 0.0
    for phase, up in zip(planned.phases, run.up, strict=True):
        per_hour = phase.choice.nodes * phase.choice.offer.usd_micros_per_hour / 1e6
        total += per_hour * (max(math.ceil(up * 3600) / 3600, 1 / 60) if up else 0.0)
    return total


def near(stated: float, values: list[float]) -> bool:
    """Whether a stated mean is that of the runs, within what chance and the model leave room for."""
    room = 4 * float(np.std(values)) / math.sqrt(len(values)) + OF_THE_MODEL * stated
    return abs(stated - float(np.mean(values))) <= room


SPOT = offer(FAST, 30.0, "spot", 0.05)
ON_DEMAND = offer(FAST, 80.0)
SLOW_SPOT = offer(SLOW, 8.0, "spot", 0.01)
CASES: dict[str, tuple[Callable[[], Planned | Schedule], Callable[[random.Random, Planned | Schedule], Run]]] = {
    "on demand": (lambda: planned(job(), ON_DEMAND), in_order),
    "spot": (lambda: planned(job(), SPOT), in_order),
    "two phases on demand": (lambda: planned(job(100.0), ON_DEMAND, offer(SLOW, 16.0)), in_order),
    "spot, then on demand": (lambda: without_standby(job(110.0), ON_DEMAND, SLOW_SPOT), in_order),
    "spot with a standby": (lambda: planned(job(110.0), ON_DEMAND, SLOW_SPOT), with_standby(110.0)),
}


@pytest.mark.slow(reason="5 cases")
@pytest.mark.parametrize("case", CASES)
def test_the_stated_cost_and_hours_are_the_mean_of_simulated_runs(case: str) -> None:
    make, run_once = CASES[case]
    planned_run, draw = make(), random.Random(case)
    kinds = [phase.choice.offer.price_kind for phase in planned_run.phases]
    assert len(kinds) == (2 if "," in case or "two" in case or "standby" in case else 1)
    assert ("spot" in kinds) == ("spot" in case)
    runs = [run_once(draw, planned_run) for _ in range(RUNS)]
    paid, ends = [usd(planned_run, run) for run in runs], [run.ends for run in runs]
    assert near((planned_run.cost.compute + planned_run.cost.setup) / 1e6, paid)
    assert near(planned_run.hours.expected, ends)
    # Storage is paid by the hour on the clock, and the median run costs less than the mean one.
    assert planned_run.cost.storage > 0
    assert planned_run.hours.median == pytest.approx(float(np.median(ends)), rel=0.02)
    assert planned_run.cost.median / 1e6 == pytest.approx(float(np.median(paid)), rel=0.02)
    assert planned_run.cost.median < planned_run.cost.expected < planned_run.cost.p95


BILLING = {
    "by the second": (0.25, 30.0, 0.3, 1 / 3600, 1 / 60),
    "less than the minimum": (0.0, 0.01, 0.4, 1 / 3600, 1 / 60),
    "whole hours": (0.25, 1.2, 0.4, 1.0, 1.0),
    "whole days": (0.25, 20.0, 0.45, 24.0, 24.0),
    "whole days, hardly any doubt": (0.25, 24.0, 0.02, 24.0, 24.0),
    "whole years": (0.25, 6000.0, 0.3, 8760.0, 0.0),
    "in great doubt": (0.25, 40.0, 1.2, 1.0, 0.0),
    "no doubt": (0.25, 23.0, 0.0, 24.0, 24.0),
}


@pytest.mark.parametrize("case", BILLING)
def test_billed_hours_are_the_mean_of_rounded_ones(case: str) -> None:
    certain, median, sigma, step, minimum = BILLING[case]
    hours = certain + median * np.exp(sigma * np.random.default_rng(7).standard_normal(400_000))
    billed = np.maximum(np.ceil(hours / step - 1e-9) * step, minimum)
    mean = median * math.exp(sigma**2 / 2)
    expected = expected_billed(*(np.array([value]) for value in (certain, mean, sigma, step, minimum)))[0]
    assert abs(expected - billed.mean()) <= 4 * billed.std() / math.sqrt(len(billed)) + 1e-9
    assert by_verify(certain, median, sigma, step, minimum) == pytest.approx(expected, rel=1e-12)


def test_a_reservation_that_a_late_run_outlasts_is_paid_for_twice_as_often_as_it_is() -> None:
    """The median run ends within its year; each of those that do not costs a second year."""
    rate = offer(FAST, 40.0, "reserved_1y")
    answer = planned(job(None, hours=7600.0, price_kinds=("reserved_1y",)), rate)
    phase = answer.phases[0]
    late = 1 - NormalDist().cdf(math.log((8760 - 0.25) / phase.hours_with_goodput) / phase.log_sigma)
    assert 0.05 < late < 0.4
    assert answer.cost.median / 1e6 == pytest.approx(8760 * 40, rel=1e-4)
    assert answer.cost.compute / 1e6 == pytest.approx(8760 * 40 * (1 + late), rel=0.01)


def test_a_budget_binds_the_mean_and_not_the_median() -> None:
    free = planned(job(), ON_DEMAND)
    assert free.cost.median < free.cost.expected
    between = (free.cost.median + free.cost.expected) / 2e6
    assert isinstance(plan(replace(job(), budget_usd=between), columns(ON_DEMAND), settings=SETTINGS), NoPlan)
    enough = replace(job(), budget_usd=free.cost.expected / 1e6)
    assert planned(enough, ON_DEMAND).cost == free.cost


def test_a_deadline_binds_a_quantile() -> None:
    free = planned(job(), ON_DEMAND)
    at = replace(job(), deadline_hours=free.hours.confident * (1 + 1e-9))
    answer = planned(at, ON_DEMAND)
    assert answer.hours.confident == free.hours.confident
    assert answer.deadline_probability == pytest.approx(at.confidence, abs=1e-6)


@pytest.mark.slow(reason="one long case")
def test_owned_machines_with_windows_state_the_mean_of_work_and_waits() -> None:
    """Nights that the run may or may not need: simulated runs wait for them as often as the plan counts on."""
    nights = tuple(
        FreeSpan(start=START + timedelta(days=day), end=START + timedelta(days=day, hours=10)) for day in range(60)
    )
    rig = OwnedMachine(
        instance_type=replace(FAST, provider="local", name="rig"),
        region="lab",
        machines=1,
        usd_per_hour_full=12.0,
        power_watts=9000.0,
        pue=1.2,
        usd_per_kwh=0.25,
        windows=nights,
    )
    asked = job(price_kinds=("owned",), providers=("local",))
    answer = plan(asked, columns(ON_DEMAND), owned=(rig,), settings=replace(SETTINGS, cost_basis="full"))
    assert isinstance(answer, Planned)
    phase, draw = answer.phases[0], random.Random("nights")
    busy = [0.25 + phase.hours_with_goodput * math.exp(phase.log_sigma * draw.gauss(0, 1)) for _ in range(RUNS)]
    ends = [rig.elapsed_hours(START, hours, restart_hours=SETTINGS.restart_hours) for hours in busy]
    assert near(answer.hours.expected, ends)
    assert near(answer.cost.power / 1e6, [hours * 9 * 1.2 * 0.25 for hours in busy])
    assert near((answer.cost.compute + answer.cost.setup) / 1e6, [hours * 12.0 for hours in busy])
