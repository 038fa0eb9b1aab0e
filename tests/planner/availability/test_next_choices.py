"""The capacity ladder of whole plans: against a loop over every offer and order that shares no code with it."""

import random
from dataclasses import replace
from itertools import permutations

import pytest

from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.model.capacity_answers import CapacityAnswers
from gpuplan.catalog.model.capacity_prior import capacity_prior
from gpuplan.catalog.model.offer import Offer
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.planner.model.job import Constraints, Preset, TrainingJob
from gpuplan.planner.model.outcome import Planned, PlannedLadder
from gpuplan.planner.model.settings import ExistingCommitment, PlannerSettings
from gpuplan.planner.planning import plan
from tests.planner.availability.test_capacity_ladder import Item, Shortage, expected_over_worlds
from tests.planner.least_cost import least_cost
from tests.planner.small_catalogues import START, Priced, allowed, every_configuration, random_columns
from tests.planner.spot_settings import replaced_at_once
from tests.planner.verify.answers import answer_of, checked, small_columns, tampered

SETTINGS = replaced_at_once()
NOTHING_ASKED = CapacityAnswers()


def job_of(draw: random.Random, *, nodes: int = 1) -> TrainingJob:
    """A job that many offers can run, often with a deadline that leaves time for some tries only."""
    return TrainingJob(
        name="ladder",
        workload=Preset(model="gpt2", tokens=10 ** draw.uniform(8, 9.5)),
        start=START,
        deadline_hours=draw.choice((None, 10 ** draw.uniform(0.3, 2.5))),
        constraints=Constraints(max_nodes=nodes, max_phases=1),
    )


def item_of(
    priced: Priced, columns: Columns, job: TrainingJob, number: int, live: CapacityAnswers = NOTHING_ASKED
) -> tuple[Item, tuple[str, str, str], Shortage]:
    """A configuration as a choice: its chance by the rule that the documentation states."""
    prior, offer = capacity_prior(), priced.offer
    machine = next(t for t in columns.instance_types if (t.provider, t.name) == (offer.provider, offer.instance_type))
    age = START.year - accelerators()[machine.accelerator].year
    name = "newest" if age <= 2 else "old" if age >= 5 else "current"
    is_spot = price_kinds()[offer.price_kind].interruptible
    row = (prior.spot if is_spot else prior.on_demand)[name]
    chance = row.chance * float(machine.accelerator_count) ** -row.size_exponent * priced.nodes**-row.node_exponent
    best_spot, best_other = prior.spot[name].chance, prior.on_demand[name].chance
    accelerator = {(t.provider, t.name): t.accelerator for t in columns.instance_types}
    for answer in live.answers:
        if (answer.provider, answer.region) == (offer.provider, offer.region) and (
            accelerator[answer.provider, answer.instance_type] == machine.accelerator
        ):
            if price_kinds()[answer.price_kind].interruptible:
                best_spot = max(best_spot, answer.probability)
            else:
                best_other = max(best_other, answer.probability)
    chance = _answered(live, offer, priced.nodes, chance)
    short_spot = prior.shared_share * (1 - best_spot)
    short = min(short_spot, prior.shared_share * (1 - best_other))
    given = chance / (1 - (short_spot if is_spot else short))
    position = 9
    if job.deadline_hours is not None:
        position = int((job.deadline_hours - priced.hours_at_confidence) * 3 + 1e-12) + 1
    item: Item = (round(priced.usd * 1e6), position, number, 0, is_spot, given)
    return item, (offer.provider, offer.region, machine.accelerator), (short_spot, short)


def _answered(live: CapacityAnswers, offer: Offer, nodes: int, otherwise: float) -> float:
    """The chance by the answer about just these machines; the best of the zones for a whole region."""
    alike = [
        row
        for row in live.answers
        if (row.provider, row.region, row.instance_type, row.price_kind, row.nodes)
        == (offer.provider, offer.region, offer.instance_type, offer.price_kind, nodes)
    ]
    for zone in (offer.zone, ""):
        for row in alike:
            if row.zone == zone:
                return row.probability
    return otherwise if offer.zone else max((row.probability for row in alike), default=otherwise)


def ladder_of(
    job: TrainingJob, columns: Columns, settings: PlannerSettings = SETTINGS, *, capacity: CapacityAnswers | None = None
) -> tuple[Planned, PlannedLadder] | None:
    """The plan and its ladder; None where there is no plan."""
    outcome = plan(job, columns, settings=settings, capacity=capacity)
    if not isinstance(outcome, Planned):
        return None
    assert outcome.ladder is not None
    return outcome, outcome.ladder


def least_by_loops(
    job: TrainingJob,
    columns: Columns,
    first: tuple[object, ...],
    live: CapacityAnswers = NOTHING_ASKED,
    *,
    any_first: bool = False,
    begins_on: tuple[object, ...] | None = None,
    moving: Priced | None = None,
) -> float | None:
    """The least expected micro-dollars of ladders that begin at `first`; None where there is no second choice.

    With `any_first` they may begin anywhere, or only in the pool `begins_on`, but end as those do. `moving` is a plan that
    changes machines, priced as a whole on its first ones: it is that `first`, and no later choice.
    """
    feasible = [priced for priced in every_configuration(job, columns, SETTINGS) if allowed(priced, job)]
    feasible += [] if moving is None else [moving]
    offers = list(dict.fromkeys(priced.offer.key for priced in feasible))
    parts = [item_of(priced, columns, job, offers.index(priced.offer.key), live) for priced in feasible]
    groups = list(dict.fromkeys(part[1] for part in parts))
    items: list[Item] = [(*item[:3], groups.index(group), *item[4:]) for item, group, _ in parts]
    shortages = [next(short for _, group, short in parts if group == of) for of in groups]

    def chance(i: int) -> float:
        short = shortages[items[i][3]]
        return items[i][5] * (1 - (short[0] if items[i][4] else short[1]))

    begin = next(i for i, priced in enumerate(feasible) if _pool(priced) == first and moving in (None, priced))
    best: float | None = None
    floor = 0.0
    for position in range(2, 6):
        able = [
            i for i, item in enumerate(items) if item[1] >= position and item[2] != items[begin][2] and chance(i) > 0
        ]
        if not able:
            break
        certain = max(min(chance(i), 0.9) for i in able)
        if position > 2 and certain < floor:
            break
        floor = certain if position == 2 else floor
        last = min((i for i in able if min(chance(i), 0.9) == certain), key=lambda i: items[i][0])
        begins = () if any_first else (begin,)
        left_out = (last, *begins, *(() if moving is None else (begin,)))
        middle = [i for i in range(len(items)) if i not in left_out and items[i][0] < items[last][0]]
        for size in range(min(position, 5) - len(begins)):
            for between in permutations(middle, size):
                order = (*begins, *between, last)
                if len({items[i][2] for i in order}) < len(order):
                    continue
                if begins_on is not None and _pool(feasible[order[0]]) != begins_on:
                    continue
                if any(items[i][1] < at for at, i in enumerate(order, 1)):
                    continue
                worth = expected_over_worlds(items, shortages, order)
                best = worth if best is None else min(best, worth)
    return best


def cheapest_pool(planned: Planned, ladder: PlannedLadder) -> tuple[object, ...]:
    """The pool of what is cheapest if obtained, with which the loops begin or which they leave out as the last choice."""
    return pool_of(planned.phases[0].choice.offer if ladder.cheapest is None else ladder.cheapest.choice.offer)


def _pool(priced: Priced) -> tuple[object, ...]:
    return pool_of(priced.offer)


def pool_of(offer: Offer) -> tuple[object, ...]:
    return (offer.provider, offer.region, offer.zone, offer.instance_type, offer.price_kind)


@pytest.mark.parametrize("seed", range(40))
def test_a_ladder_costs_no_more_than_the_best_that_begins_with_what_is_cheapest_if_obtained(seed: int) -> None:
    draw = random.Random(seed)
    columns, job = random_columns(draw, types=1, offers=7), job_of(draw)
    answer = ladder_of(job, columns)
    if answer is None:
        return
    planned, ladder = answer
    least = least_by_loops(job, columns, cheapest_pool(planned, ladder))
    if least is None:
        assert not ladder.steps
        return
    assert ladder.steps
    if ladder.cheapest is None:
        assert ladder.value * 1e6 == pytest.approx(least, rel=1e-9, abs=2.0)
    else:
        assert ladder.value * 1e6 < least
    assert ladder.bound <= ladder.value


def short_of_time(seed: int) -> tuple[Columns, TrainingJob]:
    """A small catalogue and a job that often leaves time for few tries."""
    draw = random.Random(seed)
    columns, job = random_columns(draw, types=1, offers=7), job_of(draw)
    hours = min((one.hours_at_confidence for one in every_configuration(job, columns, SETTINGS)), default=1.0)
    return columns, replace(job, deadline_hours=draw.choice((None, hours + draw.uniform(0.0, 1.5))))


#: Draws whose ladder of least expected cost begins with other machines than the cheapest.
OTHERS_FIRST = (136, 155, 207)


@pytest.mark.parametrize("seed", [*range(40, 77), *OTHERS_FIRST])
def test_a_plan_begins_with_the_first_of_the_best_of_every_offer_and_order(seed: int) -> None:
    """Any choice may come first: beside a loop that shares no code with the planner."""
    columns, job = short_of_time(seed)
    answer = ladder_of(job, columns)
    if answer is None or not answer[1].steps:
        return
    planned, ladder = answer
    least = least_by_loops(job, columns, cheapest_pool(planned, ladder), any_first=True)
    assert least is not None
    assert ladder.value * 1e6 == pytest.approx(least, rel=2e-6, abs=2.0)
    assert ladder.bound <= ladder.value
    pool, first = cheapest_pool(planned, ladder), pool_of(planned.phases[0].choice.offer)
    assert least_by_loops(job, columns, pool, any_first=True, begins_on=first) == pytest.approx(
        least, rel=2e-6, abs=2.0
    )
    assert planned.proof.certificate.objective_usd == pytest.approx(least_cost(planned) / 1e6, abs=1e-6)
    assert planned.cost.expected >= least_cost(planned)


@pytest.mark.parametrize("seed", OTHERS_FIRST)
def test_other_machines_than_the_cheapest_come_first_where_that_costs_less_on_average(seed: int) -> None:
    columns, job = short_of_time(seed)
    answer = ladder_of(job, columns)
    assert answer is not None
    planned, ladder = answer
    assert ladder.cheapest is not None
    begun = least_by_loops(job, columns, cheapest_pool(planned, ladder))
    assert begun is not None
    assert ladder.value * 1e6 < begun
    assert planned.cost.expected > least_cost(planned)


@pytest.mark.parametrize("seed", range(30))
def test_every_next_choice_meets_the_requirements_after_the_tries_before_it(seed: int) -> None:
    draw = random.Random(500 + seed)
    columns = random_columns(draw, types=2, offers=20)
    job = replace(job_of(draw, nodes=4), budget_usd=draw.choice((None, 10 ** draw.uniform(0, 3))))
    answer = ladder_of(job, columns)
    if answer is None:
        return
    planned, ladder = answer
    pools = [phase.choice.offer for phase in planned.phases[:1]] + [step.choice.offer for step in ladder.steps]
    assert len({(o.provider, o.region, o.zone, o.instance_type, o.price_kind) for o in pools}) == len(pools) <= 5
    for number, step in enumerate(ladder.steps, 1):
        assert step.after_minutes == 20 * number
        assert 0 < step.chance_when_tried <= step.chance + 1e-12
        assert step.chance_band[0] <= step.chance <= step.chance_band[1]
        if job.deadline_hours is not None:
            assert step.choice.hours.confident + number / 3 <= job.deadline_hours + 1e-9
        if job.budget_usd is not None:
            assert step.choice.cost.expected / 1e6 <= job.budget_usd
    assert ladder.bound <= ladder.value


@pytest.mark.parametrize("objective", ["time", "carbon"])
def test_next_choices_follow_the_objective_of_the_job(objective: str) -> None:
    """A job for the least time tries fast machines next, not cheap ones."""
    draw = random.Random(8)
    columns = random_columns(draw, types=2, offers=24)
    job = replace(job_of(draw, nodes=3), objective=objective, deadline_hours=None)
    answer = ladder_of(job, columns)
    assert answer is not None
    planned, ladder = answer
    assert ladder.steps
    if objective == "time":
        hours = [planned.hours.confident, *(step.choice.hours.confident for step in ladder.steps)]
        assert hours == sorted(hours)


def test_paid_commitments_are_certain_and_need_no_next_choice() -> None:
    draw = random.Random(3)
    columns = random_columns(draw, types=2, offers=24)
    plain = ladder_of(job_of(draw), columns)
    assert plain is not None
    assert plain[1].steps
    offer = next(o for o in columns.offers if price_kinds()[o.price_kind].term_hours)
    held = ExistingCommitment(
        provider=offer.provider,
        region=offer.region,
        instance_type=offer.instance_type,
        price_kind=offer.price_kind,
        nodes=1,
    )
    answer = ladder_of(plain[0].job, columns, replace(SETTINGS, held=(held,)))
    assert answer is not None
    assert answer[1].chance == 1.0
    assert not answer[1].steps
    assert answer[1].cost == answer[0].cost.expected


def test_a_forged_chance_is_found() -> None:
    """The check reads the table of chances by itself."""
    draw = random.Random(21)
    columns = small_columns(draw, types=1, offers=14)
    job = job_of(draw)
    answer = answer_of(job, columns)
    assert answer["plan"]["capacity_ladder"]["next_choices"]
    assert not checked(answer, job, columns).wrong
    path = ("capacity_ladder", "next_choices", 0, "chance_when_tried")
    wrong = checked(tampered(answer, path, 0.5), job, columns).wrong
    assert any("chance_when_tried" in one.figure for one in wrong)
