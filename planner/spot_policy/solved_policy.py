"""A solved policy for use during a run: look the state up, and keep enough time for on-demand in real time."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.spot_policy.policy_solver import Grid, Solution, solve
from gpuplan.planner.spot_policy.run_parameters import SpotTerms
from gpuplan.planner.spot_policy.simple_rules import must_rescue
from gpuplan.planner.spot_policy.zone_availability import ZoneChain

if TYPE_CHECKING:
    from gpuplan.planner.spot_policy.trace_replay import RunState

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_ROUND = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Policy:
    """The decision in every state of a run, with its chains; `expected_usd` is from the start, before any observation."""

    terms: SpotTerms
    chains: tuple[ZoneChain, ...]
    grid: Grid
    actions: NDArray[np.int8]
    expected_usd: float

    def states(self, seen: "RunState") -> Ints:
        """The joint state of the zones' chains, per run."""
        joint = np.zeros(len(seen.place), np.int64)
        for zone, chain in enumerate(self.chains):
            zone_state = chain.state(seen.up[:, zone], seen.age_hours[:, zone], seen.age_known[:, zone])
            joint = joint * len(chain.moves) + zone_state
        return joint

    def decide(self, seen: "RunState") -> Ints:
        """The place of each run during the coming step: a place's index or -1 to wait. Never late.

        Time left is rounded down to the table's steps, work and changeover up. The time constraint is then checked with
        the real figures, for the steps at which decisions come (`terms.step_hours`).
        """
        grid, step = self.grid, self.terms.step_hours
        left = np.clip(int(seen.left_hours / step + _ROUND), 1, grid.steps)
        work = np.clip(np.ceil(seen.work_hours / step - _ROUND).astype(np.int64), 1, grid.work)
        to_go = np.clip(np.ceil(seen.to_go_hours / step - _ROUND).astype(np.int64), 0, grid.residuals - 1)
        idle = seen.home if grid.idle_modes > 1 else np.zeros_like(seen.home)
        mode = np.where(seen.place >= 0, grid.idle_modes + seen.place * grid.residuals + to_go, idle)
        target = self.actions[left, work, mode, self.states(seen)].astype(np.int64) - 1
        return np.where(must_rescue(self.terms, seen, target), len(self.terms.places), target)


def make_policy(terms: SpotTerms, chains: Sequence[ZoneChain]) -> Policy:
    """Solve for `chains`, one per place. Raises `UnusableInput` as `solve` does."""
    return policy_of(solve(terms, chains), chains)


def policy_of(solution: Solution, chains: Sequence[ZoneChain]) -> Policy:
    """The policy of a solution; the expected cost is over the zones' long-run states, with the data at on-demand."""
    share = reduce(_product, (chain.stationary for chain in chains))
    grid = solution.grid
    start = grid.idle(grid.places - 1)
    return Policy(
        terms=grid.terms,
        chains=tuple(chains),
        grid=grid,
        actions=solution.actions,
        expected_usd=float(share @ solution.value[start]),
    )


def _product(one: Floats, other: Floats) -> Floats:
    """The shares of joint states; the last zone's state changes fastest."""
    return np.outer(one, other).reshape(-1)
