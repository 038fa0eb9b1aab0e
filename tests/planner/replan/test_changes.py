"""What changes the advice: another machine's price falls, the run is slower, a kind bills ahead, a place has the data."""

import random
from dataclasses import replace
from datetime import timedelta

import pytest

from gpuplan.catalog.model.offer import Offer
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.snapshots.offer_columns import Columns, columns_of
from gpuplan.planner.model.job import Constraints, DataSource, Explicit, TrainingJob
from gpuplan.planner.model.outcome import Planned
from gpuplan.planner.model.settings import ExistingCommitment
from gpuplan.planner.replan.replan_answer import Replanned
from gpuplan.planner.replan.replan_decision import replan
from gpuplan.planner.replan.running_job import Amount, On, Speed, UnderWay
from gpuplan.planner.verify.billed_hours import expected_billed
from tests.planner.replan.plain import SETTINGS
from tests.planner.small_catalogues import OBSERVED, START, random_types

MACHINES = [
    replace(random_type, accelerator="H100-80GB-SXM", clusters=True, network_gbps=400.0)
    for random_type in random_types(random.Random(1), 1)
]
AWS, GCP = (next(document for document in MACHINES if document.provider == name) for name in ("aws", "gcp"))
JOB = TrainingJob(
    name="one",
    workload=Explicit(total_flops=1e20, memory_gib=20.0, steps=1000.0),
    start=START,
    deadline_hours=500.0,
    constraints=Constraints(max_nodes=1, price_kinds=("on_demand", "capacity_block")),
    data=DataSource(location="aws:us-east-1", dataset_gb=500.0),
)
RUNNING_ON = On(instance_type=AWS.name, nodes=1, provider="aws", region="us-east-1")


def catalogue(*, other_usd: float, usd: float = 10.0, kind: str = "on_demand") -> Columns:
    def offer(name: str, provider: str, region: str, price: float, kind: str) -> Offer:
        return Offer(
            provider=provider,
            region=region,
            instance_type=name,
            price_kind=kind,
            usd_micros_per_hour=round(price * 1e6),
            observed_at=OBSERVED,
            source="drawn",
        )

    rows = [
        offer(AWS.name, "aws", "us-east-1", usd, kind),
        offer(GCP.name, "gcp", "us-central1", other_usd, "on_demand"),
    ]
    return columns_of("two", OBSERVED, MACHINES, rows)


def answer(columns: Columns, **changes: object) -> Replanned:
    running = UnderWay(now=START + timedelta(hours=10), done=Amount(value=0.3), on=RUNNING_ON)
    return replan(JOB, columns, running=replace(running, **changes), settings=SETTINGS)  # type: ignore[arg-type]


def test_a_price_that_falls_elsewhere_makes_a_move_pay_once_it_carries_egress_and_set_up() -> None:
    assert answer(catalogue(other_usd=10.0)).action == "continue"
    moved = answer(catalogue(other_usd=0.01))
    assert moved.action == "move"
    assert isinstance(moved.best, Planned)
    first = moved.best.phases[0]
    assert first.moved is not None
    assert first.moved.data_gb == 500.0
    assert first.moved.egress == first.choice.cost.egress > 0
    assert first.begins_hours > 0


def test_a_measured_speed_is_all_believed_here_and_in_part_elsewhere() -> None:
    plain = answer(catalogue(other_usd=10.0)).going_on
    assert plain is not None
    rate = plain.schedule.phases[0].throughput
    slow = answer(catalogue(other_usd=10.0), rate=Speed(value=rate / 1.5))
    assert slow.going_on is not None
    assert slow.going_on.schedule.phases[0].throughput == pytest.approx(rate / 1.5)
    assert slow.going_on.schedule.phases[0].hours_with_goodput == pytest.approx(
        1.5 * plain.schedule.phases[0].hours_with_goodput
    )
    assert slow.measured is not None
    assert slow.measured.factor == pytest.approx(1.5)
    with pytest.raises(UnusableInput, match="more than 10 times off"):
        answer(catalogue(other_usd=10.0), rate=Speed(value=rate / 11))


@pytest.mark.slow(reason="one long case")
def test_days_that_are_booked_and_paid_cost_nothing_more() -> None:
    """A capacity block is billed in whole days: ten hours into the first, fourteen are paid for."""
    going_on = answer(
        catalogue(other_usd=100.0, kind="capacity_block"), on=replace(RUNNING_ON, price_kind="capacity_block")
    ).going_on
    assert going_on is not None
    phase = going_on.schedule.phases[0]
    billed = expected_billed(10.0, phase.hours_with_goodput, phase.log_sigma, 24.0, 24.0) - 24.0
    compute = going_on.schedule.cost.compute + going_on.schedule.cost.setup
    assert compute == pytest.approx(billed * 10.0 * 1e6)


def test_machines_that_are_paid_for_whether_used_or_not_are_gone_on_with_for_nothing() -> None:
    existing_commitment = ExistingCommitment(
        provider="aws", region="us-east-1", instance_type=AWS.name, price_kind="on_demand", nodes=1
    )
    running = UnderWay(now=START + timedelta(hours=10), done=Amount(value=0.3), on=RUNNING_ON)
    answer = replan(
        JOB, catalogue(other_usd=0.5), running=running, settings=replace(SETTINGS, held=(existing_commitment,))
    )
    assert answer.action == "continue"
    assert answer.going_on is not None
    assert answer.going_on.schedule.cost.compute == 0


def test_what_the_job_does_not_allow_is_not_gone_on_with_and_said_to_be() -> None:
    job = replace(JOB, constraints=replace(JOB.constraints, regions=("gcp:*",)))
    running = UnderWay(now=START + timedelta(hours=10), done=Amount(value=0.3), on=RUNNING_ON)
    answer = replan(job, catalogue(other_usd=10.0), running=running, settings=SETTINGS)
    assert answer.going_on is not None
    assert answer.going_on.breaks == ("constraints.regions",)
    assert answer.action == "move"
