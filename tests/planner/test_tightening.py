"""Tightening a requirement never makes a plan better, and never makes an infeasible job feasible.

A shorter deadline is an exception for plans with a standby (`never_better`).
"""

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.catalog.snapshots.embedded_snapshot import embedded_snapshot
from gpuplan.catalog.snapshots.offer_columns import Columns, columns_of
from gpuplan.planner import planning
from gpuplan.planner.model.job import Constraints, Explicit, Preset, TrainingJob
from gpuplan.planner.model.outcome import NoPlan, PhaseChoice, Planned
from gpuplan.planner.model.settings import PlannerSettings
from gpuplan.planner.planning import plan
from tests.planner.least_cost import least_cost
from tests.planner.small_catalogues import START, random_columns
from tests.planner.verify.answers import answer_of, checked

SETTINGS = PlannerSettings()
SEEDS = st.integers(0, 10**6)
PRESETS = (
    ("gpt2", "tokens", 8.0, 11.0),
    ("llama-3-8b", "tokens", 8.0, 11.5),
    ("mixtral-8x7b", "tokens", 8.0, 10.0),
    ("bert-large", "tokens", 8.0, 10.5),
    ("stable-diffusion-1.5", "samples", 5.0, 8.0),
    ("resnet-50", "samples", 6.0, 8.5),
)


class Unexplained(Exception):
    """There is no plan."""


def without_words(*_: object) -> NoPlan:
    raise Unexplained


def planned(job: TrainingJob, columns: Columns) -> Planned | None:
    """The plan of a job, or None: why there is none takes longer than the search, and no law here is about it."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(planning, "explain", without_words)
        try:
            outcome = plan(job, columns, settings=SETTINGS)
        except Unexplained:
            return None
    assert isinstance(outcome, Planned)
    return outcome


def objective(outcome: Planned | NoPlan | None) -> float:
    """What the job asked to be least if obtained, in the units in which plans are compared; inf where there is no plan.

    A plan that changes machines counts as more than its cost, since a change has to save something. Where the ladder begins
    with another choice, the law is about what is cheapest if obtained.
    """
    if not isinstance(outcome, Planned):
        return float("inf")
    if outcome.job.objective == "time":
        return round(outcome.hours.confident * 1e6)
    if outcome.job.objective == "carbon":
        return round(sum(phase.carbon_kg or 0.0 for phase in outcome.phases) * 1e6)
    moves = len(phases_if_obtained(outcome)) > 1
    return least_cost(outcome) / (1 - SETTINGS.least_saving_of_a_move_percent / 100 if moves else 1)


def phases_if_obtained(outcome: Planned) -> tuple[PhaseChoice, ...]:
    """The phases of the cheapest plan if obtained; those of the plan where that is on another single configuration."""
    changing = None if outcome.ladder is None else outcome.ladder.changing_machines
    return outcome.phases if changing is None else changing.phases


def tightened(draw: random.Random, job: TrainingJob, planned: Planned | None) -> TrainingJob:
    """The job with one requirement tighter, often just so that the plan itself no longer meets it."""
    limits = job.constraints
    first = planned.phases[0].choice if planned else None
    which = draw.choice(("nodes", "providers", "kinds", "regions", "phases", "budget", "deadline", "accelerators"))
    if which == "nodes":
        most = max(phase.choice.nodes for phase in planned.phases) if planned else limits.max_nodes
        fewer = draw.choice((max(1, most - 1), draw.randint(1, limits.max_nodes)))
        return replace(job, constraints=replace(limits, max_nodes=min(limits.max_nodes, fewer)))
    if which == "providers":
        left = [
            name for name in limits.providers or ("aws", "gcp", "azure") if not first or name != first.offer.provider
        ]
        return replace(job, constraints=replace(limits, providers=tuple(left or limits.providers)))
    if which == "kinds":
        left = [
            kind for kind in limits.price_kinds or ("on_demand", "spot") if not first or kind != first.offer.price_kind
        ]
        return replace(job, constraints=replace(limits, price_kinds=tuple(left or limits.price_kinds)))
    if which == "regions":
        return replace(job, constraints=replace(limits, regions=limits.regions or ("*us*",)))
    if which == "phases":
        return replace(job, constraints=replace(limits, max_phases=draw.randint(1, limits.max_phases)))
    if which == "accelerators":
        most = draw.randint(1, limits.max_accelerators or 8 * limits.max_nodes)
        return replace(job, constraints=replace(limits, max_accelerators=most))
    if which == "budget":
        usd = (planned.cost.expected - 1) / 1e6 if planned else (job.budget_usd or 1e4) / 2
        return replace(job, budget_usd=max(1e-6, min(job.budget_usd or float("inf"), usd)))
    hours = planned.hours.confident * draw.uniform(0.3, 1.0) if planned else (job.deadline_hours or 1e3) / 2
    return replace(job, deadline_hours=max(0.01, min(job.deadline_hours or float("inf"), hours)))


def drawn_job(draw: random.Random, *, most_nodes: tuple[int, ...]) -> TrainingJob:
    """A job of any size, with some requirements."""
    if draw.random() < 0.2:
        workload: Explicit | Preset = Explicit(total_flops=10 ** draw.uniform(17, 22), memory_gib=draw.uniform(2, 300))
    else:
        model, unit, least, most = draw.choice(PRESETS)
        workload = Preset(model=model, **{unit: 10 ** draw.uniform(least, most)})  # type: ignore[arg-type]
    return TrainingJob(
        name="drawn",
        workload=workload,
        start=START,
        deadline_hours=draw.choice((None, 10 ** draw.uniform(-0.5, 3))),
        budget_usd=draw.choice((None, None, 10 ** draw.uniform(1, 5))),
        confidence=draw.choice((0.5, 0.9, 0.95)),
        objective=draw.choice(("cost", "cost", "cost", "time", "carbon")),
        constraints=Constraints(
            max_nodes=draw.choice(most_nodes),
            max_phases=draw.choice((1, 2, 2)),
            price_kinds=draw.choice(((), ("on_demand",))),
        ),
    )


def never_better(job: TrainingJob, tighter: TrainingJob, outcome: Planned | None, columns: Columns) -> None:
    """The plan of the tighter job is no better than the `outcome` of the job.

    Spot is tried as long as the standby can still finish in time, also where an earlier handover would cost less. So a shorter
    deadline may make a plan with a standby cheaper. Its offers are then compared under the longer deadline.
    """
    after = planned(tighter, columns)
    if after is not None and tighter.deadline_hours != job.deadline_hours and has_standby(after):
        assert outcome is not None or job.budget_usd is not None, (job, tighter)
        used = tuple(dict.fromkeys(phase.choice.offer for phase in phases_if_obtained(after)))
        after = planned(job, columns_of("of the plan", columns.observed_at, columns.instance_types, used))
    gap = 0.0 if outcome is None else outcome.proof.certificate.gap
    assert objective(after) >= objective(outcome) * (1 - gap), (job, tighter)


def has_standby(outcome: Planned) -> bool:
    return any(phase.role == "standby" for phase in phases_if_obtained(outcome))


def never_better_when_tightened(job: TrainingJob, columns: Columns, draw: random.Random) -> None:
    outcome = planned(job, columns)
    never_better(job, tightened(draw, job, outcome), outcome, columns)


@settings(max_examples=40, deadline=None)
@given(SEEDS)
def test_no_plan_gets_better_over_a_small_catalogue(seed: int) -> None:
    draw = random.Random(seed)
    never_better_when_tightened(
        drawn_job(draw, most_nodes=(1, 4, 11, 13, 32, 37)), random_columns(draw, types=3, offers=16), draw
    )


def test_a_shorter_deadline_saves_nothing_where_waits_differ_between_zones() -> None:
    """The slow runs of a longer deadline wait longer, and waits are not paid."""
    draw = random.Random(101430)
    drawn, hours = drawn_job(draw, most_nodes=(1, 4, 11, 13, 32, 37)), 10 ** draw.uniform(-0.5, 3)
    job = replace(drawn, deadline_hours=hours, constraints=replace(drawn.constraints, price_kinds=()))
    columns = random_columns(draw, types=3, offers=16)
    outcome = planned(job, columns)
    assert outcome is not None
    tighter = replace(job, deadline_hours=hours / 2)
    after = planned(tighter, columns)
    assert after is not None
    assert has_standby(after)
    assert has_standby(outcome)
    assert objective(after) >= objective(outcome)
    never_better(job, tighter, outcome, columns)


@pytest.fixture(scope="module")
def embedded() -> Columns:
    snapshot = embedded_snapshot()
    return columns_of(snapshot.id, snapshot.observed_at, snapshot.instance_types, snapshot.offers)


@pytest.mark.slow(reason="one long case")
@settings(max_examples=10, deadline=None)
@given(seed=SEEDS)
def test_no_plan_gets_better_over_the_embedded_catalogue_with_its_slices(seed: int, embedded: Columns) -> None:
    draw = random.Random(seed)
    never_better_when_tightened(drawn_job(draw, most_nodes=(8, 19, 32, 33, 64, 512)), embedded, draw)


def test_a_job_that_fits_a_node_count_between_powers_of_two_is_planned_on_it(embedded: Columns) -> None:
    job = TrainingJob(
        name="between",
        workload=Preset(model="stable-diffusion-1.5", samples=406_000),
        start=START,
        deadline_hours=0.28766,
        constraints=Constraints(max_nodes=32, price_kinds=("on_demand", "spot")),
    )
    outcome = plan(job, embedded, settings=SETTINGS)
    fewer = plan(replace(job, constraints=replace(job.constraints, max_nodes=11)), embedded, settings=SETTINGS)
    assert isinstance(outcome, Planned)
    assert isinstance(fewer, Planned)
    assert outcome.cost.expected <= fewer.cost.expected
    affordable = replace(job, budget_usd=fewer.cost.expected / 1e6)
    assert isinstance(plan(affordable, embedded, settings=SETTINGS), Planned)


@pytest.mark.slow(reason="one long case")
def test_a_frontier_of_more_than_a_thousand_points_is_verified(embedded: Columns) -> None:
    job = drawn_job(random.Random(378), most_nodes=(1024,))
    answer = answer_of(job, embedded)
    assert len(answer["plan"]["frontier"]) > 1000
    assert checked(answer, job, embedded).wrong == ()
