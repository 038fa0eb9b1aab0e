"""The parts of the verification on their own: bounds that hold whatever the planner says, and rules by brute force."""

import math
import random
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.model.capacity_prior import capacity_prior
from gpuplan.catalog.model.data_tables import data_table
from gpuplan.catalog.model.interruption_rates import MOST_WAIT_LOG_SPREAD, WAIT_LOG_SPREAD
from gpuplan.catalog.model.offer import InstanceType, Offer
from gpuplan.planner.model.job import Constraints, Preset, Training, TrainingJob
from gpuplan.planner.verify.configuration_enumeration import node_counts
from gpuplan.planner.verify.configuration_survey import slope, surveyed
from gpuplan.planner.verify.field_coverage import FieldCoverage
from gpuplan.planner.verify.infeasibility_check import minimal_hitting_sets
from gpuplan.planner.verify.offer_groups import Machine, OfferGroup
from gpuplan.planner.verify.phase_figures import GIB, least_states_gib, states_floor
from gpuplan.planner.verify.plan_check import least_usd
from gpuplan.planner.verify.standby_check import OF_ROUNDED
from gpuplan.planner.verify.submitted_plan import SubmittedPlan
from gpuplan.planner.verify.verification_context import Context, context_of
from gpuplan.planner.verify.wall_clock_hours import NEVER_HOURS, interval_hours_of, probability_by, quantile, wall_hours
from gpuplan.planner.workload import work_of
from tests.planner.plain_setup import plain_setup_hours
from tests.planner.small_catalogues import OBSERVED, START, random_job
from tests.planner.verify.answers import SETTINGS, answer_of, checked, small_columns, snapshot_columns, tampered

#: Equally likely deviations of an estimate.
ERRORS = np.array([NormalDist().inv_cdf((number + 0.5) / 2000) for number in range(2000)])
MARKS = st.sets(st.frozensets(st.sampled_from("abcde"), min_size=0, max_size=4), max_size=6)


@given(MARKS)
def test_minimal_conflicts_are_those_of_brute_force(marks: set[frozenset[str]]) -> None:
    sets = [frozenset(names) for size in range(6) for names in combinations("abcde", size)]
    hitting = [names for names in sets if marks and all(mark & names for mark in marks)]
    minimal = {tuple(sorted(names)) for names in hitting if not any(other < names for other in hitting)}
    assert minimal_hitting_sets(marks, list("abcde")) == minimal


def a_machine(**changes: object) -> Machine:
    type_ = InstanceType(
        provider="aws",
        name="one",
        accelerator="H100-80GB-SXM",
        accelerator_count=Fraction(8),
        vcpus=96.0,
        network_gbps=400.0,
        clusters=True,
        source="test",
    )
    return Machine.of(replace(type_, **changes), 1 << 30)  # type: ignore[arg-type]


@given(st.integers(1, 4096))
def test_every_whole_node_count_is_enumerated_and_slices_at_their_size(most: int) -> None:
    assert list(node_counts(a_machine(), most)) == list(range(1, most + 1))
    assert list(node_counts(a_machine(clusters=False), most)) == [1]
    assert list(node_counts(a_machine(fixed_nodes=64), most)) == ([64] if most >= 64 else [])


@hypothesis_settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_hours_and_costs_of_a_sweep_are_those_of_the_published_formulas(seed: int) -> None:
    draw = random.Random(seed)
    columns, job = small_columns(draw, types=1), random_job(draw)
    job = replace(job, deadline_hours=draw.choice((None, 50.0)), constraints=replace(job.constraints, max_nodes=13))
    submitted_plan = SubmittedPlan(part="plan", body={}, job=job, start=START, settings=SETTINGS)
    context = context_of(submitted_plan, columns, ())
    for sweep in context.enumeration.sweeps(list(context.open_offers.offer_groups), 13):
        offer_group, place = sweep.offer_group, context.rates.place(sweep.offer_group.place)
        counts = node_counts(offer_group.machine, 13)
        runs = [nodes for nodes in counts if not context.estimator.row(offer_group.machine, nodes).reason]
        expected = [(nodes, _by_hand(context, offer_group, nodes)) for nodes in runs]
        ends = [(nodes, estimate) for nodes, estimate in expected if estimate is not None]
        assert sweep.nodes.tolist() == [nodes for nodes, _ in ends]
        for priced, (nodes, (median, confident)) in zip(sweep.every(), ends, strict=True):
            sigma = context.estimator.row(offer_group.machine, nodes).log_sigma
            rate, wait = _hazard(offer_group, nodes)
            waits = 1 + rate * wait
            setup = _setup(offer_group, nodes)
            paid = setup + median / waits * np.exp(sigma * ERRORS)
            billed = float(np.mean(_billed(offer_group, paid)))
            hours = setup + median * math.exp(sigma**2 / 2)
            usd = nodes * billed * offer_group.micros / 1e6 + place.storage_per_hour * hours + place.egress
            assert priced.micros == pytest.approx(usd * 1e6, rel=2e-3, abs=2)
            assert priced.confident_hours == pytest.approx(confident, rel=1e-12)
            assert ("deadline" in priced.broken) == (job.deadline_hours is not None and confident > job.deadline_hours)


def _billed(offer_group: OfferGroup, paid: NDArray[np.float64]) -> NDArray[np.float64]:
    """Hours billed for hours paid."""
    if offer_group.kind.term_hours:
        return np.ceil(paid / offer_group.kind.term_hours - 1e-9) * offer_group.kind.term_hours
    step, least = offer_group.kind.billing_step_seconds / 3600, offer_group.kind.billing_minimum_seconds / 3600
    return np.maximum(np.ceil(paid / step - 1e-9) * step, least)


def _setup(offer_group: OfferGroup, nodes: int) -> float:
    machine = offer_group.machine.type
    return plain_setup_hours(machine.provider, machine.accelerator, offer_group.kind.name, nodes, SETTINGS)


def _hazard(offer_group: OfferGroup, nodes: int) -> tuple[float, float]:
    """Preemptions per hour of all nodes, and hours without machines after each: half of the traces' mean in so many zones."""
    mean = {row["zones"]: float(row["value"]) for row in data_table("spot_waits.csv") if row["name"] == "mean_wait"}
    name = offer_group.machine.type.accelerator
    age = capacity_prior().age_class(introduced=accelerators()[name].year, year=START.year)
    factor, exponent = {"old": (1.0, -0.269), "current": (1.3, 0.15), "newest": (2.2, 0.4)}[age]
    return offer_group.rate * nodes**0.357, mean[str(min(offer_group.zones, 6))] / 2 * factor * nodes**exponent


def _by_hand(context: Context, offer_group: OfferGroup, nodes: int) -> tuple[float, float] | None:
    """Hours of the work as estimated, preemption included (Daly 2006, equation 13), and hours in all at the asked confidence;
    None if it never ends.
    """
    row, z = context.estimator.row(offer_group.machine, nodes), quantile(context.submitted_plan.job.confidence)
    work, sigma, restart = row.hours_with_goodput, row.log_sigma, SETTINGS.restart_hours
    rate, wait = _hazard(offer_group, nodes)
    run = work
    if rate:
        write = context.rates.checkpoint_gb / SETTINGS.checkpoint_gbs / 3600 / nodes
        step = min(math.sqrt(2 * write / rate), work)
        if rate * (step + write + restart) > 700:
            return None
        up = work / step * math.exp(rate * restart) * math.expm1(rate * (step + write)) / rate
        run, step = up * (1 + rate * wait), step + write
        squared = restart**2 + restart * step + step**2 / 3 + 2 * wait * (restart + step / 2 + wait)
        between_zones = min(WAIT_LOG_SPREAD * rate * wait / (1 + rate * wait), MOST_WAIT_LOG_SPREAD)
        sigma = math.sqrt(sigma**2 + math.log1p(rate * up * squared / run**2) + between_zones**2)
    mean = run * math.exp(row.log_sigma**2 / 2)
    if not _setup(offer_group, nodes) + mean <= min(offer_group.kind.max_run_hours or math.inf, NEVER_HOURS):
        return None
    return run, _setup(offer_group, nodes) + run * math.exp(z * sigma)


def test_a_plan_is_verified_on_many_nodes_only_if_no_whole_node_count_costs_less() -> None:
    """Eleven nodes are the fewest that keep the deadline, and each node more costs its set-up."""
    machine = a_machine().type
    offer = Offer(
        provider="aws",
        region="us-east-1",
        instance_type=machine.name,
        price_kind="on_demand",
        usd_micros_per_hour=90_000_000,
        source="test",
        observed_at=OBSERVED,
    )
    columns = snapshot_columns([machine], [offer])
    job = TrainingJob(
        name="eleven",
        workload=Preset(model="llama-3-8b", tokens=2e9, global_batch_tokens=2**20),
        start=START,
        constraints=Constraints(max_nodes=13, max_phases=1),
    )
    context = context_of(SubmittedPlan(part="plan", body={}, job=job, start=START, settings=SETTINGS), columns, ())
    hours = {
        priced.nodes: priced.confident_hours for priced in context.enumeration.priced(context.open_offer_groups, 13)
    }
    job = replace(job, deadline_hours=hours[11] * (1 + 1e-9))
    answer = answer_of(job, columns)
    few = answer_of(replace(job, constraints=replace(job.constraints, max_nodes=11)), columns)
    assert few["plan"]["phases"][0]["nodes"] == 11
    assert float(few["plan"]["cost_usd"]["expected"]) < min(
        priced.micros / 1e6 for priced in context.enumeration.priced(context.open_offer_groups, 13) if priced.nodes > 11
    )
    refuted = any(finding.check == "bound" for finding in checked(answer, job, columns).wrong)
    assert refuted == (answer["plan"]["cost_usd"]["expected"] != few["plan"]["cost_usd"]["expected"])


def test_the_expected_hours_under_preemption_are_those_of_simulation() -> None:
    draw, work, write, restart, rate = random.Random(1), 40.0, 0.05, 0.2, 0.15
    interval = interval_hours_of(work, write, rate)
    runs = [_simulated(draw, work, write, restart, rate, interval) for _ in range(6000)]
    mean = sum(runs) / len(runs)
    deviation = math.sqrt(sum((run - mean) ** 2 for run in runs) / len(runs) / (len(runs) - 1))
    expected = float(wall_hours(np.array(work), np.array(write), restart, np.array(rate)))
    assert abs(expected - mean) < 4 * deviation + 0.005 * mean


def _simulated(draw: random.Random, work: float, write: float, restart: float, rate: float, interval: float) -> float:
    """One run: segments of `interval` hours and a checkpoint each, begun again after every failure and its restart."""
    hours, left = 0.0, work
    while left > 1e-9:
        segment = min(interval, left) + write * min(1.0, left / interval)
        failure = draw.expovariate(rate)
        if failure >= segment:
            hours, left = hours + segment, left - interval
            continue
        hours += failure
        pause = draw.expovariate(rate)
        while pause < restart:
            hours, pause = hours + pause, draw.expovariate(rate)
        hours += restart
    return hours


@given(st.floats(0.01, 0.99), st.floats(0.05, 1.0), st.floats(0.1, 1e4))
def test_the_probability_of_the_quantile_is_the_confidence(confidence: float, sigma: float, run: float) -> None:
    assert probability_by(run * math.exp(quantile(confidence) * sigma), run, sigma) == pytest.approx(
        confidence, rel=1e-6
    )


def test_the_slope_of_the_frontier_is_that_of_its_lower_hull() -> None:
    front = [(1.0, 10_000_000), (2.0, 9_000_000), (3.0, 4_000_000), (9.0, 1_000_000)]
    assert slope(front, 2.5) == pytest.approx(3.0)
    assert slope(front, 5.0) == pytest.approx(0.5)
    assert slope(front, 9.0) == 0.0
    assert slope(front, 0.5) == 0.0


@hypothesis_settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_no_configuration_beats_what_physics_allows(seed: int) -> None:
    draw = random.Random(seed)
    columns, job = small_columns(draw), random_job(draw)
    answer = answer_of(job, columns)
    assert job.start is not None
    part = "plan" if answer["outcome"] == "planned" else "infeasible"
    submitted_plan = SubmittedPlan(part=part, body=answer[part], job=job, start=job.start, settings=SETTINGS)
    context = context_of(submitted_plan, columns, ())
    offer_groups = [
        offer_group
        for offer_group in context.open_offers.offer_groups
        if not offer_group.reason and not offer_group.kind.term_hours
    ]
    for priced in context.enumeration.priced(offer_groups, job.constraints.max_nodes):
        least = least_usd(priced.offer_group, context.work, job.training, SETTINGS.goodput)
        assert least <= priced.micros / 1e6


@hypothesis_settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(("full", "lora", "qlora")), st.sampled_from(("mixed", "pure_bf16")))
def test_every_peak_holds_at_least_the_states_of_its_layout(seed: int, method: str, states: str) -> None:
    draw = random.Random(seed)
    columns, job = small_columns(draw), random_job(draw)
    training = Training(method=method, states=states, optimizer=draw.choice(("adamw", "sgd", "lion")))
    work = work_of(job.workload, training)
    answer = answer_of(job, columns)
    part = "plan" if answer["outcome"] == "planned" else "infeasible"
    job = replace(job, training=training)
    context = context_of(
        SubmittedPlan(part=part, body=answer[part], job=job, start=START, settings=SETTINGS), columns, ()
    )
    for machine in {
        id(offer_group.machine): offer_group.machine for offer_group in context.open_offers.offer_groups
    }.values():
        for nodes in node_counts(machine, 4):
            row = context.estimator.row(machine, nodes)
            if not row.reason:
                assert least_states_gib(dict(row.layout), row.precision, work, training) <= row.peak_gib * (1 + 1e-9)


def test_the_survey_keeps_what_nothing_beats() -> None:
    draw = random.Random(2)
    columns, job = small_columns(draw, offers=30), random_job(draw)
    answer = answer_of(job, columns)
    part = "plan" if answer["outcome"] == "planned" else "infeasible"
    assert job.start is not None
    submitted_plan = SubmittedPlan(part=part, body=answer[part], job=job, start=job.start, settings=SETTINGS)
    context = context_of(submitted_plan, columns, ())
    sweeps = list(context.enumeration.sweeps(context.open_offer_groups, 4))
    every = [priced for sweep in sweeps for priced in sweep.every() if priced.broken <= {"deadline", "budget_usd"}]
    front = surveyed(sweeps).frontier()
    points = {(priced.confident_hours, priced.micros) for priced in every}
    beaten = {p for p in points if any(q != p and q[0] <= p[0] and q[1] <= p[1] for q in points)}
    assert set(front) == points - beaten


def test_a_figure_that_was_never_looked_at_fails_the_document() -> None:
    field_coverage = FieldCoverage({"known": 1, "unknown": {"deep": [2]}}, "plan")
    field_coverage.is_number("cost", ("known",), 1.0, "")
    field_coverage.close()
    assert [finding.figure for finding in field_coverage.wrong] == ["unknown.deep[0]"]


def test_a_plan_whose_frozen_weights_are_on_no_accelerator_is_not_verified() -> None:
    """What all accelerators hold together is counted without layouts: no sharding or parallelism makes weights go away."""
    columns = small_columns(random.Random(3))
    workload = Preset(model="gpt2-xl", tokens=1e8)
    job = TrainingJob(name="adapters", workload=workload, training=Training(method="lora"), start=START)
    answer = answer_of(job, columns)
    phase = answer["plan"]["phases"][0]
    assert checked(answer, job, columns).wrong == ()
    accelerators = phase["nodes"] * next(t.devices for t in columns.instance_types if t.name == phase["instance_type"])
    weights = (
        states_floor(work_of(workload, job.training), job.training, phase["precision"]).devices / GIB / accelerators
    )
    assert 0 < weights < phase["memory_gib_per_accelerator"]
    less = tampered(answer, ("phases", 0, "memory_gib_per_accelerator"), weights * 0.9)
    wrong = checked(less, job, columns).wrong
    assert any("do not fit on the accelerators" in one.why for one in wrong)


@pytest.mark.parametrize(
    ("offload", "device_bytes", "host_bytes"), [("none", 16, 0), ("optimizer", 2, 12), ("parameters", 0, 14)]
)
def test_what_is_offloaded_is_held_by_hosts(offload: str, device_bytes: int, host_bytes: int) -> None:
    training = Training(precision="bf16", offload=offload)
    work = work_of(Preset(model="llama-3-8b", tokens=1e9), training)
    floor = states_floor(work, training, "bf16")
    assert floor == pytest.approx((device_bytes * work.parameters, host_bytes * work.parameters))


def test_money_that_follows_from_rounded_figures_may_be_a_micro_dollar_off_and_other_money_may_not() -> None:
    coverage = FieldCoverage({"usd": "18.423592"}, "plan")
    coverage.is_money("cost", ("usd",), 18_423_591, "derived", relative=OF_ROUNDED)
    assert not coverage.wrong
    coverage.is_money("cost", ("usd",), 18_423_590, "derived", relative=OF_ROUNDED)
    coverage.is_money("cost", ("usd",), 18_423_591, "a sum")
    assert [finding.why for finding in coverage.wrong] == ["derived", "a sum"]
