"""Plans on spot with a standby: never dearer than without, the best of all pairs, and whole in what they say."""

import random
from dataclasses import fields, replace
from functools import cache
from itertools import product

import numpy as np
import pytest

from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.model.egress_rates import egress_tiers
from gpuplan.catalog.model.interruption_rates import MOST_WAIT_LOG_SPREAD, WAIT_LOG_SPREAD
from gpuplan.catalog.model.offer import Offer
from gpuplan.catalog.snapshots.offer_columns import Columns, columns_of
from gpuplan.planner.candidates.candidate_set import Candidates, candidates
from gpuplan.planner.candidates.markets import markets
from gpuplan.planner.candidates.planning_problem import Question
from gpuplan.planner.cost.preemption_and_checkpoint_interval import checkpoint_gb
from gpuplan.planner.model.job import Constraints, TrainingJob
from gpuplan.planner.model.outcome import NoPlan, Planned, StandbyChoice
from gpuplan.planner.model.wire import wire
from gpuplan.planner.planning import plan
from gpuplan.planner.serialization.plan_document import answer_body
from gpuplan.planner.strategies.phased import phase_search
from gpuplan.planner.strategies.schedule import phase
from gpuplan.planner.strategies.standby.contingency_standby import fallback
from gpuplan.planner.strategies.standby.spot_standby_pairs import Pairs, StandbyTerms
from gpuplan.planner.strategies.standby.standby_pairs import Offers, StandbyPlan, search_standby_plans, starts
from gpuplan.planner.strategies.standby.standby_switching import outcomes
from gpuplan.planner.strategies.strategy_choice import cheapest_schedule
from gpuplan.planner.workload import work_of
from tests.planner.plain_setup import plain_setup_hours
from tests.planner.small_catalogues import OBSERVED, PLACES, START, random_columns, random_job, random_types
from tests.planner.spot_settings import replaced_at_once
from tests.planner.strategies.standby.standby_cases import standby_run

SETTINGS = replaced_at_once(spot_wait_hours=1.0, least_saving_of_a_move_percent=0.0)
SEEDS = range(16)


def found_for(job: TrainingJob, columns: Columns) -> Candidates:
    return candidates(
        Question(
            job=job,
            work=work_of(job.workload, job.training),
            markets=markets(columns, (), SETTINGS, START),
            start=START,
            settings=SETTINGS,
        )
    )


def a_catalogue(draw: random.Random) -> Columns:
    """Machines at prices as they are: on demand much alike everywhere, spot at about a third of that."""
    types, offers = random_types(draw, 2), []
    for instance_type in types:
        usd = float(instance_type.accelerator_count) * draw.uniform(1.0, 4.0)
        for provider, region in PLACES:
            if provider != instance_type.provider:
                continue
            for kind, ratio in (("on_demand", 1.0), ("spot", draw.uniform(0.25, 0.45))):
                offer = Offer(
                    provider=provider,
                    region=region,
                    zone="",
                    instance_type=instance_type.name,
                    price_kind=kind,
                    usd_micros_per_hour=round(usd * ratio * draw.uniform(0.9, 1.1) * 1e6),
                    interruptions_per_hour=draw.choice((0.1, 0.3)) if kind == "spot" else None,
                    observed_at=OBSERVED,
                    source="drawn",
                )
                offers.append(offer)
    return columns_of("drawn", OBSERVED, types, offers)


@cache
def a_case(seed: int) -> tuple[TrainingJob, Columns, Candidates]:
    """A job whose deadline is not far beyond what steady machines need."""
    draw = random.Random(f"net/{seed}")
    while True:
        columns = a_catalogue(draw) if seed % 3 else random_columns(draw, types=3, offers=30)
        job = replace(random_job(draw), budget_usd=None, confidence=draw.choice((0.5, 0.9)), deadline_hours=None)
        job = replace(job, constraints=Constraints(max_nodes=draw.choice((1, 4))))
        table = found_for(job, columns).table
        steady = table.cost_breakdown.hours_at_confidence[table.cluster_rate == 0]
        if len(steady) and (table.cluster_rate > 0).any() and 5 < steady.min() < 500:
            job = replace(job, deadline_hours=float(f"{steady.min() * draw.uniform(1.02, 1.5) + 0.5:.9g}"))
            return job, columns, found_for(job, columns)


def pair_of(candidates: Candidates, k: int, m: int) -> Pairs | None:
    """Rows k and m of the table as a pair, figure by figure; None where a run cannot go from one to the other."""
    table, question = candidates.table, candidates.question
    settings, snapshot, rows = question.settings, question.markets[0].snapshot, candidates.estimated[0].estimates
    offers = [question.markets[0].columns.offer(int(snapshot.original[table.place[i]])) for i in (k, m)]
    chips = [
        next(t for t in question.markets[0].columns.instance_types if t.name == offer.instance_type).accelerator
        for offer in offers
    ]
    stacks = [accelerators()[name].stack for name in chips]
    precisions = [rows.precision[int(table.row[i])] for i in (k, m)]
    if stacks[0] != stacks[1] or precisions[0] != precisions[1]:
        return None
    gb = checkpoint_gb(question.work, question.job.training)
    places = [(offer.provider, offer.region) for offer in offers]
    far = places[0] != places[1]
    regions = [int(snapshot.region_index[table.place[i]]) for i in (k, m)]
    storage, data = candidates.costs[0].storage_usd_per_hour, candidates.costs[0].egress_usd
    moving = egress_tiers(*places[0], *places[1]).egress_usd(gb) + data[regions[1]] if far else 0.0
    one, nodes = np.ones(1), [int(table.nodes[i]) for i in (k, m)]
    # Waits of an hour after each preemption differ between zones.
    between_zones = min(WAIT_LOG_SPREAD * table.cluster_rate[k] / (1 + table.cluster_rate[k]), MOST_WAIT_LOG_SPREAD)
    setup = [
        plain_setup_hours(offer.provider, chip, offer.price_kind, count, settings)
        for offer, chip, count in zip(offers, chips, nodes, strict=True)
    ]
    return Pairs(
        spot=np.array([k]),
        setup_hours=setup[0] * one,
        work_hours=rows.hours_with_goodput[int(table.row[k])] * one,
        log_sigma=rows.log_sigma[int(table.row[k])] * one,
        wall_log_sigma=np.hypot(rows.log_sigma[int(table.row[k])], between_zones) * one,
        rate=table.cluster_rate[k] * one,
        wait_hours=1.0 * one,
        checkpoint_hours=gb / settings.checkpoint_gbs / 3600 / nodes[0] * one,
        usd_per_hour=nodes[0] * offers[0].usd_micros_per_hour / 1e6 * one,
        storage_usd_per_hour=storage[regions[0]] * one,
        fixed_usd=data[regions[0]] * one,
        step_hours=one / 3600,
        minimum_hours=one / 60,
        standby=np.array([m]),
        standby_work_hours=rows.hours_with_goodput[int(table.row[m])] * one,
        standby_log_sigma=rows.log_sigma[int(table.row[m])] * one,
        standby_usd_per_hour=nodes[1] * offers[1].usd_micros_per_hour / 1e6 * one,
        standby_storage_usd_per_hour=storage[regions[1]] * one,
        standby_fixed_usd=moving * one,
        standby_step_hours=one / 3600,
        standby_minimum_hours=one / 60,
        changeover_hours=(setup[1] + far * gb / settings.move_gbs / 3600) * one,
    )


def terms_of(job: TrainingJob) -> StandbyTerms:
    assert job.deadline_hours is not None
    return StandbyTerms(
        deadline_hours=job.deadline_hours,
        confidence=job.confidence,
        restart_hours=SETTINGS.restart_hours,
    )


def by_brute_force(job: TrainingJob, candidates: Candidates) -> float:
    """The least cost of any late spot configuration with any standby, every pair priced exactly at moments' interval."""
    table, asked, least = candidates.table, terms_of(job), float("inf")
    assert job.deadline_hours is not None
    for k in np.flatnonzero(
        (table.cluster_rate > 0) & (table.cost_breakdown.hours_at_confidence > job.deadline_hours)
    ).tolist():
        for m in np.flatnonzero(table.cluster_rate == 0).tolist():
            pair = pair_of(candidates, k, m)
            if pair is None or float(pair.standby_work_hours[0]) > job.deadline_hours:
                continue
            seen = outcomes(pair, asked)
            # What moments put far above the best so far is left to them: they are within a few percent.
            if np.isfinite(seen.usd[0]) and seen.usd[0] < 1.1 * least:
                least = min(least, standby_run(pair, asked, float(seen.interval_hours[0])).usd)
    return least


@pytest.mark.slow(reason="16 cases")
@pytest.mark.parametrize("seed", SEEDS)
def test_the_pair_found_is_the_cheapest_of_all_pairs(seed: int) -> None:
    job, _, result = a_case(seed)
    standby_plan, least = search_standby_plans(result, float("inf")).best, by_brute_force(job, result)
    assert (standby_plan is None) == (least == float("inf"))
    if standby_plan is not None:
        # The interval of the pair that is found is then chosen exactly, which moments only come near.
        assert least * (1 - 0.05) <= standby_plan.pair.run.usd <= least * (1 + 1e-9)


@cache
def some_plans() -> list[tuple[TrainingJob, Columns, Planned]]:
    """The cases whose plan has a standby."""
    plans = []
    for seed in SEEDS:
        job, columns, _ = a_case(seed)
        outcome = plan(job, columns, settings=SETTINGS)
        if isinstance(outcome, Planned) and outcome.phases[-1].role == "standby":
            plans.append((job, columns, outcome))
    assert len(plans) > 3
    return plans


@pytest.mark.slow(reason="16 cases")
@pytest.mark.parametrize("seed", SEEDS)
def test_allowing_a_standby_never_makes_a_plan_dearer(seed: int) -> None:
    job, columns, _ = a_case(seed)
    without = plan(replace(job, constraints=replace(job.constraints, max_phases=1)), columns, settings=SETTINGS)
    outcome = plan(job, columns, settings=SETTINGS)
    if isinstance(without, NoPlan):
        return
    assert isinstance(outcome, Planned)
    assert outcome.cost.expected <= without.cost.expected
    assert len(without.phases) == 1
    assert without.fallback is None


@pytest.mark.slow(reason="one long case")
def test_a_plan_with_a_standby_adds_up() -> None:
    for job, _, outcome in some_plans():
        spot, standby = outcome.phases
        assert (spot.role, standby.role) == ("planned", "standby")
        assert spot.choice.cost.expected + standby.choice.cost.expected == outcome.cost.expected
        assert outcome.cost.p95 >= outcome.cost.expected
        assert outcome.deadline_probability is not None
        assert outcome.deadline_probability >= job.confidence
        assert job.deadline_hours is not None
        assert outcome.hours.confident <= job.deadline_hours
        assert standby.probability is not None
        assert 0 < standby.probability <= 1
        assert standby.switch_by_hours is not None
        assert 0 < standby.switch_by_hours < job.deadline_hours
        assert 0 <= standby.share <= 1
        assert outcome.proof.certificate.objective_usd == pytest.approx(outcome.cost.expected / 1e6, abs=2e-6)
        assert outcome.fallback is None
        without = next(alternative for alternative in outcome.alternatives if alternative.label == "without a move")
        assert without.extra > 0


@pytest.mark.slow(reason="one long case")
def test_an_interval_between_checkpoints_is_not_said_to_be_that_of_young_where_a_standby_may_ask_for_a_shorter_one() -> (
    None
):
    for _, _, outcome in some_plans():
        assert not any("Young/Daly" in assumption for assumption in outcome.assumptions)
        assert any("the best of Young's interval and its halves" in assumption for assumption in outcome.assumptions)


@pytest.mark.slow(reason="one long case")
def test_a_plan_says_how_waits_differ_between_zones_where_they_do_by_much() -> None:
    def is_stated(outcome: Planned | NoPlan) -> bool:
        assert isinstance(outcome, Planned)
        return any("they are not paid, and a run that waits long" in assumption for assumption in outcome.assumptions)

    job, columns, _ = next(case for case in some_plans() if is_stated(case[2]))
    assert not is_stated(plan(job, columns, settings=replace(SETTINGS, spot_wait_hours=0.0)))


@pytest.mark.slow(reason="one long case")
def test_the_document_says_who_stands_by_how_likely_and_until_when() -> None:
    for _, _, outcome in some_plans():
        spot, standby = wire(answer_body(outcome, {}, version="x"))["phases"]
        assert spot["role"] == "planned"
        assert "switch_by" not in spot
        assert standby["role"] == "standby"
        assert standby["switch_by"] > spot["starts_at"]
        assert 0 < standby["probability"] <= 1
        assert 0 <= standby["switch_share"] <= 1
        assert standby["moved"]["from"]["instance_type"] == spot["instance_type"]


@pytest.mark.slow(reason="one long case")
def test_a_standby_is_refused_that_cannot_keep_the_confidence() -> None:
    for job, columns, outcome in some_plans():
        standby = outcome.phases[1]
        sure = replace(job, confidence=0.9999999)
        again = search_standby_plans(found_for(sure, columns), float("inf")).best
        if again is not None:
            assert again.pair.run.in_time >= 0.9999999
            assert _standby_hours(again) < standby.hours_with_goodput or standby.log_sigma == 0


def _standby_hours(standby_plan: StandbyPlan) -> float:
    return float(standby_plan.columns.run.work_hours[standby_plan.standby])


def test_nothing_stands_by_without_a_deadline_or_leave_to_move() -> None:
    job, columns, _ = a_case(0)
    for other in (
        replace(job, deadline_hours=None),
        replace(job, constraints=replace(job.constraints, max_phases=1)),
        replace(job, objective="time"),
    ):
        assert search_standby_plans(found_for(other, columns), float("inf")).best is None


@pytest.mark.slow(reason="one long case")
def test_a_linear_model_of_phases_that_allows_nothing_as_cheap_is_explained() -> None:
    beaten_offers = 0
    for _, _, outcome in some_plans():
        certificate = outcome.proof.certificate
        for line in certificate.over:
            if "linear model" in line:
                least = float(line.split("$")[1].split()[0].replace(",", ""))
                beaten = least > certificate.objective_usd + 0.01
                assert ("only if the spot machines fall behind" in line) or not beaten
                beaten_offers += beaten
    assert beaten_offers


@pytest.mark.slow(reason="one long case")
def test_what_a_plan_with_a_standby_is_stated_to_cost_is_budget_enough_for_it() -> None:
    for job, columns, outcome in some_plans():
        again = plan(replace(job, budget_usd=outcome.cost.expected / 1e6), columns, settings=SETTINGS)
        assert isinstance(again, Planned)
        assert again.phases == outcome.phases


@pytest.mark.slow(reason="one long case")
def test_a_budget_below_every_pair_leaves_none() -> None:
    job, columns, outcome = some_plans()[0]
    tight = replace(job, budget_usd=outcome.cost.expected / 1e6 * 0.5)
    standby_plan = search_standby_plans(found_for(tight, columns), float("inf")).best
    assert standby_plan is None or standby_plan.pair.run.usd <= outcome.cost.expected / 1e6 * 0.5


def test_a_plan_on_spot_that_is_sure_enough_names_its_standby() -> None:
    named = 0
    for seed in SEEDS:
        job, columns, _ = a_case(seed)
        far = replace(job, deadline_hours=20 * (job.deadline_hours or 1.0))
        outcome = plan(far, columns, settings=SETTINGS)
        if not isinstance(outcome, Planned) or outcome.fallback is None:
            continue
        named += 1
        back = outcome.fallback
        assert outcome.phases[0].interruptions_per_hour > 0
        assert back.standby.interruptions_per_hour == 0
        assert far.deadline_hours is not None
        # Whoever has saved that share by then needs the rest of the time for the rest of the work.
        left = far.deadline_hours - back.switch_by_hours
        needed = back.ready_hours + (1 - back.switch_share) * back.standby.hours_with_goodput
        assert needed == pytest.approx(left, rel=1e-9) or back.switch_share == 0
        assert back.in_time >= far.confidence
    assert named > 3


@cache
def contingency_standbys() -> tuple[tuple[Pairs, StandbyTerms, int, StandbyChoice], ...]:
    """What is named on small catalogues: all pairs of the spot run, the terms, which of them it is, what is said of it."""
    all_named = []
    # Where waits differ between zones, only long deadlines leave a standby nothing to do.
    for seed, times in product(SEEDS, (1.0, 1.5, 3.0, 30.0, 100.0)):
        job, columns, _ = a_case(seed)
        result = found_for(replace(job, deadline_hours=times * (job.deadline_hours or 1.0)), columns)
        chosen = int(np.flatnonzero(result.table.cluster_rate > 0)[0])
        start, marks = starts(result, np.arange(len(result.table)) == chosen)[0]
        offers, named = Offers(result, marks, start), fallback(result, chosen, 0)
        if named is None:
            continue
        at = [phase(result, offers.columns.table, int(standby)) for standby in offers.standbys].index(named.standby)
        pairs = offers.offered.pairs(np.zeros(len(offers.standbys), np.int64), np.arange(len(offers.standbys)))
        beside = offers.beside_the_only_spot()
        assert all(np.array_equal(getattr(pairs, field.name), getattr(beside, field.name)) for field in fields(Pairs))
        all_named.append((pairs, offers.terms, at, named))
    return tuple(all_named)


@pytest.mark.slow(reason="one long case")
def test_no_standby_costs_less_beside_a_plan_than_the_one_it_names() -> None:
    for pairs, asked, at, _ in contingency_standbys():
        usd = outcomes(pairs, asked).usd
        # Hours are billed in whole steps, which decide nothing between standbys that are hardly ever called.
        assert usd[at] <= usd.min() * (1 + 1e-9) + float(pairs.usd_per_hour[0] * pairs.step_hours[0])
    assert 5 < sum(named.probability < 1e-9 for _, _, _, named in contingency_standbys()) < 55


def test_of_standbys_that_add_nothing_the_one_is_named_that_does_all_the_work_for_least() -> None:
    tied = 0
    for pairs, asked, at, _ in contingency_standbys():
        seen = outcomes(pairs, asked)
        idle = np.flatnonzero((seen.switch_probability == 0) & (seen.in_time == 1))
        if not len(idle) or seen.usd[at] < seen.usd[idle].min() - 1e-6:
            continue
        by_hour = pairs.standby_usd_per_hour + pairs.standby_storage_usd_per_hour
        all_usd = (pairs.changeover_hours + pairs.standby_work_hours) * by_hour + pairs.standby_fixed_usd
        assert all_usd[at] <= all_usd[idle].min() * (1 + 1e-12)
        tied += bool((all_usd[idle] > all_usd[at]).any())
    assert tied > 3


@pytest.mark.parametrize("seed", range(0, 16, 2))
def test_the_plan_is_the_same_whichever_of_both_searches_is_first(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    schedules = []
    for most_pairs in (-1, 10**9):
        monkeypatch.setattr(phase_search, "_MANY_PAIRS", most_pairs)
        best = cheapest_schedule(a_case(seed)[2], None)
        assert best is not None
        # Notes count the pairs that were compared.
        schedules.append(replace(best.schedule, notes=()))
    assert schedules[0] == schedules[1]
