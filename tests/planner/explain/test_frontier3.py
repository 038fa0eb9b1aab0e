"""Cost against time against carbon: against comparing all configurations with all, and the knee by its rule."""

import pytest

from catalog.columns import Columns
from planner.candidates.market import markets
from planner.explain.frontier3 import Frontier3, frontier3, of_known_carbon
from planner.job import TrainingJob
from planner.question import Question
from planner.workload import work_of
from tests.planner.explain.by_hand import SETTINGS, Weighed, drawn, same, weighed
from tests.planner.small_catalogues import allowed

SEEDS = range(15)
Measures = tuple[float, float, float]


def found(job: TrainingJob, columns: Columns) -> Frontier3:
    assert job.start is not None
    question = Question(
        job=job,
        work=work_of(job.workload, job.training),
        markets=markets(columns, (), SETTINGS, job.start),
        start=job.start,
        settings=SETTINGS,
    )
    return frontier3(job, of_known_carbon(question))


def measures(every: list[Weighed]) -> list[Measures]:
    return [(each.priced.hours_kept, each.priced.usd, each.kg) for each in every if each.kg is not None]


def beats(one: Measures, other: Measures) -> bool:
    """Whether one is clearly no worse in all and better in some, beyond what rounding to micro-dollars hides."""
    no_worse = all(a <= b * (1 + 1e-9) + 1e-9 for a, b in zip(one, other, strict=True))
    return no_worse and any(a < b * (1 - 1e-6) - 2e-6 for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("seed", SEEDS)
def test_no_configuration_of_known_carbon_beats_a_point_and_every_other_is_beaten_or_there(seed: int) -> None:
    job, columns = drawn(seed)
    every = measures(weighed(job, columns))
    front = found(job, columns)
    points = [(p.choice.hours.confident, p.choice.cost.expected / 1e6, p.carbon_kg) for p in front.points]
    for point in points:
        assert not any(beats(each, point) for each in every)
        assert any(all(map(same, each, point)) for each in every)
    for each in every:
        assert any(all(a <= b * (1 + 1e-9) + 3e-6 for a, b in zip(point, each, strict=True)) for point in points)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_knee_exceeds_the_best_of_all_three_by_the_least_factor(seed: int) -> None:
    job, columns = drawn(seed)
    front = found(job, columns)
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
    every = [each for each in weighed(job, columns) if each.kg is not None]
    for point in found(job, columns).points:
        same_ones = [
            each.priced
            for each in every
            if same(each.priced.hours_kept, point.choice.hours.confident)
            and same(each.priced.usd, point.choice.cost.expected / 1e6)
        ]
        assert point.within in {allowed(each, job) for each in same_ones}
