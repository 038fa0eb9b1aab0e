"""Small runs and zones that the tests share, and the slow, plain ways to price them."""

from functools import cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.spot_policy.run_parameters import Place, SpotTerms
from gpuplan.planner.spot_policy.zone_availability import ZoneChain, two_state

STEP = 0.25


def terms(
    *,
    work: float = 2.0,
    deadline: float = 3.5,
    changeover: float = 0.25,
    prices: tuple[float, ...] = (0.3,),
    speeds: tuple[float, ...] = (),
    move_usd: float = 0.0,
    move_hours: float = 0.0,
    every: float = 0.0,
) -> SpotTerms:
    size = len(prices) + 1
    speeds = speeds or (1.0,) * len(prices)

    def table(value: float) -> tuple[tuple[float, ...], ...]:
        # On-demand stands beside the first place.
        regions = [*range(size - 1), 0]
        return tuple(tuple(value * (a != b) for b in regions) for a in regions)

    return SpotTerms(
        work_hours=work,
        deadline_hours=deadline,
        step_hours=STEP,
        changeover_hours=changeover,
        on_demand_usd_per_hour=1.0,
        places=tuple(Place(name=f"zone-{i}", usd_per_hour=prices[i], speed=speeds[i]) for i in range(size - 1)),
        move_hours=table(move_hours),
        move_usd=table(move_usd),
        checkpoint_every_hours=every,
    )


def chain(up: float = 1.0, down: float = 0.7) -> ZoneChain:
    return two_state(mean_up_hours=up, mean_down_hours=down, step_hours=STEP)


def synthetic(runs: int, steps: int, zones: int, seed: int, up: float = 1.0, down: float = 0.7) -> NDArray[np.bool_]:
    """Availability drawn from `chain(up, down)`: [runs, steps, zones]."""
    draw = np.random.default_rng(seed)
    moves, share = chain(up, down).moves, chain(up, down).availability
    state = draw.random((runs, zones)) < share
    result = []
    for _ in range(steps):
        result.append(state)
        state = draw.random((runs, zones)) < np.where(state, moves[1, 1], moves[0, 1])
    return np.stack(result, axis=1)


def least_usd(given: SpotTerms, up: NDArray[np.bool_]) -> float:
    """The least cost over all sequences of decisions for one known availability [steps, zones], by plain recursion."""
    steps, demand = len(up), len(given.places)

    @cache
    def best(t: int, work: float, place: int, home: int, to_go: float) -> float:
        if work <= 1e-9:
            return 0.0
        if t == steps:
            return float("inf")
        if 0 <= place < demand and not up[t, place]:
            place = -1
        costs = [best(t + 1, work, -1, home, 0.0)]
        for k in range(demand + 1):
            if k < demand and not up[t, k]:
                continue
            togo, cost = to_go, 0.0
            if k != place:
                togo, cost = given.moving_hours(home, k), given.moving_usd(home, k)
            price = given.places[k].usd_per_hour if k < demand else given.on_demand_usd_per_hour
            changing = min(togo, given.step_hours)
            left = work - (given.step_hours - changing)
            costs.append(cost + price * given.step_hours + best(t + 1, round(left, 9), k, k, round(togo - changing, 9)))
        return min(costs)

    return best(0, given.work_hours, -1, demand, 0.0)


def expected_usd(given: SpotTerms, chains: list[ZoneChain]) -> float:
    """The value of the best policy by plain recursion over every state, zones two-state, changeovers in whole steps."""
    step, demand = given.step_hours, len(given.places)
    patterns = list(product((0, 1), repeat=demand))

    @cache
    def best(left: int, work: int, place: int, home: int, to_go: int, pattern: tuple[int, ...]) -> float:
        if work <= 0:
            return 0.0
        if place < demand and place >= 0 and not pattern[place]:
            place = -1

        def after(work: int, place: int, home: int, to_go: int) -> float:
            rescue = to_go if place == demand else round(given.rescue_hours(home) / step)
            if work > 0 and work + rescue > left - 1:
                return float("inf")
            total = 0.0
            for follows in patterns:
                chance = 1.0
                for zone, zone_chain in enumerate(chains):
                    chance *= zone_chain.moves[pattern[zone], follows[zone]]
                total += chance * best(left - 1, work, place, home, to_go, follows)
            return total

        costs = [after(work, -1, home, 0)]
        for k in range(demand + 1):
            if k < demand and not pattern[k]:
                continue
            togo, cost = to_go, 0.0
            if k != place:
                togo, cost = round(given.moving_hours(home, k) / step), given.moving_usd(home, k)
            price = given.places[k].usd_per_hour if k < demand else given.on_demand_usd_per_hour
            done = 1 if togo == 0 else 0
            costs.append(cost + price * step + after(work - done, k, k, max(togo - 1, 0)))
        return min(costs)

    total = 0.0
    for pattern in patterns:
        chance = 1.0
        for zone, chain in enumerate(chains):
            chance *= chain.stationary[pattern[zone]]
        total += chance * best(
            round(given.deadline_hours / step), round(given.work_hours / step), -1, demand, 0, pattern
        )
    return total
