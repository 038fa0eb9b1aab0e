"""What a plan may and may not be made of: terms, commitments held, own machines, standing, places, kinds."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest

from gpuplan.catalog.model.availability_windows import FreeSpan
from gpuplan.catalog.model.offer import InstanceType, Offer
from gpuplan.catalog.model.owned_machine import OwnedMachine
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.snapshots.offer_columns import Columns, columns_of
from gpuplan.catalog.snapshots.snapshot import snapshot_of
from gpuplan.planner.model.job import Constraints, DataSource, Explicit, TrainingJob
from gpuplan.planner.model.outcome import NoPlan, Planned
from gpuplan.planner.model.settings import ExistingCommitment
from gpuplan.planner.planning import plan
from tests.planner.spot_settings import replaced_at_once
from tests.planner.verify.answers import answer_of, checked

START = datetime(2026, 11, 21, tzinfo=UTC)
SETTINGS = replaced_at_once(least_saving_of_a_move_percent=0.0)
BOX = InstanceType(
    provider="aws",
    name="box",
    accelerator="A100-40GB-SXM",
    accelerator_count=Fraction(8),
    vcpus=96.0,
    intranode_gbs=300.0,
    scaleup_domain=8,
    network_gbps=400.0,
    clusters=True,
    source="made up",
)
JOB = TrainingJob(
    name="day", workload=Explicit(total_flops=4e19, memory_gib=40, steps=1000.0), start=START, deadline_hours=200.0
)


def offer(kind: str = "on_demand", usd: float = 20.0, **changes: object) -> Offer:
    row = Offer(
        provider="aws",
        region="us-east-1",
        instance_type="box",
        price_kind=kind,
        usd_micros_per_hour=round(usd * 1e6),
        observed_at=START - timedelta(days=20),
        source="made up",
    )
    return replace(row, **changes)  # type: ignore[arg-type]


def market(*offers: Offer, types: tuple[InstanceType, ...] = (BOX,)) -> Columns:
    return columns_of("made-up", START, types, offers)


def planned(columns: Columns, job: TrainingJob = JOB, **named: object) -> Planned:
    outcome = plan(job, columns, settings=SETTINGS, **named) if "settings" not in named else plan(job, columns, **named)  # type: ignore[arg-type]
    assert isinstance(outcome, Planned), outcome
    return outcome


def refused(columns: Columns, job: TrainingJob = JOB) -> NoPlan:
    outcome = plan(job, columns, settings=SETTINGS)
    assert isinstance(outcome, NoPlan), outcome
    return outcome


def test_a_three_year_rate_never_prices_a_job_of_a_day() -> None:
    asked = replace(JOB, constraints=Constraints(price_kinds=("on_demand", "reserved_3y")))
    outcome = planned(market(offer(), offer("reserved_3y", 5.0)), asked)
    assert outcome.phases[0].choice.offer.price_kind == "on_demand"


def test_a_reservation_asked_for_alone_costs_its_whole_term() -> None:
    asked = replace(JOB, constraints=Constraints(price_kinds=("reserved_1y",), max_nodes=1))
    outcome = planned(market(offer(), offer("reserved_1y", 12.0)), asked)
    assert outcome.cost.compute == pytest.approx(12.0e6 * 8760)


def test_a_plan_names_the_commitment_with_its_total_obligation_and_break_even() -> None:
    outcome = planned(market(offer(usd=20.0), offer("reserved_1y", 10.0)))
    (commitment,) = outcome.commitments
    assert commitment.obligation == outcome.phases[0].choice.nodes * 10_000_000 * 8760
    assert commitment.break_even_hours == pytest.approx(4380.0)


def test_a_commitment_that_is_held_adds_nothing_and_is_bounded_by_its_nodes() -> None:
    existing_commitment = ExistingCommitment(
        provider="aws", region="us-east-1", instance_type="box", price_kind="reserved_1y", nodes=2
    )
    asked = replace(JOB, constraints=Constraints(price_kinds=("on_demand", "reserved_1y")))
    columns = market(offer(), offer("reserved_1y", 12.0))
    outcome = planned(columns, asked, settings=replace(SETTINGS, held=(existing_commitment,)))
    choice = outcome.phases[0].choice
    assert (choice.offer.price_kind, outcome.cost.compute, outcome.cost.setup) == ("reserved_1y", 0, 0)
    assert choice.nodes <= 2


def test_a_commitment_that_is_held_need_not_be_named_but_may_be_left_out_by_naming_others() -> None:
    existing_commitment = ExistingCommitment(
        provider="aws", region="us-east-1", instance_type="box", price_kind="reserved_1y", nodes=2
    )
    columns = market(offer(), offer("reserved_1y", 12.0))
    assert planned(columns, JOB, settings=replace(SETTINGS, held=(existing_commitment,))).cost.compute == 0
    other = replace(JOB, constraints=Constraints(price_kinds=("on_demand",)))
    assert planned(columns, other, settings=replace(SETTINGS, held=(existing_commitment,))).cost.compute > 0


@pytest.mark.parametrize("deadline_hours", [38.0, 60.0])
def test_nodes_of_a_commitment_that_is_held_stand_by_at_no_cost(deadline_hours: float) -> None:
    held = ExistingCommitment(
        provider="aws", region="us-east-1", instance_type="box", price_kind="reserved_1y", nodes=1
    )
    fast = replace(BOX, name="fast", accelerator="H100-80GB-SXM")
    snapshot = snapshot_of((BOX, fast), (offer("reserved_1y", 12.0), offer("spot", 8.0, instance_type="fast")))
    columns = columns_of(snapshot.id, snapshot.observed_at, snapshot.instance_types, snapshot.offers)
    asked = replace(JOB, objective="time", deadline_hours=deadline_hours, constraints=Constraints(max_nodes=1))
    settings = replace(SETTINGS, held=(held,), checkpoints_kept=0)
    outcome = planned(columns, asked, settings=settings)
    assert outcome.fallback is not None
    assert (outcome.fallback.standby.choice.offer.price_kind, outcome.fallback.extra) == ("reserved_1y", 0)
    assert outcome.fallback.probability > 0
    assert checked(answer_of(asked, columns, settings=settings), asked, columns, settings=settings).wrong == ()


def test_a_price_known_only_in_part_is_never_planned_on() -> None:
    outcome = refused(market(offer(partial=("vcpu", "ram"))))
    assert outcome.rejected == {"price known only in part": 1}


def test_a_retired_family_is_rejected_by_that_reason() -> None:
    assert refused(market(offer(), types=(replace(BOX, retired=True),))).rejected == {"retired family": 1}


def test_a_type_that_is_not_sold_on_demand_can_still_be_had_as_spot() -> None:
    columns = market(offer(), offer("spot", 8.0), types=(replace(BOX, sold_on_demand=False),))
    outcome = planned(columns)
    assert outcome.phases[0].choice.offer.price_kind == "spot"
    assert outcome.proof.rejected["not sold on demand"] == 1


def test_an_accelerator_that_does_not_train_is_rejected_by_that_reason() -> None:
    outcome = refused(market(offer(), types=(replace(BOX, accelerator="Inferentia2"),)))
    assert outcome.rejected == {"accelerator does not train": 1}
    assert outcome.conflicts == (("workload",),)


def test_unverified_availability_is_opt_in() -> None:
    columns = market(offer(usd=30.0), offer(usd=10.0, region="ap-south-1", available=False))
    assert planned(columns).phases[0].choice.offer.region == "us-east-1"
    opted = replace(JOB, constraints=Constraints(unverified_availability=True))
    outcome = planned(columns, opted)
    assert outcome.phases[0].choice.offer.region == "ap-south-1"
    assert any("is not verified" in warning for warning in outcome.warnings)


def test_government_regions_are_opt_in() -> None:
    columns = market(offer(usd=30.0), offer(usd=10.0, region="us-gov-west-1"))
    assert planned(columns).phases[0].choice.offer.region == "us-east-1"
    opted = replace(JOB, constraints=Constraints(partitions=("commercial", "gov")))
    assert planned(columns, opted).phases[0].choice.offer.region == "us-gov-west-1"


def test_a_region_glob_that_matches_nothing_is_refused_by_its_place() -> None:
    asked = replace(JOB, constraints=Constraints(regions=("us-*", "mars-*")))
    with pytest.raises(UnusableInput, match=r"constraints\.regions\[1\].*mars") as caught:
        plan(asked, market(offer()), settings=SETTINGS)
    assert caught.value.faults[0].pointer == "/constraints/regions/1"


def test_a_glob_for_one_provider_does_not_bind_another() -> None:
    asked = replace(JOB, constraints=Constraints(regions=("azure:us-*", "eu-*")))
    columns = market(offer(usd=10.0), offer(usd=30.0, region="eu-west-1"))
    with pytest.raises(UnusableInput, match="azure"):
        plan(asked, columns, settings=SETTINGS)
    named = replace(JOB, constraints=Constraints(regions=("aws:eu-*",)))
    assert planned(columns, named).phases[0].choice.offer.region == "eu-west-1"


def test_an_unknown_geography_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UnusableInput, match=r"unknown geography 'atlantis'; one of .*asia"):
        plan(replace(JOB, constraints=Constraints(geography=("atlantis",))), market(offer()), settings=SETTINGS)


def test_a_listed_provider_left_without_a_region_is_warned_about() -> None:
    other = replace(BOX, provider="gcp", name="gbox")
    columns = market(offer(), offer(provider="gcp", instance_type="gbox", region="us-central1"), types=(BOX, other))
    asked = replace(JOB, constraints=Constraints(providers=("aws", "gcp"), regions=("us-east-*",)))
    assert any("leaves gcp without a region" in warning for warning in planned(columns, asked).warnings)


def test_moving_the_data_can_outweigh_a_cheaper_machine() -> None:
    columns = market(offer(usd=20.0), offer(usd=19.0, region="eu-west-1"))
    beside_data = replace(JOB, data=DataSource(location="aws:us-east-1", dataset_gb=50_000))
    outcome = planned(columns, beside_data)
    assert (outcome.phases[0].choice.offer.region, outcome.cost.egress) == ("us-east-1", 0)
    assert planned(columns).phases[0].choice.offer.region == "eu-west-1"


def test_a_slice_of_a_pod_is_rented_with_all_its_hosts() -> None:
    pod = replace(BOX, accelerator="TPU-v5e", accelerator_count=Fraction(4), fixed_nodes=8, scaleup_domain=32)
    assert planned(market(offer(), types=(pod,))).phases[0].choice.nodes == 8
    narrow = replace(JOB, constraints=Constraints(max_nodes=4))
    assert "constraints.max_nodes" in {
        name for names in refused(market(offer(), types=(pod,)), narrow).conflicts for name in names
    }


def test_modelled_prices_and_old_prices_are_warned_about() -> None:
    old = offer("spot", 8.0, observed_at=START - timedelta(days=400), modelled=("spot_price",))
    outcome = planned(market(old))
    assert any("400 days before the start" in warning for warning in outcome.warnings)
    assert any("spot price is modelled" in warning for warning in outcome.warnings)


def test_the_price_up_to_which_a_plan_holds_is_that_of_the_same_machine_elsewhere() -> None:
    outcome = planned(market(offer(usd=20.0), offer(usd=21.0, region="us-west-2")))
    assert outcome.sensitivity.holds_until == pytest.approx(21e6, rel=1e-3)


WORKSTATION = OwnedMachine(
    instance_type=replace(BOX, provider="local", name="lab", clusters=False),
    region="lab",
    machines=1,
    usd_per_hour_full=3.0,
    power_watts=3000.0,
    pue=1.2,
    usd_per_kwh=0.30,
)


def test_owned_machines_compete_at_full_cost_and_pay_their_power() -> None:
    outcome = planned(market(offer()), owned=(WORKSTATION,))
    choice = outcome.phases[0].choice
    assert (choice.offer.provider, choice.offer.price_kind) == ("local", "owned")
    assert outcome.cost.power == pytest.approx(choice.hours.expected * 3.0 * 1.2 * 0.30 * 1e6, rel=1e-6)
    assert outcome.cost.compute + outcome.cost.setup == pytest.approx(choice.hours.expected * 3.0e6, rel=1e-4)


def test_at_marginal_cost_owned_machines_cost_their_power_alone() -> None:
    outcome = planned(market(offer()), owned=(WORKSTATION,), settings=replace(SETTINGS, cost_basis="marginal"))
    assert outcome.cost.expected == outcome.cost.power + outcome.cost.storage


def test_owned_machines_are_exempt_from_region_constraints() -> None:
    asked = replace(JOB, constraints=Constraints(regions=("us-*",), geography=("us",)))
    assert planned(market(offer()), asked, owned=(WORKSTATION,)).phases[0].choice.offer.provider == "local"


def test_an_own_machine_works_in_its_free_windows_only() -> None:
    night = tuple(
        FreeSpan(start=START + timedelta(days=day), end=START + timedelta(days=day, hours=2)) for day in range(365)
    )
    alone = replace(JOB, constraints=Constraints(providers=("local",)), deadline_hours=None)
    always = planned(market(offer()), alone, owned=(WORKSTATION,)).hours.expected
    nights = planned(market(offer()), alone, owned=(replace(WORKSTATION, windows=night),)).hours.expected
    assert always > 2
    assert nights > 24 * (always // 2)


@pytest.mark.parametrize("confidence", [0.05, 0.9])
def test_owned_machines_whose_windows_close_before_19_of_20_runs_end_are_not_planned_with(confidence: float) -> None:
    alone = replace(JOB, constraints=Constraints(providers=("local",)), deadline_hours=None, confidence=confidence)
    hours = planned(market(offer()), alone, owned=(WORKSTATION,)).hours
    assert hours.confident < hours.p95

    def free_for(hours: float) -> Planned | NoPlan:
        window = (FreeSpan(start=START, end=START + timedelta(hours=hours)),)
        return plan(alone, market(offer()), owned=(replace(WORKSTATION, windows=window),), settings=SETTINGS)

    assert isinstance(free_for((hours.confident + hours.p95) / 2), NoPlan)
    assert isinstance(free_for(hours.p95 + 0.01), Planned)


def test_no_job_starts_on_more_owned_machines_than_there_are() -> None:
    pair = replace(WORKSTATION, machines=2, instance_type=replace(WORKSTATION.instance_type, clusters=True))
    alone = replace(JOB, constraints=Constraints(providers=("local",)), deadline_hours=None)
    frontier = planned(market(offer()), alone, owned=(pair,), frontier=True).frontier
    assert frontier is not None
    assert {choice.nodes for choice in frontier} <= {1, 2}


def test_a_cheap_machine_that_is_busy_does_not_hide_a_dearer_one_that_is_free() -> None:
    next_year = (FreeSpan(start=START + timedelta(days=300), end=START + timedelta(days=400)),)
    busy = replace(WORKSTATION, usd_per_hour_full=0.1, windows=next_year)
    free = replace(WORKSTATION, instance_type=replace(WORKSTATION.instance_type, name="free"))
    alone = replace(JOB, constraints=Constraints(providers=("local",)))
    assert planned(market(offer()), alone, owned=(busy, free)).phases[0].choice.offer.instance_type == "free"


def test_of_two_owned_machines_that_are_alike_the_one_with_the_cheaper_power_works() -> None:
    hungry = replace(WORKSTATION, usd_per_kwh=3.0)
    frugal = replace(WORKSTATION, instance_type=replace(WORKSTATION.instance_type, name="frugal"))
    alone = replace(JOB, constraints=Constraints(providers=("local",)), deadline_hours=None)
    outcome = planned(market(offer()), alone, owned=(hungry, frugal))
    assert outcome.phases[0].choice.offer.instance_type == "frugal"


def test_each_commitment_held_is_bounded_by_its_own_nodes() -> None:
    few = ExistingCommitment(provider="aws", region="us-east-1", instance_type="box", price_kind="reserved_1y", nodes=1)
    eight = replace(few, region="us-west-2", nodes=8)
    columns = market(offer("reserved_1y"), offer("reserved_1y", region="us-west-2"))
    asked = replace(
        JOB,
        constraints=Constraints(price_kinds=("reserved_1y",)),
        data=DataSource(location="aws:us-east-1", dataset_gb=1000.0),
        deadline_hours=None,
    )
    frontier = planned(columns, asked, settings=replace(SETTINGS, held=(few, eight)), frontier=True).frontier
    held = [point for point in frontier or () if point.cost.compute == 0]
    assert {point.nodes for point in held if point.offer.region == "us-east-1"} == {1}
    assert max(point.nodes for point in held if point.offer.region == "us-west-2") > 1


def test_a_held_commitment_is_said_to_be_paid_for_and_not_offered_again() -> None:
    existing_commitment = ExistingCommitment(
        provider="aws", region="us-east-1", instance_type="box", price_kind="reserved_1y", nodes=2
    )
    asked = replace(JOB, constraints=Constraints(price_kinds=("reserved_1y",)))
    outcome = planned(market(offer("reserved_1y")), asked, settings=replace(SETTINGS, held=(existing_commitment,)))
    assert outcome.commitments == ()
    assert any("held and paid for" in sentence for sentence in outcome.assumptions)


def test_a_plan_on_an_own_machine_with_free_windows_says_that_it_waits() -> None:
    windows = (FreeSpan(start=START, end=START + timedelta(days=100)),)
    outcome = planned(market(offer()), owned=(replace(WORKSTATION, windows=windows),))
    assert any("free windows only" in sentence for sentence in outcome.assumptions)


def test_a_plan_on_an_own_machine_starts_when_its_first_window_opens() -> None:
    asked = replace(JOB, constraints=Constraints(providers=("local",)), deadline_hours=None)
    for hours in (0, 20):
        opens = START + timedelta(hours=hours)
        windows = (FreeSpan(start=opens, end=opens + timedelta(days=100)),)
        outcome = planned(market(offer()), asked, owned=(replace(WORKSTATION, windows=windows),))
        assert outcome.phases[0].begins_hours == pytest.approx(hours)


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"provider": "mars"}, "provider"),
        ({"region": "us-east-9"}, "region"),
        ({"instance_type": "bax"}, "instance_type"),
        ({"price_kind": "reserved_3y"}, "price_kind"),
    ],
)
def test_a_commitment_held_on_what_does_not_exist_is_refused_at_its_field(changed: dict[str, str], field: str) -> None:
    existing_commitment = ExistingCommitment(
        provider="aws", region="us-east-1", instance_type="box", price_kind="reserved_1y", nodes=2
    )
    settings = replace(SETTINGS, held=(replace(existing_commitment, **changed),))  # type: ignore[arg-type]
    with pytest.raises(UnusableInput) as refusal:
        plan(JOB, market(offer(), offer("reserved_1y")), settings=settings)
    assert [fault.path for fault in refusal.value.faults] == [("settings", "held", 0, field)]


def test_a_commitment_held_twice_is_refused() -> None:
    existing_commitment = ExistingCommitment(
        provider="aws", region="us-east-1", instance_type="box", price_kind="reserved_1y", nodes=2
    )
    with pytest.raises(UnusableInput, match=r"settings.held\[1\]: is held already"):
        plan(
            JOB,
            market(offer("reserved_1y")),
            settings=replace(SETTINGS, held=(existing_commitment, replace(existing_commitment, nodes=3))),
        )


@pytest.mark.parametrize("flops", [1.0, 1e9, 1e15])
def test_a_job_of_a_moment_on_spot_is_done_within_the_day_at_any_confidence(flops: float) -> None:
    tiny = replace(JOB, workload=Explicit(total_flops=flops, memory_gib=0.001), confidence=0.999999)
    best = planned(market(offer("spot", 8.0)), tiny)
    hours = best.hours
    assert hours.expected == pytest.approx(best.phases[0].setup_hours, rel=0.01)
    assert hours.confident < 24


def test_a_run_of_more_than_a_thousand_years_is_no_plan_and_says_so() -> None:
    endless = replace(JOB, workload=Explicit(total_flops=1e29, memory_gib=40), deadline_hours=None)
    outcome = refused(market(offer()), endless)
    assert "a thousand years" in " ".join(outcome.rejected)


def test_a_job_too_late_and_too_dear_names_both_ways_out_with_their_cost() -> None:
    outcome = refused(market(offer(usd=20.0)), replace(JOB, deadline_hours=0.6, budget_usd=1.0))
    assert outcome.conflicts
    assert {name for names in outcome.conflicts for name in names} >= {"budget_usd"}
    assert all(relaxation.choice.cost.expected > 0 for relaxation in outcome.relaxations)
    assert outcome.nearest is not None


def test_a_named_precision_that_no_machine_has_offers_auto() -> None:
    old = replace(BOX, accelerator="V100-16GB")
    strict = replace(JOB, training=replace(JOB.training, precision="bf16"))
    outcome = refused(market(offer(), types=(old,)), strict)
    assert outcome.conflicts == (("training.precision",),)
    assert [relaxation.requirements for relaxation in outcome.relaxations] == [("training.precision",)]


def test_the_same_question_gives_the_same_plan_bit_for_bit() -> None:
    columns = market(offer(), offer("spot", 8.0))
    first, second = planned(columns), planned(columns)
    assert (first.cost, first.hours, first.phases, first.alternatives) == (
        second.cost,
        second.hours,
        second.phases,
        second.alternatives,
    )


@pytest.mark.parametrize(
    "job",
    [
        replace(JOB, deadline_hours=0.3),
        replace(JOB, budget_usd=0.31),
        replace(JOB, constraints=Constraints(vendors=("AMD",))),
        replace(JOB, constraints=Constraints(geography=("eu",))),
        replace(JOB, constraints=Constraints(price_kinds=("spot",))),
    ],
    ids=["deadline", "budget", "vendors", "geography", "price kinds"],
)
def test_what_a_relaxation_asks_for_can_be_written_into_the_job_and_gives_its_plan(job: TrainingJob) -> None:
    outcome = refused(market(offer()), job)
    for way in outcome.relaxations:
        (name,), (needed,) = way.requirements, way.needed
        field = name.rpartition(".")[2]
        numbers = {"deadline": "deadline_hours", "budget_usd": "budget_usd"}
        if name in numbers:
            given: dict[str, object] = {numbers[name]: float(needed.strip("$ h").replace(",", ""))}
        else:
            given = {"constraints": replace(job.constraints, **{field: (needed,)})}  # type: ignore[arg-type]
        relaxed = replace(job, **given)  # type: ignore[arg-type]
        assert planned(market(offer()), relaxed).cost.expected == way.choice.cost.expected
    assert outcome.relaxations


def test_every_offer_of_an_impossible_job_is_accounted_for() -> None:
    outcome = refused(market(offer(), offer("spot", 8.0), offer("reserved_3y")), replace(JOB, deadline_hours=0.3))
    assert outcome.rejected == {
        "misses deadline or budget at every node count": 2,
        "not among constraints.price_kinds": 1,
    }


def test_a_start_before_the_price_was_seen_is_warned_about() -> None:
    early = replace(JOB, start=START - timedelta(days=400))
    assert any("before the price was observed" in warning for warning in planned(market(offer()), early).warnings)


def test_a_commitment_dearer_than_what_it_replaces_never_pays_off() -> None:
    (commitment,) = planned(market(offer("spot", 5.0), offer("reserved_1y", 10.0))).commitments
    assert commitment.break_even_hours is None


def test_every_host_of_a_slice_adds_to_what_may_be_preempted() -> None:
    pod = replace(BOX, accelerator="TPU-v5e", accelerator_count=Fraction(4), fixed_nodes=8, scaleup_domain=32)
    columns = market(offer("spot", interruptions_per_hour=0.1), types=(pod,))
    assert planned(columns).phases[0].interruptions_per_hour == pytest.approx(0.1)


def test_a_snapshot_with_an_accelerator_that_only_a_newer_release_knows_is_refused_by_name() -> None:
    columns = market(offer())
    newer = tuple(replace(instance_type, accelerator="H9000") for instance_type in columns.instance_types)
    with pytest.raises(UnusableInput, match=r"snapshot: holds .* with the accelerator 'H9000', which this release"):
        planned(replace(columns, instance_types=newer), JOB)


def test_a_machine_that_is_sold_to_some_accounts_alone_is_planned_with_a_notice() -> None:
    p3 = replace(BOX, name="p3.16xlarge", accelerator="V100-16GB")
    outcome = planned(market(offer(instance_type=p3.name), types=(p3,)))
    assert any(
        "only for accounts that already use it" in warning and p3.name in warning for warning in outcome.warnings
    )
    assert not any("accounts that already use it" in warning for warning in planned(market(offer())).warnings)
