"""The cheapest way to meet a deadline with machines that come and go: a stochastic dynamic programme.

State: n steps left, w steps of work left (at on-demand speed), a mode, and the state f of every zone's chain.
Modes: nothing runs and the data lies at place l; or place l runs with r steps of changeover to go. Place Z is
on-demand, which is always up. A decision at the start of a step sees which zones are up:

    V(n, w, m, f) = min over  wait:           E V(n-1, w, idle at l, f')
                              go to place k:  move_usd(l, k) + p_k h + E V(n-1, w, (k, c_lk - 1), f')     k up
                              stay, r > 0:    p_l h + E V(n-1, w, (l, r-1), f')                           l up
                              stay, r = 0:    p_l h + E V(n-1, w - speed_l, (l, 0), f')                   l up
    V(n, 0, ., .) = 0

A hard constraint keeps enough time for on-demand: after any decision but on-demand, w' + c_lZ <= n - 1; after
on-demand, w' + r' <= n - 1. So no policy in the table is ever late, whatever the zones do. The zones' chains are
assumed independent, so the expectation is one small product per zone. Changeovers are rounded up to whole steps.
Speeds other than 1 interpolate linearly between the two nearest amounts of work, and the worse one must be safe.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.spot_policy.run_parameters import SpotTerms
from gpuplan.planner.spot_policy.zone_availability import ZoneChain

Floats = NDArray[np.float64]
Codes = NDArray[np.int8]

#: Stands for "not allowed": no run costs as much, and sums of it stay finite.
BARRED = 1e15
#: The most bytes of a table, and so about the most memory of a policy.
MOST_CELLS = 120_000_000
#: Costs are sums of thousands of terms: closer than this, relatively, they count as equal.
_TIE = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Grid:
    """The modes and steps of a table, in whole steps of `terms.step_hours`.

    `changeover[l][k]` are steps from data at l into place k. Idle modes come first (one where moves are free,
    else one per place), then `residuals` modes per place: r = 0, 1, ...
    """

    terms: SpotTerms
    steps: int
    work: int
    changeover: tuple[tuple[int, ...], ...]
    idle_modes: int
    residuals: int

    @property
    def places(self) -> int:
        """Zones and on-demand."""
        return len(self.terms.places) + 1

    @property
    def modes(self) -> int:
        """Idle modes and running modes."""
        return self.idle_modes + self.places * self.residuals

    def idle(self, place: int) -> int:
        """The mode of waiting with the data at `place`."""
        return place if self.idle_modes > 1 else 0

    def running(self, place: int, residual: int) -> int:
        """The mode of `place` running with `residual` steps of changeover to go."""
        return self.idle_modes + place * self.residuals + residual


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Solution:
    """`actions[n, w, mode, f]`: 0 to wait, k + 1 to run (or stay on) place k; `value` in USD at the start, per mode and f.

    `actions[0]` is unused. States that violate the time constraint say on-demand.
    """

    grid: Grid
    actions: Codes
    value: Floats


def grid_of(terms: SpotTerms) -> Grid:
    """The grid of these terms."""
    step, size = terms.step_hours, len(terms.places) + 1
    changeover = tuple(
        tuple(math.ceil(terms.moving_hours(origin, to) / step - 1e-9) for to in range(size)) for origin in range(size)
    )
    return Grid(
        terms=terms,
        steps=math.floor(terms.deadline_hours / step + 1e-9),
        work=math.ceil(terms.work_hours / step - 1e-9),
        changeover=changeover,
        idle_modes=1 if terms.moves_free else size,
        residuals=max(1, *(max(row) for row in changeover)),
    )


def cells(terms: SpotTerms, states: Sequence[int]) -> int:
    """The number of table entries with so many states per zone; `MOST_CELLS` is the limit."""
    grid = grid_of(terms)
    return (grid.steps + 1) * (grid.work + 1) * grid.modes * math.prod(states)


def solve(terms: SpotTerms, chains: Sequence[ZoneChain]) -> Solution:
    """The best decision in every state, for `chains` in the order of `terms.places`.

    Raises `UnusableInput` for terms that even on-demand cannot meet, and for a table beyond `MOST_CELLS`.
    """
    grid = grid_of(terms.checked())
    states = math.prod(len(chain.moves) for chain in chains)
    size = cells(terms, [states])
    if size > MOST_CELLS:
        message = (
            f"{terms.step_hours * 60:.3g} min make a table of {size:.3g} states, above the limit of {MOST_CELLS:.3g}; "
            "give longer steps, or fewer places"
        )
        raise UnusableInput.at("step_hours", message=message)
    rescue = grid.changeover[-1][-1]
    if grid.work + rescue > grid.steps:
        message = f"{terms.step_hours * 60:.3g} min are too coarse for so tight a deadline; give shorter steps"
        raise UnusableInput.at("step_hours", message=message)
    actions = np.full((grid.steps + 1, grid.work + 1, grid.modes, states), grid.places, dtype=np.int8)
    value = np.full((grid.modes, grid.work + 1, states), BARRED)
    value[:, 0] = 0.0
    sweep = _Sweep(grid, chains)
    for n in range(1, grid.steps + 1):
        value = sweep.step(value, n, actions[n])
    return Solution(grid=grid, actions=actions, value=value[:, grid.work])


class _Sweep:
    """One backward step, with the data that all steps share."""

    def __init__(self, grid: Grid, chains: Sequence[ZoneChain]) -> None:
        self.grid = grid
        self.chains = [np.ascontiguousarray(chain.moves.T) for chain in chains]
        shape = [len(chain.moves) for chain in chains]
        ups = np.meshgrid(*[chain.up for chain in chains], indexing="ij")
        #: [places, states]: which can run.
        self.up = np.stack([*(up.reshape(-1) for up in ups), np.ones(math.prod(shape), np.bool_)])
        terms = grid.terms
        self.usd = [place.usd_per_hour * terms.step_hours for place in terms.places]
        self.usd.append(terms.on_demand_usd_per_hour * terms.step_hours)
        self.speed = [*(place.speed for place in terms.places), 1.0]

    def step(self, after: Floats, n: int, actions: Codes) -> Floats:
        """Values with n steps left from those with n - 1, `after` [modes, work, states]; fills `actions` of this n."""
        grid = self.grid
        expected = self._safe(self._expected(after), n - 1)
        value = np.empty_like(after)
        begun: dict[int, tuple[Floats, Codes]] = {}
        for place in range(grid.places):
            if grid.idle_modes > 1 or place == 0:
                best, choice = self._options(expected, place)
                value[grid.idle(place)] = best
                actions[:, grid.idle(place)] = choice
                begun[grid.idle(place)] = best, choice
            best, choice = begun[grid.idle(place)]
            for residual in range(grid.residuals):
                mode = grid.running(place, residual)
                stay = np.where(self.up[place], self._stay(expected, place, residual), BARRED)
                # At equal cost staying wins: it moves nothing.
                stays = self.up[place] & (stay <= best)
                taken = self._after_loss(best, place) if residual == 0 else best
                value[mode] = np.where(stays, stay, np.where(self.up[place], best, taken))
                actions[:, mode] = np.where(stays, place + 1, choice)
        value[:, 0] = 0.0
        return np.asarray(np.minimum(value, BARRED))

    def _expected(self, after: Floats) -> Floats:
        """The mean over the zones' next states, zone by zone."""
        shape = [len(moves) for moves in self.chains]
        result = after
        tail = math.prod(shape)
        for moves in self.chains:
            tail //= len(moves)
            if tail == 1:
                result = (result.reshape(-1, len(moves)) @ moves).reshape(after.shape)
            else:
                parts = result.reshape(-1, len(moves), tail)
                result = np.matmul(moves.T, parts).reshape(after.shape)
        return result

    def _safe(self, expected: Floats, left: int) -> Floats:
        """Bar the states that leave on-demand too little time when `left` steps remain."""
        grid, demand = self.grid, self.grid.places - 1
        for place in range(grid.places):
            limit = left - grid.changeover[place][demand]
            if grid.idle_modes > 1:
                expected[grid.idle(place), max(limit + 1, 1) :] = BARRED
            for residual in range(grid.residuals):
                most = left - residual if place == demand else limit
                expected[grid.running(place, residual), max(most + 1, 1) :] = BARRED
        if grid.idle_modes == 1:
            expected[0, max(left - grid.changeover[0][demand] + 1, 1) :] = BARRED
        expected[:, 0] = 0.0
        return expected

    def _options(self, expected: Floats, origin: int) -> tuple[Floats, Codes]:
        """The best of waiting and of going to any place, with the data at `origin` and nothing running."""
        grid = self.grid
        best = expected[grid.idle(origin)]
        choice = np.zeros(best.shape, dtype=np.int8)
        for place in range(grid.places):
            steps = grid.changeover[origin][place]
            first = self._stay(expected, place, steps)
            cost = np.where(self.up[place], first + grid.terms.moving_usd(origin, place), BARRED)
            # At equal cost the option that makes progress wins; where nothing is allowed, on-demand is least late.
            better = (cost <= best * (1.0 + _TIE)) & ((cost < BARRED) | (place == grid.places - 1))
            best, choice = np.where(better, cost, best), np.where(better, np.int8(place + 1), choice)
        return best, choice

    def _after_loss(self, best: Floats, place: int) -> Floats:
        """`best` with the extra work of a preemption at `place`, on average half of the work between checkpoints."""
        terms = self.grid.terms
        lost = terms.checkpoint_every_hours / terms.step_hours * self.speed[place] / 2
        if lost <= 0 or place == self.grid.places - 1:
            return best
        whole = math.floor(lost)
        return np.asarray((1.0 - lost + whole) * _shifted(best, -whole) + (lost - whole) * _shifted(best, -whole - 1))

    def _stay(self, expected: Floats, place: int, residual: int) -> Floats:
        """The cost of one more step on a place with `residual` steps of changeover to go, and of all later steps."""
        if residual > 0:
            return np.asarray(self.usd[place] + expected[self.grid.running(place, residual - 1)])
        ahead = expected[self.grid.running(place, 0)]
        whole = math.floor(self.speed[place] + 1e-9)
        part = max(self.speed[place] - whole, 0.0)
        result = (1.0 - part) * _shifted(ahead, whole)
        if part > 1e-9:
            result = result + part * _shifted(ahead, whole + 1)
        return np.asarray(self.usd[place] + result)


def _shifted(values: Floats, steps: int) -> Floats:
    """`values` [work, states] at `steps` less work, clipped to between none and all."""
    at = np.clip(np.arange(len(values)) - steps, 0, len(values) - 1)
    return values[at]
