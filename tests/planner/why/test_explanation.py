"""Why something was not chosen: the price at which it would win, what it costs more, what it is worth."""

import random
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction

import pytest

from gpuplan.catalog.model.offer import InstanceType, Offer
from gpuplan.catalog.model.owned_machine import OwnedMachine
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.snapshots.offer_columns import Columns, columns_of
from gpuplan.planner.explain.named_supply import Supply, named
from gpuplan.planner.model.job import TrainingJob
from gpuplan.planner.model.outcome import NoPlan, Planned
from gpuplan.planner.model.settings import ExistingCommitment
from gpuplan.planner.model.wire import wire
from gpuplan.planner.planning import plan
from gpuplan.planner.strategies.schedule import Schedule
from gpuplan.planner.why.explanation import About, Why, carbon_frontier, why
from gpuplan.planner.why.explanation_document import why_answer
from gpuplan.planner.why.explanation_text import summary
from tests.planner.explain.by_hand import SETTINGS, drawn, free, planned
from tests.planner.spot_settings import replaced_at_once

SEEDS = range(16)


def asked(job: TrainingJob, columns: Columns, name: str) -> tuple[Why, About]:
    explanation = why(job, columns, settings=SETTINGS, not_=name)
    assert explanation.about is not None
    return explanation, explanation.about


def something(columns: Columns, seed: int) -> str:
    """A name of some sort that the catalogue knows."""
    draw = random.Random(seed)
    offer = draw.choice(columns.offers)
    machine = next(a for a in columns.instance_types if a.name == offer.instance_type)
    return draw.choice((offer.provider, offer.region, offer.instance_type, offer.price_kind, machine.accelerator))


def repriced(columns: Columns, at: Offer, micros: int) -> Columns:
    """The catalogue with one offer at another price."""
    rows = [replace(offer, usd_micros_per_hour=micros) if offer.key == at.key else offer for offer in columns.offers]
    return columns_of("repriced", columns.observed_at, columns.instance_types, rows)


def discounted(columns: Columns, about: About, percent: float) -> Columns:
    """The catalogue with all that is named so many per cent cheaper."""
    machine = {instance_type.name: instance_type for instance_type in columns.instance_types}
    rows = [
        replace(offer, usd_micros_per_hour=round(offer.usd_micros_per_hour * (1 - percent / 100)))
        if about.named.has(machine[offer.instance_type], offer.provider, offer.region, offer.price_kind)
        else offer
        for offer in columns.offers
    ]
    return columns_of("discounted", columns.observed_at, columns.instance_types, rows)


@pytest.mark.slow(reason="16 cases")
@pytest.mark.parametrize("seed", SEEDS)
def test_the_best_plan_on_something_is_that_of_a_catalogue_with_nothing_else(seed: int) -> None:
    job, columns = drawn(seed)
    explanation, about = asked(job, columns, something(columns, seed))
    machine = {instance_type.name: instance_type for instance_type in columns.instance_types}
    rows = [
        offer
        for offer in columns.offers
        if about.named.has(machine[offer.instance_type], offer.provider, offer.region, offer.price_kind)
    ]
    alone = planned(job, columns_of("alone", columns.observed_at, columns.instance_types, rows))
    if about.verdict == "chosen":
        assert isinstance(explanation.chosen, Planned)
        assert isinstance(alone, Planned)
        assert alone.cost.expected == explanation.chosen.cost.expected
    elif isinstance(alone, NoPlan):
        assert about.verdict == "infeasible"
        assert isinstance(about.best, NoPlan)
        assert about.best.conflicts == alone.conflicts
    else:
        assert about.verdict == "worse"
        assert isinstance(about.best, Planned)
        assert about.best.cost == alone.cost
        assert isinstance(explanation.chosen, Planned)
        assert about.best.cost.expected >= explanation.chosen.cost.expected


@pytest.mark.slow(reason="16 cases")
@pytest.mark.parametrize("seed", SEEDS)
def test_at_the_break_even_price_it_wins_and_just_above_it_does_not(seed: int) -> None:
    job, columns = drawn(seed)
    explanation, about = asked(job, columns, something(columns, seed))
    if about.break_even is None or not isinstance(explanation.chosen, Planned):
        return
    break_even = about.break_even
    assert break_even.wins_at <= break_even.price
    for price, wins in ((break_even.wins_at, True), (break_even.wins_at + 1 + break_even.price // 1000, False)):
        if price < 1 or price > break_even.price:
            continue
        cheaper = repriced(columns, break_even.choice.offer, price)
        _, again = asked(job, cheaper, about.named.text)
        best = again.best
        assert isinstance(best, Planned)
        # To the micro-dollar that a price in whole micro-dollars can tell.
        if wins:
            assert best.cost.expected <= explanation.chosen.cost.expected + 1
        else:
            assert best.cost.expected > explanation.chosen.cost.expected


@pytest.mark.slow(reason="16 cases")
@pytest.mark.parametrize("seed", SEEDS)
def test_the_discount_told_is_just_enough(seed: int) -> None:
    job, columns = drawn(seed)
    explanation, about = asked(job, columns, something(columns, seed))
    if about.break_even is None or not isinstance(explanation.chosen, Planned) or about.verdict == "chosen":
        return
    target, percent = explanation.chosen.cost.expected, about.break_even.discount_percent
    for off, wins in ((percent * (1 + 1e-6) + 1e-4, True), (percent * 0.999 - 1e-3, False)):
        if 0 < off < 100:
            _, again = asked(job, discounted(columns, about, off), about.named.text)
            assert isinstance(again.best, Planned)
            assert (again.best.cost.expected <= target + 5) == wins


@pytest.mark.slow(reason="one long case")
def test_some_drawn_rivals_have_a_break_even_and_some_no_plan() -> None:
    verdicts: list[str] = []
    ties = 0
    for seed in SEEDS:
        job, columns = drawn(seed)
        _, about = asked(job, columns, something(columns, seed))
        verdicts.append(about.verdict)
        ties += about.break_even is not None
    assert ties > 1
    assert {verdict: verdicts.count(verdict) > 0 for verdict in ("chosen", "worse", "infeasible")} == {
        "chosen": True,
        "worse": True,
        "infeasible": True,
    }


@pytest.mark.slow(reason="8 cases")
@pytest.mark.parametrize("seed", range(8))
def test_what_having_it_is_worth_is_what_its_lack_costs(seed: int) -> None:
    job, columns = free(seed)
    chosen = planned(job, columns)
    assert isinstance(chosen, Planned)
    kind = chosen.phases[0].choice.offer.price_kind
    explanation = why(job, columns, settings=SETTINGS, with_=kind)
    rows = [offer for offer in columns.offers if offer.price_kind != kind]
    without = planned(job, columns_of("without", columns.observed_at, columns.instance_types, rows))
    assert explanation.about is not None
    assert explanation.about.verdict == "chosen"
    if isinstance(without, Planned):
        assert isinstance(explanation.about.without, Planned | Schedule)
        assert explanation.about.without.cost.expected == without.cost.expected
        assert without.cost.expected >= chosen.cost.expected
    else:
        assert not isinstance(explanation.about.without, Planned | Schedule)


@pytest.mark.parametrize("seed", range(8))
def test_extra_costs_by_part_add_up_to_the_extra_cost(seed: int) -> None:
    job, columns = drawn(seed)
    explanation, _ = asked(job, columns, something(columns, seed))
    shown = wire(why_answer(explanation, {}, version="test"))
    extra = (shown["about"]["best"] or {}).get("extra")
    if extra is not None:
        parts = sum(round(float(amount) * 1e6) for amount in extra["breakdown"].values())
        assert parts == round(float(extra["usd"]) * 1e6)
    assert shown["summary"]
    assert shown["id"].startswith("why-")


def supply(columns: Columns, **changes: object) -> Supply:
    return replace(Supply(columns=columns, owned=(), settings=SETTINGS), **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "field", "names"),
    [
        ("spot", "price_kind", ("spot",)),
        ("On-Demand", "price_kind", ("on_demand",)),
        ("reserved_1y*", "price_kind", None),
        ("aws", "provider", ("aws",)),
        ("h100", "accelerator", None),
        ("nvidia T4", "accelerator", ("T4",)),
        ("aws-type-1", "instance_type", ("aws-type-1",)),
        ("GCP-type-*", "instance_type", ("gcp-type-0", "gcp-type-1")),
        ("us-*", "region", ("aws:us-east-1", "gcp:us-central1")),
        ("aws:us-*", "region", ("aws:us-east-1",)),
        ("region: us-central1", "region", ("gcp:us-central1",)),
        ("instance type: azure-type-0", "instance_type", ("azure-type-0",)),
    ],
)
def test_a_name_is_taken_for_what_it_is(text: str, field: str, names: tuple[str, ...] | None) -> None:
    _, columns = drawn(5, offers=60)
    places = {("aws", "us-east-1"), ("gcp", "us-central1")}
    assert places <= set(columns.regions)
    subject = named(text, supply(columns), field="not")
    assert subject.field == field
    if names is not None:
        assert tuple(n for n in subject.names if "us-east-2" not in n) == names


@pytest.mark.parametrize(
    "text", ["", " ", "\n", "H1000x", "accelerator: aws", "[", "region:", "x" * 101, "provider: spot"]
)
def test_a_name_that_nothing_has_is_refused_at_its_field(text: str) -> None:
    _, columns = drawn(5)
    with pytest.raises(UnusableInput) as caught:
        named(text, supply(columns), field="not")
    assert caught.value.faults[0].path == ("not",)
    assert "\n" not in caught.value.faults[0].message


def test_a_slip_of_the_pen_is_shown_what_is_near() -> None:
    _, columns = drawn(5)
    with pytest.raises(UnusableInput, match="aws-type-1"):
        named("aws-typ-1", supply(columns), field="not")
    with pytest.raises(UnusableInput, match="H100"):
        named("H10O-80GB-SXM", supply(columns), field="not")


def test_not_and_with_at_once_are_refused() -> None:
    job, columns = drawn(5)
    with pytest.raises(UnusableInput, match="one of the two"):
        why(job, columns, settings=SETTINGS, not_="spot", with_="aws")


def test_what_the_snapshot_does_not_offer_is_said_to_be_absent() -> None:
    job, columns = drawn(5)
    explanation, about = asked(job, columns, "TPU-v6e")
    assert about.verdict == "absent"
    assert any("neither the snapshot nor" in sentence for sentence in summary(explanation))


def test_the_frontier_by_itself_is_that_of_the_explanation() -> None:
    job, columns = drawn(3)
    assert carbon_frontier(job, columns, settings=SETTINGS) == why(job, columns, settings=SETTINGS).frontier


def test_about_carbon_or_time_no_price_is_told() -> None:
    job, columns = free(2)
    for objective in ("carbon", "time"):
        aimed = replace(job, objective=objective)
        explanation = why(aimed, columns, settings=SETTINGS, not_=something(columns, 3))
        assert explanation.about is not None
        assert explanation.about.break_even is None
        assert not any("win" in sentence for sentence in summary(explanation))


BOX = OwnedMachine(
    instance_type=InstanceType(
        provider="local",
        name="our-box",
        accelerator="A100-80GB-SXM",
        accelerator_count=Fraction(8),
        vcpus=96.0,
        intranode_gbs=300.0,
        scaleup_domain=8,
        network_gbps=None,
        clusters=False,
        source="the inventory",
    ),
    region="basement",
    machines=1,
    usd_per_hour_full=2.0,
    power_watts=6500.0,
    pue=1.3,
    usd_per_kwh=0.2,
    grams_co2_per_kwh=50.0,
)


@pytest.mark.parametrize("name", ["our-box", "local", "owned", "basement", "A100-80GB-SXM"])
def test_owned_machines_are_named_in_every_way(name: str) -> None:
    job, columns = free(1)
    job = replace(job, constraints=replace(job.constraints, price_kinds=()))
    explanation = why(job, columns, owned=(BOX,), settings=SETTINGS, with_=name)
    assert explanation.about is not None
    assert explanation.about.verdict in {"chosen", "worse"}
    best = explanation.about.best
    assert isinstance(best, Planned)
    if explanation.about.named.field != "accelerator":
        assert best.phases[0].choice.instance_type.name == "our-box"


def test_constraints_that_name_owned_machines_still_make_sense_without_them() -> None:
    job, columns = free(1)
    owned_only = replace(job, constraints=replace(job.constraints, instance_types=("our-*",)))
    explanation = why(owned_only, columns, owned=(BOX,), settings=SETTINGS, not_="aws")
    assert explanation.about is not None
    assert isinstance(explanation.about.best, NoPlan)
    assert ("constraints.instance_types",) in explanation.about.best.conflicts


def test_a_held_commitment_belongs_to_what_it_is_of() -> None:
    job, columns = free(1)
    offer = next(offer for offer in columns.offers if offer.price_kind == "reserved_1y")
    existing_commitment = ExistingCommitment(
        provider=offer.provider,
        region=offer.region,
        instance_type=offer.instance_type,
        price_kind="reserved_1y",
        nodes=9,
    )
    settings = replaced_at_once(held=(existing_commitment,))
    widened = replace(job, constraints=replace(job.constraints, price_kinds=("on_demand", "spot", "reserved_1y")))
    for text in ("spot", "reserved_1y"):
        explanation = why(widened, columns, settings=settings, with_=text)
        assert explanation.about is not None
        whole = plan(widened, columns, settings=settings)
        assert isinstance(explanation.chosen, Planned)
        assert isinstance(whole, Planned)
        assert explanation.chosen.cost == whole.cost
        if isinstance(explanation.about.best, Planned):
            assert explanation.about.best.phases[0].choice.offer.price_kind == text


def test_the_same_question_has_the_same_answer() -> None:
    job, columns = free(4)
    asked_at = replace(job, start=datetime(2026, 11, 21, tzinfo=UTC))
    answers = [why_answer(why(asked_at, columns, settings=SETTINGS, not_="spot"), {}, version="test") for _ in range(2)]
    assert answers[0] == answers[1]
