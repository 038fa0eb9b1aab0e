"""What the planner says is verified by code that shares nothing with it but the catalogue, the job and the estimator."""

import random
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from gpuplan.api.schemas.saved_answer import parse_answer
from gpuplan.catalog.model.availability_windows import WeeklyWindow
from gpuplan.catalog.model.offer import InstanceType, Offer
from gpuplan.catalog.model.owned_machine import OwnedMachine
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.job import Constraints, DataSource, Explicit, Preset, Training, TrainingJob
from gpuplan.planner.model.settings import Credit, Discount, ExistingCommitment, PlannerSettings
from gpuplan.planner.performance.past_runs import PastRun
from gpuplan.planner.verify.verification import verified
from tests.planner.small_catalogues import OBSERVED, START, random_job
from tests.planner.verify.answers import answer_of, checked, small_columns, snapshot_columns, with_id

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
        data=DataSource(location="aws:us-east-1", dataset_gb=300.0),
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
    offer = next(offer for offer in columns.offers if offer.price_kind == "reserved_1y")
    existing_commitment = ExistingCommitment(
        provider=offer.provider,
        region=offer.region,
        instance_type=offer.instance_type,
        price_kind="reserved_1y",
        nodes=2,
    )
    settings = PlannerSettings(held=(existing_commitment,))
    job = _job(constraints=Constraints(max_nodes=4, price_kinds=("reserved_1y",)))
    answer = answer_of(job, columns, settings=settings)
    assert answer["plan"]["phases"][0]["price_kind"] == "reserved_1y"
    assert checked(answer, job, columns, settings=settings).wrong == ()


def _owned_machine(windows: tuple[WeeklyWindow, ...] = ()) -> OwnedMachine:
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


def test_owned_machines_with_windows_are_verified() -> None:
    columns = small_columns(random.Random(3))
    night = WeeklyWindow(days=(0, 1, 2, 3, 4), from_minute=18 * 60, until_minute=8 * 60, timezone="Europe/Berlin")
    day = replace(night, from_minute=8 * 60, until_minute=18 * 60)  # one of the two is closed when the job starts
    for machine in (_owned_machine(), _owned_machine((night,)), _owned_machine((day,))):
        job = _job(deadline_hours=None, constraints=Constraints(max_nodes=2, providers=("local",)))
        answer = answer_of(job, columns, owned=(machine,))
        assert answer["plan"]["phases"][0]["price_kind"] == "owned"
        assert checked(answer, job, columns, owned=(machine,)).wrong == ()


def test_a_plan_made_with_owned_machines_is_verified_with_the_same_machines_alone() -> None:
    columns, job = small_columns(random.Random(3)), _job(deadline_hours=None)
    answer = answer_of(job, columns, owned=(_owned_machine(),))
    dearer = replace(_owned_machine(), usd_per_kwh=0.31)
    for others in ((), (dearer,)):
        with pytest.raises(UnusableInput, match=r"plan.inventory: the plan was made with own machines 'own-"):
            checked(answer, job, columns, owned=others)


def test_machines_that_came_later_do_not_change_what_a_plan_was() -> None:
    columns, job = small_columns(random.Random(3)), _job(deadline_hours=None)
    answer = answer_of(job, columns)
    assert checked(answer, job, columns, owned=(_owned_machine(),)).wrong == ()


def test_an_own_machine_that_nobody_has_is_named() -> None:
    columns, job = small_columns(random.Random(3)), _job(deadline_hours=None)
    answer = answer_of(job, columns, owned=(_owned_machine(),))
    body = {name: value for name, value in answer["plan"].items() if name != "inventory"}
    wrong = checked(with_id(answer | {"plan": body}), job, columns).wrong
    assert any("snapshot or the inventory" in finding.why for finding in wrong)


def test_a_plan_that_past_runs_have_corrected_is_verified() -> None:
    columns = small_columns(random.Random(12))
    runs = tuple(
        PastRun(task="language", accelerator=name, log_hours=0.21, log_memory=-0.05, log_sigma=0.15)
        for name in ("T4", "H100-80GB-SXM", "T4")
    )
    answer = answer_of(_job(), columns, past_runs=runs)
    submitted_plan = parse_answer(answer)
    assert submitted_plan.learned
    assert verified(submitted_plan, columns).wrong == ()


def test_explicit_work_states_its_memory_and_is_verified() -> None:
    columns = small_columns(random.Random(4))
    job = _job(workload=Explicit(total_flops=1e20, memory_gib=90.0, min_memory_gib_per_accelerator=3.0))
    assert checked(answer_of(job, columns), job, columns).wrong == ()


def _with_hosts(ram_gib: float, name: str) -> InstanceType:
    return InstanceType(
        provider="aws",
        name=name,
        accelerator="A100-40GB-SXM",
        accelerator_count=Fraction(1),
        clusters=True,
        ram_gib=ram_gib,
        source="made up",
    )


@pytest.mark.parametrize("offload", ["none", "optimizer", "parameters"])
@pytest.mark.parametrize("model", ["llama-3-8b", "qwen2.5-32b"])
@pytest.mark.parametrize("precision", ["auto", "bf16", "fp32"])
def test_jobs_that_offload_to_their_hosts_are_verified(offload: str, model: str, precision: str) -> None:
    """89.8 GiB of optimizer states of 8 billion parameters fit into two of the cheaper hosts and one of the dearer."""
    types = [_with_hosts(64.0, "small-host"), _with_hosts(256.0, "large-host")]
    offers = [
        Offer(
            provider="aws",
            region="us-east-1",
            instance_type=instance_type.name,
            price_kind="on_demand",
            usd_micros_per_hour=usd * 1_000_000,
            observed_at=OBSERVED,
            source="made up",
        )
        for instance_type, usd in zip(types, (2, 3), strict=True)
    ]
    job = TrainingJob(
        name="offloaded",
        workload=Preset(model=model, tokens=1e8, sequence_length=2048),
        training=Training(precision=precision, offload=offload),
        start=START,
        constraints=Constraints(max_nodes=3),
    )
    columns = snapshot_columns(types, offers)
    assert checked(answer_of(job, columns), job, columns).wrong == ()
