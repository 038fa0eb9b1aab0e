"""Plans say where their software alone makes a job fit, where hosts cannot decode as fast as accelerators train, and bf16 lacks."""

from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction

from gpuplan.catalog.model.offer import InstanceType, Offer
from gpuplan.catalog.snapshots.offer_columns import columns_of
from gpuplan.planner.model.job import Preset, Training, TrainingJob
from gpuplan.planner.model.outcome import Planned
from gpuplan.planner.planning import plan
from tests.planner.spot_settings import replaced_at_once

START = datetime(2026, 11, 21, tzinfo=UTC)
QLORA = TrainingJob(
    name="qlora",
    workload=Preset(model="llama-3-8b", tokens=1e8, sequence_length=8192),
    training=Training(method="qlora", precision="bf16"),
    start=START,
)
PHOTOS = TrainingJob(
    name="photos",
    workload=Preset(model="resnet-50", samples=1e7),
    training=Training(software="eager"),
    start=START,
)


def planned(job: TrainingJob, accelerator: str, vcpus: float = 96.0) -> Planned:
    box = InstanceType(
        provider="aws",
        name="box",
        accelerator=accelerator,
        accelerator_count=Fraction(1),
        scaleup_domain=1,
        network_gbps=100.0,
        clusters=False,
        source="made up",
        vcpus=vcpus,
    )
    offer = Offer(
        provider="aws",
        region="us-east-1",
        instance_type="box",
        price_kind="on_demand",
        usd_micros_per_hour=1_000_000,
        observed_at=START,
        source="made up",
    )
    outcome = plan(job, columns_of("made-up", START, [box], [offer]), settings=replaced_at_once())
    assert isinstance(outcome, Planned), outcome
    return outcome


def warnings(job: TrainingJob, accelerator: str, vcpus: float = 96.0) -> list[str]:
    outcome = planned(job, accelerator, vcpus)
    return [warning for warning in outcome.warnings if "eager software" in warning or "decoding" in warning]


def test_a_plan_on_24_gb_says_that_hugging_faces_stack_would_not_fit() -> None:
    (warning,) = warnings(QLORA, "RTX-4090")
    assert warning.startswith("box holds the job with training.software: fused, the default, but not with eager")
    assert warnings(QLORA, "A100-80GB-SXM") == []
    assert warnings(replace(QLORA, training=replace(QLORA.training, cross_entropy="linear")), "RTX-4090") == []
    assert warnings(replace(QLORA, training=replace(QLORA.training, software="compiled")), "A100-80GB-SXM") == []


def test_a_plan_says_how_far_its_hosts_hold_up_photos() -> None:
    (warning,) = warnings(PHOTOS, "H100-80GB-SXM", vcpus=8.0)
    assert "box has 8: up to" in warning
    needed = float(warning.removeprefix("decoding the photos takes ").split()[0])
    assert warnings(PHOTOS, "H100-80GB-SXM", vcpus=needed + 1) == []
    # Stacks with kernels of their own are taken to decode on accelerators or ahead.
    assert warnings(replace(PHOTOS, training=Training()), "H100-80GB-SXM", vcpus=8.0) == []


def test_a_plan_on_machines_without_bf16_says_before_the_start_what_it_trains_in() -> None:
    def first_steps(precision: str, accelerator: str) -> list[str]:
        job = replace(PHOTOS, training=Training(precision=precision))
        return [action for action in planned(job, accelerator).actions if "bf16" in action]

    assert first_steps("auto", "V100-16GB") == [
        "train in fp16, with its loss scaled: V100-16GB has no bf16; training.precision: bf16 leaves it out"
    ]
    assert first_steps("fp16", "V100-16GB") == first_steps("auto", "A100-80GB-SXM") == []
