"""Offloaded states must fit into the memory of the hosts, which distinguishes otherwise equal machines."""

from dataclasses import replace
from fractions import Fraction

import pytest

from gpuplan.catalog.model.offer import InstanceType, Offer
from gpuplan.catalog.snapshots.offer_columns import columns_of
from gpuplan.planner.model.job import Constraints, Preset, Training, TrainingJob
from gpuplan.planner.model.outcome import NoPlan, Planned
from gpuplan.planner.performance.training_states import GIB, offloaded_gib
from gpuplan.planner.planning import plan
from gpuplan.planner.verify.phase_figures import states_floor
from gpuplan.planner.workload import work_of
from tests.planner.small_catalogues import OBSERVED, START
from tests.planner.spot_settings import replaced_at_once
from tests.planner.verify.answers import answer_of, checked, snapshot_columns

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


def asked(training: Training, *, max_nodes: int = 1) -> TrainingJob:
    workload = Preset(model="llama-3-8b", tokens=1e8, sequence_length=2048)
    constraints = Constraints(max_nodes=max_nodes)
    return TrainingJob(name="offloaded", workload=workload, training=training, start=START, constraints=constraints)


def both() -> list[Offer]:
    return [
        Offer(
            provider="aws",
            region="us-east-1",
            instance_type=machine.name,
            price_kind="on_demand",
            usd_micros_per_hour=usd * 1_000_000,
            observed_at=OBSERVED,
            source="made up",
        )
        for machine, usd in ((SMALL, 2), (LARGE, 3))
    ]


def planned(training: Training, *, max_nodes: int = 1) -> Planned | NoPlan:
    columns = columns_of("made up", OBSERVED, [SMALL, LARGE], both())
    return plan(
        asked(training, max_nodes=max_nodes), columns, settings=replaced_at_once(least_saving_of_a_move_percent=0.0)
    )


def test_a_dearer_machine_with_more_host_memory_is_taken_where_the_cheaper_has_too_little() -> None:
    answer = planned(OFFLOADED)
    assert isinstance(answer, Planned)
    assert answer.phases[0].choice.instance_type == LARGE


def test_several_hosts_hold_together_what_one_does_not() -> None:
    answer = planned(OFFLOADED, max_nodes=2)
    assert isinstance(answer, Planned)
    choice = answer.phases[0].choice
    assert choice.nodes * (choice.instance_type.ram_gib or 0.0) >= 89.8


def test_without_offload_host_memory_plays_no_part() -> None:
    answer = planned(Training(method="lora", precision="bf16"))
    assert isinstance(answer, Planned)
    assert answer.phases[0].choice.instance_type == SMALL
    assert answer.proof.rejected["dearer than another offer of the same machine"] == 1


def test_an_infeasible_answer_states_that_no_host_has_the_memory() -> None:
    answer = planned(replace(OFFLOADED, offload="parameters"), max_nodes=1)
    assert isinstance(answer, Planned)
    bigger = Preset(model="qwen2.5-32b", tokens=1e8, sequence_length=2048)
    job = replace(answer.job, workload=bigger, training=replace(OFFLOADED, offload="parameters"))
    offers = Offer(
        provider="aws",
        region="us-east-1",
        instance_type=SMALL.name,
        price_kind="on_demand",
        usd_micros_per_hour=2_000_000,
        observed_at=OBSERVED,
        source="made up",
    )
    refused = plan(
        job,
        columns_of("made up", OBSERVED, [SMALL], [offers]),
        settings=replaced_at_once(least_saving_of_a_move_percent=0.0),
    )
    assert isinstance(refused, NoPlan)
    assert refused.rejected == {"host memory too small for what is offloaded to it": 1}


@pytest.mark.slow(reason="9 cases")
@pytest.mark.parametrize("max_nodes", [1, 2, 3])
@pytest.mark.parametrize("offload", ["none", "optimizer", "parameters"])
def test_what_is_offloaded_is_verified(offload: str, max_nodes: int) -> None:
    job = asked(replace(OFFLOADED, offload=offload), max_nodes=max_nodes)
    columns = snapshot_columns([SMALL, LARGE], both())
    assert checked(answer_of(job, columns), job, columns).wrong == ()


def test_a_plan_on_hosts_without_the_memory_is_not_verified() -> None:
    job, columns = asked(OFFLOADED), snapshot_columns([SMALL, LARGE], both())
    unknown = snapshot_columns([replace(SMALL, ram_gib=None), LARGE], both())
    answer = answer_of(job, unknown)
    assert answer["plan"]["phases"][0]["instance_type"] == SMALL.name
    wrong = checked(answer, job, columns).wrong
    assert any("GiB are offloaded to hosts that have 64 GiB" in fault.why for fault in wrong)


@pytest.mark.parametrize("offload", ["none", "optimizer", "parameters"])
@pytest.mark.parametrize("method", ["full", "lora"])
@pytest.mark.parametrize("precision", ["bf16", "fp32"])
def test_the_planner_and_verify_agree_on_what_hosts_hold(offload: str, method: str, precision: str) -> None:
    training = Training(method=method, precision=precision, offload=offload)
    work = work_of(Preset(model="mixtral-8x7b", tokens=1e8), training)
    assert offloaded_gib(work, training) == pytest.approx(states_floor(work, training, precision).hosts / GIB, rel=1e-9)
