"""Conflicts and ways out are complete: against all subsets of requirements over every configuration."""

import random
from dataclasses import replace

import numpy as np
import pytest

from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.planner.candidates.job_requirements import BIT
from gpuplan.planner.explain.infeasibility import minimal_conflicts
from gpuplan.planner.model.job import REQUIREMENTS, Constraints, TrainingJob
from gpuplan.planner.model.outcome import NoPlan
from tests.planner.explain.by_hand import Weighed, minimal_sets, planned, same, weighed
from tests.planner.small_catalogues import DEVICES, random_columns, random_job

KINDS = ("on_demand", "spot", "reserved_1y")


def cornered(seed: int) -> tuple[TrainingJob, Columns]:
    """A job with requirements of every sort, tight enough that few or no configurations meet all."""
    draw = random.Random(seed)
    columns = random_columns(draw, offers=10)
    names = sorted({instance_type.name for instance_type in columns.instance_types})
    constraints = Constraints(
        max_phases=1,
        max_nodes=draw.choice((1, 2)),
        providers=draw.choice(((), ("aws",), ("gcp", "azure"))),
        accelerators=draw.choice(((), tuple(draw.sample(DEVICES, 3)))),
        instance_types=draw.choice(((), tuple(draw.sample(names, 3)))),
        regions=draw.choice(((), ("us-*", "eastus"), ("eu*",))),
        price_kinds=draw.choice(((), ("spot",), ("on_demand", "reserved_1y"))),
        max_accelerators=draw.choice((None, 4)),
        carbon_budget_kg=draw.choice((None, 0.05, 2.0)),
    )
    job = replace(
        random_job(draw),
        deadline_hours=draw.choice((None, 10 ** draw.uniform(-0.5, 1.5))),
        budget_usd=draw.choice((None, 10 ** draw.uniform(0, 2))),
        constraints=constraints,
    )
    return job, columns


def unconstrained(job: TrainingJob) -> TrainingJob:
    """The same job with every kind of price and all the nodes that ways out are looked for on."""
    nodes = 4 * job.constraints.max_nodes
    return replace(job, constraints=Constraints(max_nodes=nodes, price_kinds=KINDS, max_phases=1))


def broken(job: TrainingJob, columns: Columns, weighed: Weighed) -> set[str]:
    """The requirements that a configuration does not meet."""
    offer, limits = weighed.priced.offer, job.constraints
    machine = next(a for a in columns.instance_types if a.name == offer.instance_type)
    region = offer.region
    in_regions = any(region.startswith(glob.removesuffix("*")) for glob in limits.regions)
    misses = {
        "constraints.providers": bool(limits.providers) and offer.provider not in limits.providers,
        "constraints.accelerators": bool(limits.accelerators) and machine.accelerator not in limits.accelerators,
        "constraints.instance_types": bool(limits.instance_types) and machine.name not in limits.instance_types,
        "constraints.regions": bool(limits.regions) and not in_regions,
        "constraints.price_kinds": offer.price_kind not in (limits.price_kinds or ("on_demand", "spot")),
        "constraints.max_nodes": weighed.priced.nodes > limits.max_nodes,
        "constraints.max_accelerators": limits.max_accelerators is not None
        and weighed.priced.nodes * machine.devices > limits.max_accelerators,
        "constraints.carbon_budget_kg": limits.carbon_budget_kg is not None
        and not (weighed.kg is not None and weighed.kg <= limits.carbon_budget_kg),
        "deadline": job.deadline_hours is not None and weighed.priced.hours_at_confidence > job.deadline_hours,
        "budget_usd": job.budget_usd is not None and weighed.priced.usd > job.budget_usd,
    }
    return {name for name, missed in misses.items() if missed}


ALL = [
    "constraints.providers",
    "constraints.accelerators",
    "constraints.instance_types",
    "constraints.regions",
    "constraints.price_kinds",
    "constraints.max_nodes",
    "constraints.max_accelerators",
    "constraints.carbon_budget_kg",
    "deadline",
    "budget_usd",
]


@pytest.mark.slow(reason="30 cases")
@pytest.mark.parametrize("seed", range(30))
def test_every_minimal_conflict_is_found_and_nothing_else(seed: int) -> None:
    job, columns = cornered(seed)
    every = weighed(unconstrained(job), columns)
    marks = [broken(job, columns, configuration) for configuration in every]
    outcome = planned(job, columns)
    if any(not mark for mark in marks):
        assert not isinstance(outcome, NoPlan)
        return
    assert isinstance(outcome, NoPlan)
    expected = minimal_sets(ALL, marks) if marks else {frozenset(("workload",))}
    assert {frozenset(names) for names in outcome.conflicts} == expected


@pytest.mark.slow(reason="30 cases")
@pytest.mark.parametrize("seed", range(30))
def test_every_least_way_out_is_found_at_its_least(seed: int) -> None:
    job, columns = cornered(seed)
    every = weighed(unconstrained(job), columns)
    marks = [broken(job, columns, configuration) for configuration in every]
    outcome = planned(job, columns)
    if not isinstance(outcome, NoPlan):
        return
    least = {frozenset(mark) for mark in marks if not any(other < mark for other in marks)}
    ways = {frozenset(relaxation.requirements): relaxation for relaxation in outcome.relaxations}
    # Answers hold the first eight, fewest requirements first.
    assert set(ways) <= least
    assert len(ways) == min(8, len(least))
    for names, way in ways.items():
        mine = [configuration for configuration, mark in zip(every, marks, strict=True) if mark == names]
        known = [configuration for configuration in mine if configuration.kg is not None]
        if "deadline" in names:
            pool = known if "constraints.carbon_budget_kg" in names and known else mine
            assert same(
                way.choice.hours.confident, min(configuration.priced.hours_at_confidence for configuration in pool)
            )
        elif "constraints.carbon_budget_kg" in names and known:
            assert way.carbon_kg is not None
            assert same(way.carbon_kg, min(configuration.kg for configuration in known if configuration.kg is not None))
        else:
            assert same(way.choice.cost.expected / 1e6, min(configuration.priced.usd for configuration in mine))


@pytest.mark.slow(reason="one long case")
def test_the_drawn_cases_have_conflicts_of_one_and_of_several_requirements() -> None:
    sizes = [
        len(names)
        for seed in range(30)
        if isinstance(outcome := planned(*cornered(seed)), NoPlan)
        for names in outcome.conflicts
    ]
    assert sizes.count(1) > 5
    assert sum(size > 1 for size in sizes) > 5


@pytest.mark.parametrize("seed", range(60))
def test_of_any_marks_every_minimal_set_that_hits_them_all_is_found(seed: int) -> None:
    draw = random.Random(seed)
    names = draw.sample(REQUIREMENTS, draw.randint(1, 8))
    sets = [set(draw.sample(names, draw.randint(1, len(names)))) for _ in range(draw.randint(1, 12))]
    marks = np.array([sum(int(BIT[name]) for name in names_of_set) for names_of_set in sets], np.uint32)
    conflicts = minimal_conflicts(marks, tuple(names))
    assert {frozenset(conflict) for conflict in conflicts} == minimal_sets(names, sets)
    assert len(conflicts) == len(set(conflicts))
    assert [len(conflict) for conflict in conflicts] == sorted(len(conflict) for conflict in conflicts)


def test_a_configuration_that_breaks_nothing_leaves_no_conflict() -> None:
    assert minimal_conflicts(np.array([0, 3], np.uint32), REQUIREMENTS) == ()
    assert minimal_conflicts(np.zeros(0, np.uint32), REQUIREMENTS) == ()


def test_ways_out_that_are_not_listed_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    unlisted = 0
    for seed in range(12):
        job, columns = cornered(seed)
        whole = planned(job, columns)
        if isinstance(whole, NoPlan) and len(whole.relaxations) > 1:
            with monkeypatch.context() as patch:
                patch.setattr("gpuplan.planner.explain.infeasibility.MOST_RELAXATIONS", 1)
                short = planned(job, columns)
            assert isinstance(short, NoPlan)
            assert len(short.relaxations) == 1
            assert any(
                warning.startswith(f"{len(whole.relaxations) - 1} more relaxations") for warning in short.warnings
            )
            unlisted += 1
        elif isinstance(whole, NoPlan):
            assert not any("more relaxations" in warning for warning in whole.warnings)
    assert unlisted > 1
