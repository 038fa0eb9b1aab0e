"""The calls and extra cost of a standby beside a plan are those of its rule where few preemptions use up the slack."""

from dataclasses import replace
from fractions import Fraction

from gpuplan.catalog.model.offer import InstanceType, Offer
from gpuplan.planner.model.job import Constraints, Preset, Training, TrainingJob
from tests.planner.small_catalogues import OBSERVED, START
from tests.planner.spot_settings import replaced_at_once
from tests.planner.verify.answers import answer_of, checked, snapshot_columns

#: Quick machines on spot beside two slow nodes, which need most of the time to the deadline for all of the work.
TYPES = [
    InstanceType(
        provider="aws",
        name="quick",
        accelerator="L40S",
        accelerator_count=Fraction(1),
        network_gbps=2.5,
        clusters=True,
        source="drawn",
    ),
    InstanceType(
        provider="aws",
        name="slow",
        accelerator="RTX-A4000",
        accelerator_count=Fraction(8),
        intranode_link="pcie",
        scaleup_domain=8,
        network_gbps=10.0,
        fabric="plain",
        clusters=True,
        source="drawn",
    ),
]
QUICK = Offer(
    provider="aws",
    region="eu-south-2",
    zone="",
    instance_type="quick",
    price_kind="spot",
    usd_micros_per_hour=512_505,
    interruptions_per_hour=0.0182,
    observed_at=OBSERVED,
    source="drawn",
)
SLOW = replace(
    QUICK, instance_type="slow", price_kind="on_demand", usd_micros_per_hour=1_200_000, interruptions_per_hour=None
)
COLUMNS = snapshot_columns(TYPES, [QUICK, SLOW])
JOB = TrainingJob(
    name="falls back",
    workload=Preset(model="llama-3-8b", tokens=5e8, sequence_length=4096),
    training=Training(method="lora", precision="bf16", parallelism="any"),
    start=START,
    deadline_hours=14.0,
    constraints=Constraints(max_nodes=8),
)
SETTINGS = replaced_at_once(spot_wait_hours=0.8)


def test_a_standby_that_few_preemptions_call_is_called_as_often_as_its_rule_replayed() -> None:
    """By two moments of the losses the planner stated a sixth too few calls, which the verification refused."""
    answer = answer_of(JOB, COLUMNS, settings=SETTINGS)
    assert 0.05 < answer["plan"]["fallback"]["probability"] < 0.3
    assert checked(answer, JOB, COLUMNS, settings=SETTINGS).wrong == ()
