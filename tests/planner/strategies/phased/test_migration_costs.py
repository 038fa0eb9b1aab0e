"""What a move costs, when it pays, and what of it a plan says."""

from dataclasses import replace
from datetime import timedelta
from fractions import Fraction

import pytest

from gpuplan.catalog.model.availability_windows import FreeSpan
from gpuplan.catalog.model.egress_rates import egress_tiers
from gpuplan.catalog.model.offer import InstanceType
from gpuplan.catalog.model.owned_machine import OwnedMachine
from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.planner.model.job import Constraints, DataSource, Explicit, TrainingJob
from gpuplan.planner.model.outcome import NoPlan, PhaseChoice, Planned
from gpuplan.planner.model.settings import PlannerSettings
from gpuplan.planner.planning import plan
from gpuplan.planner.strategies.schedule import Schedule
from tests.planner.small_catalogues import START
from tests.planner.spot_settings import replaced_at_once
from tests.planner.strategies.phased.cases import best_schedule, found_for
from tests.planner.test_what_may_be_chosen import BOX, market, offer

SLOW = replace(BOX, name="slow", accelerator="L4", accelerator_count=Fraction(4), vcpus=48.0)
JOB = TrainingJob(
    name="moves",
    workload=Explicit(total_flops=2.6e19, memory_gib=40, steps=1000.0),
    start=START,
    constraints=Constraints(max_nodes=1),
)


def schedule(
    columns: Columns, job: TrainingJob = JOB, *owned: OwnedMachine, settings: PlannerSettings | None = None
) -> Schedule:
    best = best_schedule(
        found_for(job, columns, owned, settings or replaced_at_once(least_saving_of_a_move_percent=0.0))
    )
    assert best is not None
    return best


def names(best: Schedule) -> list[str]:
    return [phase.choice.offer.instance_type for phase in best.phases]


def fast_and_slow(region: str = "us-east-1") -> Columns:
    return market(offer(usd=20.0), offer(usd=0.5, instance_type="slow", region=region), types=(BOX, SLOW))


def alone(columns: Columns, name: str, job: TrainingJob = JOB) -> Schedule:
    named = replace(job.constraints, instance_types=(name,), max_phases=1)
    return schedule(columns, replace(job, constraints=named, deadline_hours=None))


def between(columns: Columns, job: TrainingJob = JOB, part: float = 0.5) -> TrainingJob:
    """The job with a deadline between what the fast and the slow machine take."""
    fast, slow = (alone(columns, name, job).hours.confident for name in ("box", "slow"))
    return replace(job, deadline_hours=fast + part * (slow - fast))


def test_a_job_starts_cheap_and_slow_and_ends_dear_and_fast() -> None:
    columns = fast_and_slow()
    best = schedule(columns, between(columns))
    assert names(best) == ["slow", "box"]
    assert best.cost.expected < alone(columns, "box").cost.expected
    assert sum(phase.share for phase in best.phases) == pytest.approx(1.0)


def test_the_figures_of_the_phases_add_up_to_those_of_the_plan() -> None:
    columns = fast_and_slow()
    best = schedule(columns, between(columns))
    assert sum(phase.choice.cost.expected for phase in best.phases) == best.cost.expected
    assert sum(phase.choice.hours.expected for phase in best.phases) == pytest.approx(best.hours.expected)
    assert sum(phase.choice.hours.confident for phase in best.phases) == pytest.approx(best.hours.confident)
    assert best.phases[1].begins_hours == pytest.approx(best.phases[0].choice.hours.expected)


def test_a_deadline_that_binds_is_met_with_the_confidence_asked() -> None:
    columns = fast_and_slow()
    best = schedule(columns, between(columns))
    assert best.deadline_probability == pytest.approx(JOB.confidence, abs=2e-3)
    assert (best.deadline_probability or 0.0) >= JOB.confidence - 1e-9


def test_one_phase_is_all_that_a_job_gets_that_allows_no_more() -> None:
    columns = fast_and_slow()
    job = between(columns)
    assert names(schedule(columns, replace(job, constraints=replace(job.constraints, max_phases=1)))) == ["box"]


def test_a_move_that_saves_too_little_is_not_made() -> None:
    columns = fast_and_slow()
    job = between(columns)
    saved = 1 - schedule(columns, job).cost.expected / alone(columns, "box").cost.expected
    for percent, moves in ((saved * 99, True), (saved * 101, False)):
        best = schedule(columns, job, settings=replaced_at_once(least_saving_of_a_move_percent=percent))
        assert (len(best.phases) > 1) == moves


def test_a_move_between_regions_pays_egress_of_the_checkpoint_and_brings_the_data() -> None:
    columns = fast_and_slow(region="eu-west-1")
    job = replace(JOB, data=DataSource(location="aws:us-east-1", dataset_gb=10.0))
    best = schedule(columns, between(columns, job))
    first, second = best.phases
    assert names(best) == ["slow", "box"]
    assert first.moved is None
    assert second.moved is not None
    sent = egress_tiers("aws", "eu-west-1", "aws", "us-east-1").egress_usd(second.moved.checkpoint_gb)
    assert second.moved.egress == second.choice.cost.egress == pytest.approx(sent * 1e6, abs=1)
    assert second.moved.data_gb == 0.0
    assert first.choice.cost.egress > 0


def test_within_a_region_nothing_is_sent() -> None:
    columns = fast_and_slow()
    moved = schedule(columns, between(columns)).phases[1].moved
    assert moved is not None
    assert (moved.egress, moved.data_gb) == (0, 0.0)


def test_a_run_never_moves_to_another_software_stack() -> None:
    chip = replace(SLOW, accelerator="MI250X", accelerator_count=Fraction(1))
    columns = market(offer(usd=20.0), offer(usd=0.2, instance_type="slow"), types=(BOX, chip))
    fast, slow = (alone(columns, name).hours.confident for name in ("box", "slow"))
    assert slow > fast
    assert names(schedule(columns, replace(JOB, deadline_hours=(fast + slow) / 2))) == ["box"]


def rig(*windows: tuple[float, float], accelerator: str = "A100-40GB-SXM") -> OwnedMachine:
    return OwnedMachine(
        instance_type=InstanceType(
            provider="local",
            name="rig",
            accelerator=accelerator,
            accelerator_count=Fraction(8),
            vcpus=64.0,
            scaleup_domain=8,
            clusters=False,
            source="stated",
        ),
        region="lab",
        machines=1,
        usd_per_hour_full=0.5,
        power_watts=3000.0,
        pue=1.2,
        usd_per_kwh=0.2,
        windows=tuple(FreeSpan(start=START + timedelta(hours=a), end=START + timedelta(hours=b)) for a, b in windows),
    )


def test_an_own_machine_works_in_its_window_and_the_cloud_does_the_rest() -> None:
    columns = market(offer(usd=20.0))
    whole = schedule(columns, replace(JOB, deadline_hours=200.0)).hours.confident
    best = schedule(columns, replace(JOB, deadline_hours=whole * 1.05), rig((0.0, whole / 2)))
    assert names(best) == ["rig", "box"]
    assert 0.3 < best.phases[0].share < 0.5


def test_a_window_that_opens_later_is_used_at_the_end() -> None:
    columns = market(offer(usd=20.0))
    whole = schedule(columns, replace(JOB, deadline_hours=200.0)).hours.confident
    best = schedule(columns, replace(JOB, deadline_hours=whole * 1.2), rig((whole * 0.6, whole * 3)))
    assert names(best) == ["box", "rig"]
    assert best.phases[1].begins_hours >= whole * 0.6 - 1e-6


def test_a_job_that_no_machine_can_do_alone_in_time_is_still_planned() -> None:
    both = (rig((0.0, 8.0)), replace(rig((9.0, 30.0)), region="attic"))
    both = (both[0], replace(both[1], instance_type=replace(both[1].instance_type, name="rig-2")))
    columns = market(offer(usd=20.0))
    only_own = replace(JOB.constraints, providers=("local",))
    whole = schedule(columns, replace(JOB, deadline_hours=200.0)).hours.confident
    assert 8.0 < whole < 20.0
    job = replace(JOB, deadline_hours=9.0 + whole - 4.0, constraints=only_own)
    best = schedule(columns, job, *both)
    assert names(best) == ["rig", "rig-2"]


def starts(phases: tuple[PhaseChoice, ...]) -> list[float]:
    return [phase.begins_hours for phase in phases]


def test_a_plan_never_goes_back_to_an_own_machine() -> None:
    columns = market(offer(usd=20.0))
    whole = schedule(columns, replace(JOB, deadline_hours=200.0)).hours.confident
    windows = rig((0.0, whole / 3), (whole * 0.8, whole * 1.4))
    best = schedule(columns, replace(JOB, deadline_hours=whole * 1.1), windows)
    assert sorted(names(best)) == ["box", "rig"]
    assert starts(best.phases) == sorted(starts(best.phases))


def test_a_job_that_two_phases_would_make_possible_is_told_so() -> None:
    columns = market(offer(usd=20.0))
    whole = schedule(columns, replace(JOB, deadline_hours=200.0)).hours.confident
    first, second = rig((0.0, 8.0)), rig((9.0, 30.0))
    second = replace(second, region="attic", instance_type=replace(second.instance_type, name="rig-2"))
    one = replace(JOB.constraints, providers=("local",), max_phases=1)
    job = replace(JOB, deadline_hours=5.0 + whole, constraints=one)
    refused = plan(job, columns, owned=(first, second), settings=replaced_at_once(least_saving_of_a_move_percent=0.0))
    assert isinstance(refused, NoPlan)
    assert refused.warnings[0].startswith("constraints.max_phases of 2 is enough")
    two = replace(job, constraints=replace(one, max_phases=2))
    allowed = plan(two, columns, owned=(first, second), settings=replaced_at_once(least_saving_of_a_move_percent=0.0))
    assert isinstance(allowed, Planned)
    alternative = allowed.alternatives[0]
    assert alternative.label == "without a move"
    assert not alternative.meets_deadline


def test_a_job_that_a_move_would_keep_within_a_smaller_budget_than_one_configuration_is_told_so() -> None:
    columns = fast_and_slow()
    job = between(columns)
    free = plan(job, columns, settings=replaced_at_once(least_saving_of_a_move_percent=0.0))
    assert isinstance(free, Planned)
    assert len(free.phases) == 2
    poor = replace(job, budget_usd=free.cost.expected / 1e6 - 0.02)
    refused = plan(poor, columns, settings=replaced_at_once(least_saving_of_a_move_percent=0.0))
    assert isinstance(refused, NoPlan)
    warning = refused.warnings[0]
    assert warning.endswith("is enough: 2 phases would meet the other requirements for that")
    enough = float(warning.split("$")[1].split()[0].replace(",", ""))
    assert isinstance(
        plan(replace(job, budget_usd=enough), columns, settings=replaced_at_once(least_saving_of_a_move_percent=0.0)),
        Planned,
    )
    alone = replace(poor, constraints=replace(job.constraints, max_phases=1))
    refused = plan(alone, columns, settings=replaced_at_once(least_saving_of_a_move_percent=0.0))
    assert isinstance(refused, NoPlan)
    assert not any(warning.startswith("budget_usd") for warning in refused.warnings)


def test_the_proof_says_what_it_stands_over() -> None:
    columns = fast_and_slow()
    outcome = plan(between(columns), columns, settings=replaced_at_once(least_saving_of_a_move_percent=0.0))
    assert isinstance(outcome, Planned)
    certificate = outcome.proof.certificate
    assert certificate.gap == 0.0
    assert any("linear lower bounds" in sentence for sentence in certificate.over)
    assert certificate.objective_usd * 1e6 == pytest.approx(outcome.cost.expected, abs=1)
    alternative = outcome.alternatives[0]
    assert (alternative.label, alternative.meets_deadline) == ("without a move", True)
    assert alternative.extra > 0
