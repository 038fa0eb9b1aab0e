"""What the planner says is verified by code that shares nothing with it but the catalogue, the job and the estimator."""

import random
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from api.documents.plan import parse_answer
from catalog.errors import UnusableInput
from catalog.free_time import WeeklyWindow
from catalog.offer import InstanceType
from catalog.owned import OwnedMachine
from planner.job import Constraints, DataSource, Explicit, Preset, Training, TrainingJob
from planner.past_runs import PastRun
from planner.settings import Credit, Discount, HeldCommitment, PlannerSettings
from planner.verify.verified import verified
from tests.planner.small_catalogues import START, random_job
from tests.planner.verify.answers import answer_of, checked, small_columns, with_id

few = hypothesis_settings(max_examples=25, deadline=None)


@few
@given(st.integers(0, 10**6))
def test_every_answer_on_a_small_catalogue_is_verified(seed: int) -> None:
    draw = random.Random(seed)
    columns, job = small_columns(draw), random_job(draw)
    answer = answer_of(job, columns)
    assert checked(answer, job, columns).wrong == ()


@few
@given(st.integers(0, 10**6))
def test_infeasible_answers_are_verified(seed: int) -> None:
    draw = random.Random(seed)
    columns = small_columns(draw)
    job = replace(
        random_job(draw),
        deadline_hours=10 ** draw.uniform(-2, 0.5),
        budget_usd=10 ** draw.uniform(-1, 1.5),
        training=Training(precision=draw.choice(("auto", "bf16", "fp8"))),
    )
    assert checked(answer_of(job, columns), job, columns).wrong == ()


@few
@given(st.integers(0, 10**6))
def test_least_time_and_least_carbon_are_verified(seed: int) -> None:
    draw = random.Random(seed)
    columns = small_columns(draw)
    cap = draw.choice((None, 10 ** draw.uniform(-1, 3)))
    job = random_job(draw)
    job = replace(
        job,
        objective=draw.choice(("time", "carbon")),
        constraints=replace(job.constraints, carbon_budget_kg=cap),
    )
    assert checked(answer_of(job, columns), job, columns).wrong == ()


def _job(**changes: object) -> TrainingJob:
    job = TrainingJob(
        name="held to account",
        workload=Preset(model="gpt2", tokens=2e9),
        start=START,
        deadline_hours=400.0,
        constraints=Constraints(max_nodes=4),
        data=DataSource(provider="aws", region="us-east-1", dataset_gb=300.0),
    )
    return replace(job, **changes)  # type: ignore[arg-type]


def test_discounts_and_credits_are_verified() -> None:
    columns = small_columns(random.Random(5))
    settings = PlannerSettings(
        discounts=(Discount(provider="aws", percent=31.0), Discount(accelerator="T4", provider="gcp", percent=7.5)),
        credits=(
            Credit(provider="aws", usd=3.0),
            Credit(provider="gcp", usd=1e4, expires=datetime(2027, 1, 1, tzinfo=UTC)),
        ),
    )
    job = _job()
    answer = answer_of(job, columns, settings=settings)
    assert "credits" in answer["plan"]
    assert checked(answer, job, columns, settings=settings).wrong == ()


def test_held_commitments_are_verified() -> None:
    columns = small_columns(random.Random(8), offers=40)
    offer = next(each for each in columns.offers if each.price_kind == "reserved_1y")
    held = HeldCommitment(
        provider=offer.provider,
        region=offer.region,
        instance_type=offer.instance_type,
        price_kind="reserved_1y",
        nodes=2,
    )
    settings = PlannerSettings(held=(held,))
    job = _job(constraints=Constraints(max_nodes=4, price_kinds=("reserved_1y",)))
    answer = answer_of(job, columns, settings=settings)
    assert answer["plan"]["phases"][0]["price_kind"] == "reserved_1y"
    assert checked(answer, job, columns, settings=settings).wrong == ()


def _own(windows: tuple[WeeklyWindow, ...] = ()) -> OwnedMachine:
    machine = InstanceType(
        provider="local",
        name="the lab's",
        accelerator="RTX-4090",
        accelerator_count=Fraction(4),
        vcpus=64.0,
        clusters=False,
        source="the user's inventory",
    )
    return OwnedMachine(
        instance_type=machine,
        region="lab",
        machines=2,
        usd_per_hour_full=0.4,
        power_watts=2200.0,
        pue=1.2,
        usd_per_kwh=0.3,
        windows=windows,
        grams_co2_per_kwh=350.0,
    )


def test_own_machines_with_windows_are_verified() -> None:
    columns = small_columns(random.Random(3))
    night = WeeklyWindow(days=(0, 1, 2, 3, 4), from_minute=18 * 60, until_minute=8 * 60, timezone="Europe/Berlin")
    day = replace(night, from_minute=8 * 60, until_minute=18 * 60)  # one of the two is closed when the job starts
    for own in (_own(), _own((night,)), _own((day,))):
        job = _job(deadline_hours=None, constraints=Constraints(max_nodes=2, providers=("local",)))
        answer = answer_of(job, columns, owned=(own,))
        assert answer["plan"]["phases"][0]["price_kind"] == "owned"
        assert checked(answer, job, columns, owned=(own,)).wrong == ()


def test_a_plan_made_with_own_machines_is_verified_with_the_same_machines_alone() -> None:
    columns, job = small_columns(random.Random(3)), _job(deadline_hours=None)
    answer = answer_of(job, columns, owned=(_own(),))
    dearer = replace(_own(), usd_per_kwh=0.31)
    for others in ((), (dearer,)):
        with pytest.raises(UnusableInput, match=r"plan.inventory: the plan was made with own machines 'own-"):
            checked(answer, job, columns, owned=others)


def test_machines_that_came_later_do_not_change_what_a_plan_was() -> None:
    columns, job = small_columns(random.Random(3)), _job(deadline_hours=None)
    answer = answer_of(job, columns)
    assert checked(answer, job, columns, owned=(_own(),)).wrong == ()


def test_an_own_machine_that_nobody_has_is_named() -> None:
    columns, job = small_columns(random.Random(3)), _job(deadline_hours=None)
    answer = answer_of(job, columns, owned=(_own(),))
    body = {name: value for name, value in answer["plan"].items() if name != "inventory"}
    wrong = checked(with_id(answer | {"plan": body}), job, columns).wrong
    assert any("snapshot or the inventory" in each.why for each in wrong)


def test_a_plan_that_past_runs_have_corrected_is_verified() -> None:
    columns = small_columns(random.Random(12))
    runs = tuple(
        PastRun(task="language", accelerator=name, log_hours=0.21, log_memory=-0.05, log_sigma=0.15)
        for name in ("T4", "H100-80GB-SXM", "T4")
    )
    answer = answer_of(_job(), columns, past_runs=runs)
    claim = parse_answer(answer)
    assert claim.learned
    assert verified(claim, columns).wrong == ()


def test_explicit_work_states_its_memory_and_is_verified() -> None:
    columns = small_columns(random.Random(4))
    job = _job(workload=Explicit(total_flops=1e20, memory_gib=90.0, min_memory_gib_per_accelerator=3.0))
    assert checked(answer_of(job, columns), job, columns).wrong == ()
