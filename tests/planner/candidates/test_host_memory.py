"""What training offloads has to fit into the memory of the hosts: machines alike in all else are told apart by it."""

from dataclasses import replace
from fractions import Fraction

import pytest

from catalog.columns import columns_of
from catalog.offer import InstanceType, Offer
from planner.answer import Infeasible, Planned
from planner.estimate.host_memory import GIB, offloaded_gib
from planner.job import Constraints, Preset, Training, TrainingJob
from planner.plan import plan
from planner.settings import PlannerSettings
from planner.verify.weights import held
from planner.workload import work_of
from tests.planner.small_catalogues import OBSERVED, START

SMALL = InstanceType(
    provider="aws",
    name="small-host",
    accelerator="A100-40GB-SXM",
    accelerator_count=Fraction(1),
    clusters=True,
    ram_gib=64.0,
    source="made up",
)
LARGE = replace(SMALL, name="large-host", ram_gib=256.0)
#: 8.03 billion parameters, 12 bytes each of master weights and moments: 89.8 GiB.
OFFLOADED = Training(precision="bf16", offload="optimizer")


def planned(training: Training, *, max_nodes: int = 1) -> Planned | Infeasible:
    offers = [
        Offer(
            provider="aws",
            region="us-east-1",
            instance_type=each.name,
            price_kind="on_demand",
            usd_micros_per_hour=usd * 1_000_000,
            observed_at=OBSERVED,
            source="made up",
        )
        for each, usd in ((SMALL, 2), (LARGE, 3))
    ]
    workload = Preset(model="llama-3-8b", tokens=1e8, sequence_length=2048)
    job = TrainingJob(
        name="offloaded",
        workload=workload,
        training=training,
        start=START,
        constraints=Constraints(max_nodes=max_nodes),
    )
    columns = columns_of("made up", OBSERVED, [SMALL, LARGE], offers)
    return plan(job, columns, settings=PlannerSettings())


def test_a_dearer_machine_with_more_host_memory_is_taken_where_the_cheaper_has_too_little() -> None:
    found = planned(OFFLOADED)
    assert isinstance(found, Planned)
    assert found.phases[0].choice.instance_type == LARGE


def test_several_hosts_hold_together_what_one_does_not() -> None:
    found = planned(OFFLOADED, max_nodes=2)
    assert isinstance(found, Planned)
    choice = found.phases[0].choice
    assert choice.nodes * (choice.instance_type.ram_gib or 0.0) >= 89.8


def test_without_offload_host_memory_plays_no_part() -> None:
    found = planned(Training(method="lora", precision="bf16"))
    assert isinstance(found, Planned)
    assert found.phases[0].choice.instance_type == SMALL
    assert found.proof.rejected["dearer than another offer of the same machine"] == 1


def test_where_no_host_has_the_memory_that_is_said() -> None:
    found = planned(replace(OFFLOADED, offload="parameters"), max_nodes=1)
    assert isinstance(found, Planned)
    bigger = Preset(model="qwen2.5-32b", tokens=1e8, sequence_length=2048)
    job = replace(found.job, workload=bigger, training=replace(OFFLOADED, offload="parameters"))
    offers = Offer(
        provider="aws",
        region="us-east-1",
        instance_type=SMALL.name,
        price_kind="on_demand",
        usd_micros_per_hour=2_000_000,
        observed_at=OBSERVED,
        source="made up",
    )
    refused = plan(job, columns_of("made up", OBSERVED, [SMALL], [offers]), settings=PlannerSettings())
    assert isinstance(refused, Infeasible)
    assert refused.rejected == {"host memory too small for what is offloaded to it": 1}


@pytest.mark.parametrize("offload", ["none", "optimizer", "parameters"])
@pytest.mark.parametrize("method", ["full", "lora"])
@pytest.mark.parametrize("precision", ["bf16", "fp32"])
def test_the_planner_and_verify_agree_on_what_hosts_hold(offload: str, method: str, precision: str) -> None:
    training = Training(method=method, precision=precision, offload=offload)
    work = work_of(Preset(model="mixtral-8x7b", tokens=1e8), training)
    assert offloaded_gib(work, training) == pytest.approx(held(work, training, precision).hosts / GIB, rel=1e-9)
