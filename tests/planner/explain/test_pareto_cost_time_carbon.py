"""Cost against time against carbon: against comparing all configurations with all, and the knee by its rule."""

import pytest

from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.planner.candidates.markets import markets
from gpuplan.planner.candidates.planning_problem import Question
from gpuplan.planner.explain.pareto_cost_time_carbon import CarbonFrontier, of_known_carbon, pareto_cost_time_carbon
from gpuplan.planner.model.job import TrainingJob
from gpuplan.planner.workload import work_of
from tests.planner.explain.by_hand import SETTINGS, Weighed, drawn, same, weighed
from tests.planner.small_catalogues import allowed

SEEDS = range(15)
Measures = tuple[float, float, float]


def frontier_of(job: TrainingJob, columns: Columns) -> CarbonFrontier:
    assert job.start is not None
    question = Question(
        job=job,
        work=work_of(job.workload, job.training),
        markets=markets(columns, (), SETTINGS, job.start),
        start=job.start,
        settings=SETTINGS,
    )
    return pareto_cost_time_carbon(job, of_known_carbon(question))


def measures(every: list[Weighed]) -> list[Measures]:
    return [
        (weighed.priced.hours_at_confidence, weighed.priced.usd, weighed.kg)
        for weighed in every
        if weighed.kg is not None
    ]


def beats(one: Measures, other: Measures) -> bool:
    """Whether one is clearly no worse in all and better in some, beyond what rounding to micro-dollars hides."""
    no_worse = all(a <= b * (1 + 1e-9) + 1e-9 for a, b in zip(one, other, strict=True))
    return no_worse and any(a < b * (1 - 1e-6) - 2e-6 for a, b in zip(one, other, strict=True))


@pytest.mark.slow(reason="15 cases")
@pytest.mark.parametrize("seed", SEEDS)
def test_no_configuration_of_known_carbon_beats_a_point_and_every_other_is_beaten_or_there(seed: int) -> None:
    job, columns = drawn(seed)
    every = measures(weighed(job, columns))
    front = frontier_of(job, columns)
    points = [(p.choice.hours.confident, p.choice.cost.expected / 1e6, p.carbon_kg) for p in front.points]
    for point in points:
        assert not any(beats(rival, point) for rival in every)
        assert any(all(map(same, rival, point)) for rival in every)
    for rival in every:
        assert any(all(a <= b * (1 + 1e-9) + 3e-6 for a, b in zip(point, rival, strict=True)) for point in points)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_knee_exceeds_the_best_of_all_three_by_the_least_factor(seed: int) -> None:
    job, columns = drawn(seed)
    front = frontier_of(job, columns)
    if front.knee is None:
        assert not front.points
        return
    points = [(p.choice.hours.confident, p.choice.cost.expected / 1e6, p.carbon_kg) for p in front.points]
    inside = [i for i, point in enumerate(front.points) if point.within] or list(range(len(points)))
    least = [min(points[i][axis] for i in inside) for axis in range(3)]
    factors = {i: max(points[i][axis] / least[axis] for axis in range(3)) for i in inside}
    assert front.knee in inside
    assert factors[front.knee] == pytest.approx(min(factors.values()), rel=1e-4)
    assert front.points[front.knee].factor == pytest.approx(factors[front.knee], rel=1e-4)
    assert front.among == len(inside)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_point_says_whether_it_keeps_to_deadline_and_budget(seed: int) -> None:
    job, columns = drawn(seed)
    every = [weighed for weighed in weighed(job, columns) if weighed.kg is not None]
    for point in frontier_of(job, columns).points:
        same_ones = [
            configuration.priced
            for configuration in every
            if same(configuration.priced.hours_at_confidence, point.choice.hours.confident)
            and same(configuration.priced.usd, point.choice.cost.expected / 1e6)
        ]
        assert point.within in {allowed(same_one, job) for same_one in same_ones}
