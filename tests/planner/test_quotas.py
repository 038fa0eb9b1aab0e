"""Single plans keep to known quotas, say what a larger one would save, and name one that is in the way."""

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.planner.model.job import TrainingJob
from gpuplan.planner.model.outcome import NoPlan, Planned
from gpuplan.planner.model.quota import IGNORE, ON_DEMAND, RESPECT, SPOT, Quota
from gpuplan.planner.planning import plan
from tests.planner.spot_settings import replaced_at_once
from tests.planner.test_tightening import drawn_job, objective
from tests.planner.verify.answers import answer_of, checked, small_columns


def drawn_quotas(draw: random.Random, columns: Columns) -> tuple[Quota, ...]:
    """Up to three quotas on machines and places that occur."""
    quotas = []
    for _ in range(draw.randint(1, 3)):
        type_ = draw.choice(columns.instance_types)
        regions = [region for provider, region in columns.regions if provider == type_.provider]
        what = draw.choice(("", "instance_type", "accelerator"))
        count, counts_vcpus = float(draw.choice((0, 4, 8, 24, 96, 400))), draw.random() < 0.5
        quotas.append(
            Quota(
                provider=type_.provider,
                region=draw.choice(("", *regions)),
                price_kind=draw.choice(("", SPOT, ON_DEMAND)),
                instance_type=type_.name if what == "instance_type" else "",
                accelerator=type_.accelerator if what == "accelerator" else "",
                vcpus=count if counts_vcpus else None,
                accelerators=None if counts_vcpus else count,
            )
        )
    return tuple(quotas)


def smaller(draw: random.Random, quota: Quota) -> Quota:
    part = draw.choice((0.0, 0.5, 0.9))
    if quota.vcpus is not None:
        return replace(quota, vcpus=float(int(quota.vcpus * part)))
    return replace(quota, accelerators=float(int((quota.accelerators or 0) * part)))


def in_use(outcome: Planned, quota: Quota) -> list[float]:
    """The units of a quota that each phase uses, counted here."""
    used = []
    for phase in outcome.phases:
        choice = phase.choice
        offer, type_ = choice.offer, choice.instance_type
        spot = offer.price_kind == "spot"
        if (
            offer.provider == quota.provider
            and quota.region in ("", offer.region)
            and quota.instance_type in ("", type_.name)
            and quota.accelerator in ("", type_.accelerator)
            and quota.price_kind in ("", SPOT if spot else ON_DEMAND)
        ):
            per_node = type_.accelerator_count if quota.vcpus is None else type_.vcpus
            used.append(choice.nodes * float(per_node or float("inf")))
    return used


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6))
def test_a_smaller_quota_never_makes_a_plan_better_and_every_plan_keeps_to_it(seed: int) -> None:
    draw = random.Random(seed)
    columns = small_columns(draw)
    job, quotas = drawn_job(draw, most_nodes=(1, 4, 13, 32)), drawn_quotas(draw, columns)
    none, some = replaced_at_once(), replaced_at_once(quotas=quotas)
    less = replaced_at_once(quotas=(smaller(draw, quotas[0]), *quotas[1:]))
    outcomes = [plan(job, columns, settings=assumed) for assumed in (none, some, less)]
    gaps = [outcome.proof.certificate.gap if isinstance(outcome, Planned) else 0.0 for outcome in outcomes]
    for looser, tighter, gap in zip(outcomes, outcomes[1:], gaps, strict=False):
        assert objective(tighter) >= objective(looser) * (1 - gap), (job, quotas)
    for outcome, assumed in zip(outcomes[1:], (some, less), strict=True):
        if isinstance(outcome, Planned):
            for quota in assumed.quotas:
                assert all(units <= quota.limit for units in in_use(outcome, quota)), (outcome.phases, quota)
    ignored = plan(replace(job, constraints=replace(job.constraints, quotas=IGNORE)), columns, settings=less)
    assert objective(ignored) == objective(outcomes[0])


@pytest.mark.slow(reason="30 verifications")
@pytest.mark.parametrize("seed", range(30))
def test_answers_under_quotas_are_verified(seed: int) -> None:
    draw = random.Random(seed)
    columns = small_columns(draw)
    job, assumed = drawn_job(draw, most_nodes=(1, 4, 13)), replaced_at_once(quotas=drawn_quotas(draw, columns))
    answer = answer_of(job, columns, settings=assumed)
    assert checked(answer, job, columns, settings=assumed).wrong == ()


def first_limited(columns_seed: int) -> tuple[TrainingJob, Columns, Planned, Quota]:
    """A plan on one configuration, and a quota that is one node too small for it."""
    draw = random.Random(columns_seed)
    columns = small_columns(draw)
    job = replace(drawn_job(draw, most_nodes=(13,)), objective="cost", budget_usd=None, deadline_hours=None)
    planned = plan(job, columns, settings=replaced_at_once())
    assert isinstance(planned, Planned)
    choice = planned.phases[0].choice
    short = (choice.nodes - 1) * choice.instance_type.accelerator_count
    return job, columns, planned, Quota(provider=choice.offer.provider, accelerators=float(short), code="L-1")


def test_a_larger_quota_is_named_with_what_it_saves() -> None:
    job, columns, planned, quota = first_limited(1)
    limited = plan(job, columns, settings=replaced_at_once(quotas=(quota,)))
    assert isinstance(limited, Planned)
    saved = limited.cost.expected - planned.cost.expected
    choice = planned.phases[0].choice
    units = choice.nodes * choice.instance_type.accelerator_count
    sentence = next(action for action in limited.actions if "would save" in action)
    assert sentence.startswith(f"a quota of {units:,g} accelerators of L-1 in {choice.offer.provider} ")
    assert f"would save ${saved / 1e6:,.2f}"[:-1] in sentence
    enough = replace(quota, accelerators=float(units))
    again = plan(job, columns, settings=replaced_at_once(quotas=(enough,)))
    assert isinstance(again, Planned)
    assert again.cost == planned.cost
    assert not any("quota" in action for action in again.actions)
    assert any("quota" in action for action in planned.actions)


def test_a_quota_that_leaves_no_plan_is_the_requirement_in_the_way() -> None:
    job, columns, planned, _ = first_limited(1)
    providers = {type_.provider for type_ in columns.instance_types}
    closed = replaced_at_once(quotas=tuple(Quota(provider=name, accelerators=0.0) for name in sorted(providers)))
    refused = plan(job, columns, settings=closed)
    assert isinstance(refused, NoPlan)
    assert refused.conflicts == (("constraints.quotas",),)
    (way,) = [way for way in refused.relaxations if way.requirements == ("constraints.quotas",)]
    assert (way.asked, way.needed) == (("known",), ("ignore",))
    assert way.choice.cost.expected == planned.cost.expected
    assert refused.rejected["over constraints.quotas at every node count"] > 0
    answer = answer_of(job, columns, settings=closed)
    assert checked(answer, job, columns, settings=closed).wrong == ()


def test_a_plan_that_does_not_keep_to_a_quota_is_not_verified() -> None:
    job, columns, _, quota = first_limited(1)
    answer = answer_of(job, columns)
    wrong = checked(answer, job, columns, settings=replaced_at_once(quotas=(quota,))).wrong
    assert any("known quota" in one.why for one in wrong)


def test_respect_without_a_known_quota_is_refused() -> None:
    job, columns, _, quota = first_limited(1)
    respects = replace(job, constraints=replace(job.constraints, quotas=RESPECT))
    with pytest.raises(UnusableInput, match="no quota is known") as refusal:
        plan(respects, columns, settings=replaced_at_once())
    assert refusal.value.faults[0].path == ("constraints", "quotas")
    assert isinstance(plan(respects, columns, settings=replaced_at_once(quotas=(quota,))), Planned)
