"""Why something was not chosen: the price at which it would win, what it costs more, what it is worth."""

import random
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction

import pytest

from catalog.columns import Columns, columns_of
from catalog.errors import UnusableInput
from catalog.offer import InstanceType, Offer
from catalog.owned import OwnedMachine
from planner.answer import Infeasible, Planned
from planner.explain.named import Supply, named
from planner.explain.why import About, Why, why
from planner.explain.why_document import why_document
from planner.explain.why_words import summary
from planner.job import TrainingJob
from planner.phases.course import Course
from planner.plan import plan
from planner.settings import HeldCommitment, PlannerSettings
from tests.planner.explain.by_hand import SETTINGS, drawn, free, planned

SEEDS = range(16)


def asked(job: TrainingJob, columns: Columns, name: str) -> tuple[Why, About]:
    found = why(job, columns, settings=SETTINGS, not_=name)
    assert found.about is not None
    return found, found.about


def something(columns: Columns, seed: int) -> str:
    """A name of some sort that the catalogue knows."""
    draw = random.Random(seed)
    offer = draw.choice(columns.offers)
    machine = next(a for a in columns.instance_types if a.name == offer.instance_type)
    return draw.choice((offer.provider, offer.region, offer.instance_type, offer.price_kind, machine.accelerator))


def repriced(columns: Columns, at: Offer, micros: int) -> Columns:
    """The catalogue with one offer at another price."""
    rows = [replace(each, usd_micros_per_hour=micros) if each.key == at.key else each for each in columns.offers]
    return columns_of("repriced", columns.observed_at, columns.instance_types, rows)


def discounted(columns: Columns, about: About, percent: float) -> Columns:
    """The catalogue with all that is named so many per cent cheaper."""
    machine = {each.name: each for each in columns.instance_types}
    rows = [
        replace(each, usd_micros_per_hour=round(each.usd_micros_per_hour * (1 - percent / 100)))
        if about.named.has(machine[each.instance_type], each.provider, each.region, each.price_kind)
        else each
        for each in columns.offers
    ]
    return columns_of("discounted", columns.observed_at, columns.instance_types, rows)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_best_plan_on_something_is_that_of_a_catalogue_with_nothing_else(seed: int) -> None:
    job, columns = drawn(seed)
    found, about = asked(job, columns, something(columns, seed))
    machine = {each.name: each for each in columns.instance_types}
    rows = [
        each
        for each in columns.offers
        if about.named.has(machine[each.instance_type], each.provider, each.region, each.price_kind)
    ]
    alone = planned(job, columns_of("alone", columns.observed_at, columns.instance_types, rows))
    if about.verdict == "chosen":
        assert isinstance(found.chosen, Planned)
        assert isinstance(alone, Planned)
        assert alone.cost.expected == found.chosen.cost.expected
    elif isinstance(alone, Infeasible):
        assert about.verdict == "infeasible"
        assert isinstance(about.best, Infeasible)
        assert about.best.conflicts == alone.conflicts
    else:
        assert about.verdict == "worse"
        assert isinstance(about.best, Planned)
        assert about.best.cost == alone.cost
        assert isinstance(found.chosen, Planned)
        assert about.best.cost.expected >= found.chosen.cost.expected


@pytest.mark.parametrize("seed", SEEDS)
def test_at_the_break_even_price_it_wins_and_just_above_it_does_not(seed: int) -> None:
    job, columns = drawn(seed)
    found, about = asked(job, columns, something(columns, seed))
    if about.break_even is None or not isinstance(found.chosen, Planned):
        return
    each = about.break_even
    assert each.wins_at <= each.price
    for price, wins in ((each.wins_at, True), (each.wins_at + 1 + each.price // 1000, False)):
        if price < 1 or price > each.price:
            continue
        cheaper = repriced(columns, each.choice.offer, price)
        _, again = asked(job, cheaper, about.named.text)
        best = again.best
        assert isinstance(best, Planned)
        # To the micro-dollar that a price in whole micro-dollars can tell.
        if wins:
            assert best.cost.expected <= found.chosen.cost.expected + 1
        else:
            assert best.cost.expected > found.chosen.cost.expected


@pytest.mark.parametrize("seed", SEEDS)
def test_the_discount_told_is_just_enough(seed: int) -> None:
    job, columns = drawn(seed)
    found, about = asked(job, columns, something(columns, seed))
    if about.break_even is None or not isinstance(found.chosen, Planned) or about.verdict == "chosen":
        return
    target, percent = found.chosen.cost.expected, about.break_even.discount_percent
    for off, wins in ((percent * (1 + 1e-6) + 1e-4, True), (percent * 0.999 - 1e-3, False)):
        if 0 < off < 100:
            _, again = asked(job, discounted(columns, about, off), about.named.text)
            assert isinstance(again.best, Planned)
            assert (again.best.cost.expected <= target + 5) == wins


def test_some_drawn_questions_have_a_break_even_and_some_no_plan() -> None:
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


@pytest.mark.parametrize("seed", range(8))
def test_what_having_it_is_worth_is_what_its_lack_costs(seed: int) -> None:
    job, columns = free(seed)
    chosen = planned(job, columns)
    assert isinstance(chosen, Planned)
    kind = chosen.phases[0].choice.offer.price_kind
    found = why(job, columns, settings=SETTINGS, with_=kind)
    rows = [each for each in columns.offers if each.price_kind != kind]
    without = planned(job, columns_of("without", columns.observed_at, columns.instance_types, rows))
    assert found.about is not None
    assert found.about.verdict == "chosen"
    if isinstance(without, Planned):
        assert isinstance(found.about.without, Planned | Course)
        assert found.about.without.cost.expected == without.cost.expected
        assert without.cost.expected >= chosen.cost.expected
    else:
        assert not isinstance(found.about.without, Planned | Course)


@pytest.mark.parametrize("seed", range(8))
def test_extra_costs_by_part_add_up_to_the_extra_cost(seed: int) -> None:
    job, columns = drawn(seed)
    found, _ = asked(job, columns, something(columns, seed))
    shown = why_document(found, {}, version="test")["why"]
    extra = (shown["about"]["best"] or {}).get("extra")
    if extra is not None:
        parts = sum(round(float(amount) * 1e6) for amount in extra["breakdown"].values())
        assert parts == round(float(extra["usd"]) * 1e6)
    assert shown["summary"]
    assert shown["id"].startswith("why-")


def supply(columns: Columns, **more: object) -> Supply:
    return replace(Supply(columns=columns, owned=(), settings=SETTINGS), **more)  # type: ignore[arg-type]


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
    found = named(text, supply(columns), field="not")
    assert found.field == field
    if names is not None:
        assert tuple(n for n in found.names if "us-east-2" not in n) == names


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


def test_two_questions_at_once_are_refused() -> None:
    job, columns = drawn(5)
    with pytest.raises(UnusableInput, match="one of the two"):
        why(job, columns, settings=SETTINGS, not_="spot", with_="aws")


def test_what_the_snapshot_does_not_offer_is_said_to_be_absent() -> None:
    job, columns = drawn(5)
    found, about = asked(job, columns, "TPU-v6e")
    assert about.verdict == "absent"
    assert any("no offer of it" in said for said in summary(found))


def test_about_carbon_or_time_no_price_is_told() -> None:
    job, columns = free(2)
    for objective in ("carbon", "time"):
        aimed = replace(job, objective=objective)
        found = why(aimed, columns, settings=SETTINGS, not_=something(columns, 3))
        assert found.about is not None
        assert found.about.break_even is None
        assert not any("win" in said for said in summary(found))


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
def test_own_machines_are_named_in_every_way(name: str) -> None:
    job, columns = free(1)
    job = replace(job, constraints=replace(job.constraints, price_kinds=()))
    found = why(job, columns, owned=(BOX,), settings=SETTINGS, with_=name)
    assert found.about is not None
    assert found.about.verdict in {"chosen", "worse"}
    best = found.about.best
    assert isinstance(best, Planned)
    if found.about.named.field != "accelerator":
        assert best.phases[0].choice.instance_type.name == "our-box"


def test_constraints_that_name_own_machines_still_make_sense_without_them() -> None:
    job, columns = free(1)
    own = replace(job, constraints=replace(job.constraints, instance_types=("our-*",)))
    found = why(own, columns, owned=(BOX,), settings=SETTINGS, not_="aws")
    assert found.about is not None
    assert isinstance(found.about.best, Infeasible)
    assert ("constraints.instance_types",) in found.about.best.conflicts


def test_a_held_commitment_belongs_to_what_it_is_of() -> None:
    job, columns = free(1)
    offer = next(each for each in columns.offers if each.price_kind == "reserved_1y")
    held = HeldCommitment(
        provider=offer.provider,
        region=offer.region,
        instance_type=offer.instance_type,
        price_kind="reserved_1y",
        nodes=9,
    )
    settings = PlannerSettings(held=(held,))
    asking = replace(job, constraints=replace(job.constraints, price_kinds=("on_demand", "spot", "reserved_1y")))
    for text in ("spot", "reserved_1y"):
        found = why(asking, columns, settings=settings, with_=text)
        assert found.about is not None
        whole = plan(asking, columns, settings=settings)
        assert isinstance(found.chosen, Planned)
        assert isinstance(whole, Planned)
        assert found.chosen.cost == whole.cost
        if isinstance(found.about.best, Planned):
            assert found.about.best.phases[0].choice.offer.price_kind == text


def test_the_same_question_has_the_same_answer() -> None:
    job, columns = free(4)
    asked_at = replace(job, start=datetime(2026, 11, 21, tzinfo=UTC))
    answers = [
        why_document(why(asked_at, columns, settings=SETTINGS, not_="spot"), {}, version="test") for _ in range(2)
    ]
    assert answers[0] == answers[1]
