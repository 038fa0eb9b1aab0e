"""Kinds of sellers, places that a provider does not state, and machines without a private fabric."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import combinations, product

import pytest

from gpuplan.catalog.model.egress_rates import egress_tiers
from gpuplan.catalog.model.offer import PLAIN_NETWORK, InstanceType, Offer
from gpuplan.catalog.model.provider_names import PROVIDER_KINDS, provider_kind
from gpuplan.catalog.model.regions import UNKNOWN_REGION
from gpuplan.catalog.snapshots.embedded_snapshot import embedded_snapshot
from gpuplan.catalog.snapshots.offer_columns import Columns, columns_of
from gpuplan.planner.model.job import Constraints, DataSource, Explicit, Preset, Training, TrainingJob
from gpuplan.planner.model.outcome import NoPlan, Planned
from gpuplan.planner.planning import plan
from tests.planner.spot_settings import replaced_at_once

START = datetime(2026, 11, 21, tzinfo=UTC)
SETTINGS = replaced_at_once()
JOB = TrainingJob(
    name="day", workload=Explicit(total_flops=4e19, memory_gib=40, steps=1000.0), start=START, deadline_hours=400.0
)


def machine(provider: str, name: str = "box", **changes: object) -> InstanceType:
    return InstanceType(
        provider=provider,
        name=name,
        accelerator="A100-80GB-SXM",
        accelerator_count=Fraction(8),
        scaleup_domain=8,
        network_gbps=1600.0,
        clusters=True,
        source="made up",
        **changes,  # type: ignore[arg-type]
    )


def offer(machine: InstanceType, usd: float, region: str = UNKNOWN_REGION) -> Offer:
    return Offer(
        provider=machine.provider,
        region=region,
        instance_type=machine.name,
        price_kind="on_demand",
        usd_micros_per_hour=round(usd * 1e6),
        observed_at=START - timedelta(days=20),
        source="made up",
    )


AWS, LAMBDA, VAST = machine("aws"), machine("lambda"), machine("vast")
MARKET = columns_of(
    "made-up", START, [AWS, LAMBDA, VAST], [offer(AWS, 30.0, "us-east-1"), offer(LAMBDA, 20.0), offer(VAST, 10.0)]
)


def with_limits(**limits: tuple[str, ...]) -> TrainingJob:
    return replace(JOB, constraints=replace(JOB.constraints, **limits))  # type: ignore[arg-type]


def planned(columns: Columns, job: TrainingJob = JOB) -> Planned:
    outcome = plan(job, columns, settings=SETTINGS)
    assert isinstance(outcome, Planned), outcome
    return outcome


def seller(outcome: Planned) -> str:
    return outcome.phases[0].choice.offer.provider


def test_marketplaces_are_opt_in_and_a_plan_on_one_says_so() -> None:
    assert seller(planned(MARKET)) == "lambda"
    opted = planned(MARKET, with_limits(provider_kinds=tuple(PROVIDER_KINDS)))
    assert seller(opted) == "vast"
    assert any("marketplace" in warning and "third parties" in warning for warning in opted.warnings)
    assert not any("third parties" in warning for warning in planned(MARKET).warnings)


def test_one_word_restricts_a_job_to_general_clouds() -> None:
    outcome = planned(MARKET, with_limits(provider_kinds=("cloud",)))
    assert seller(outcome) == "aws"
    assert outcome.proof.rejected["not among constraints.provider_kinds"] == 2


def test_a_job_that_only_a_marketplace_can_run_names_the_constraint_to_relax() -> None:
    outcome = plan(with_limits(providers=("vast",)), MARKET, settings=SETTINGS)
    assert isinstance(outcome, NoPlan)
    assert outcome.conflicts == (("constraints.providers", "constraints.provider_kinds"),)
    assert "marketplace" in str(outcome.relaxations)


def test_one_provider_may_sell_as_a_neocloud_and_as_a_marketplace() -> None:
    assert provider_kind("runpod", "NVIDIA H100 80GB HBM3 x8") == "neocloud"
    assert provider_kind("runpod", "NVIDIA H100 80GB HBM3 x1 community") == "marketplace"
    assert provider_kind("local", "rig") is None


SETS_OF_KINDS = [set(kinds) for size in (1, 2, 3) for kinds in combinations(sorted(PROVIDER_KINDS), size)]


def test_allowing_fewer_kinds_of_sellers_is_never_cheaper() -> None:
    cost = {
        frozenset(kinds): planned(MARKET, with_limits(provider_kinds=tuple(sorted(kinds)))).cost.expected
        for kinds in SETS_OF_KINDS
    }
    for narrow, wide in product(cost, cost):
        assert not narrow <= wide or cost[wide] <= cost[narrow]


def test_a_place_that_is_not_stated_is_planned_on_and_the_plan_says_so() -> None:
    outcome = planned(MARKET)
    assert outcome.phases[0].choice.offer.region == UNKNOWN_REGION
    assert any("lambda does not state where" in warning for warning in outcome.warnings)


@pytest.mark.parametrize("limits", [{"regions": ("*",)}, {"geography": ("us",)}, {"regions": ("us-*",)}])
def test_a_job_that_names_places_leaves_out_those_that_are_not_stated(limits: dict[str, tuple[str, ...]]) -> None:
    assert seller(planned(MARKET, with_limits(**limits))) == "aws"


@pytest.mark.parametrize("limits", [{"regions": ("us-*",)}, {"geography": ("us",)}])
def test_a_way_out_to_a_place_that_is_not_stated_lifts_the_limit_on_places(limits: dict[str, tuple[str, ...]]) -> None:
    job = replace(with_limits(providers=("lambda",), **limits), budget_usd=1e6)
    outcome = plan(job, MARKET, settings=SETTINGS)
    assert isinstance(outcome, NoPlan)
    assert any(word in str(outcome.relaxations) for word in ("'none'", "that of lambda:unknown"))


def test_data_goes_to_an_unknown_place_at_the_dearest_rate_of_its_origin_outside_china() -> None:
    unknown = egress_tiers("gcp", "us-central1", "runpod", UNKNOWN_REGION)
    rates = [egress_tiers("gcp", "us-central1", "aws", region) for region in ("us-east-1", "ap-southeast-2")]
    assert unknown.egress_usd(4000) == max(rate.egress_usd(4000) for rate in rates)
    assert any("place of runpod is unknown" in assumption for assumption in unknown.assumptions)


def test_data_that_lies_at_an_unknown_place_is_not_taken_to_be_at_another_machine_there() -> None:
    assert egress_tiers("nebius", UNKNOWN_REGION, "nebius", UNKNOWN_REGION).egress_usd(1000) > 0
    assert egress_tiers("nebius", "eu-north1", "nebius", "eu-north1").egress_usd(1000) == 0


def test_egress_to_a_neocloud_is_part_of_the_cost() -> None:
    data = DataSource(location="aws:us-east-1", dataset_gb=20_000.0)
    near = planned(MARKET, replace(JOB, data=data))
    assert seller(near) == "aws"


def test_nodes_without_a_private_fabric_pay_the_plain_network_and_the_plan_says_so() -> None:
    plain = machine("lambda", "plain-box", fabric=PLAIN_NETWORK)
    plain = replace(plain, network_gbps=10.0)
    fabric = replace(plain, name="fabric-box", fabric="InfiniBand", network_gbps=1600.0)
    job = TrainingJob(
        name="wide",
        workload=Preset(model="llama-3-8b", tokens=20e9),
        training=Training(),
        start=START,
        deadline_hours=100.0,
        constraints=Constraints(max_phases=1),
    )
    slow, fast = (planned(columns_of("made-up", START, [row], [offer(row, 20.0)]), job) for row in (plain, fabric))
    assert slow.phases[0].choice.nodes > 1
    assert slow.cost.expected > fast.cost.expected
    assert any("plain network of 10 Gbit/s" in warning for warning in slow.warnings)
    assert not any("plain network" in warning for warning in fast.warnings)


def test_machines_of_neoclouds_state_their_network_or_stand_alone() -> None:
    for row in embedded_snapshot().instance_types:
        if row.fabric == PLAIN_NETWORK:
            assert row.clusters
            assert row.network_gbps is not None
            assert row.network_gbps <= 20


def test_a_stated_pcie_link_gives_consumer_cards_no_copies_between_peers() -> None:
    boxes = [row for row in embedded_snapshot().instance_types if row.accelerator == "RTX-4090" and row.devices > 1]
    assert boxes
    assert {row.intranode_gbs for row in boxes} == {None}
