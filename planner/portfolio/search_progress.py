"""Progress and result of a portfolio search."""

import math
from dataclasses import dataclass
from enum import StrEnum

from gpuplan.planner.portfolio.lagrangian_prices import Prices
from gpuplan.planner.portfolio.portfolio_instance import Plan


class Stage(StrEnum):
    """The stage of a search, as text for the user."""

    CONFIGURATIONS = "evaluating the configurations of each job"
    FIRST_PLAN = "making a first plan"
    PRICES = "pricing scarce machines"
    RELAXATION = "computing a lower bound on the cost"
    DIVE = "placing jobs as the lower bound suggests"
    RUIN_AND_RECREATE = "rearranging jobs"
    CUTS = "raising the lower bound on the cost"
    LIKELY_COLUMNS = "solving the most promising choices exactly"
    WHOLE_MODEL = "solving all choices exactly"
    DONE = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The progress of a search: seconds since its start, and the best plan so far.

    `jobs_seen` of `jobs` are evaluated, `jobs_planned` run in the best plan, at `cost_usd`. `objective_usd` adds the
    penalties of the jobs left out; `bound_usd` is its lower bound. `gap` is their difference as a share of the
    objective. Before the first plan cost, objective and gap are infinite.
    """

    elapsed_s: float
    stage: Stage
    jobs: int
    jobs_seen: int
    jobs_planned: int = 0
    cost_usd: float = math.inf
    objective_usd: float = math.inf
    bound_usd: float = 0.0
    gap: float = math.inf


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchOutcome:
    """The best plan, its proof, and the work done: `iterations` by stage. `prices` are the prices of capacity."""

    plan: Plan
    bound_usd: float
    gap: float
    proven: bool
    elapsed_s: float
    first_plan_s: float
    iterations: dict[str, int]
    prices: Prices


def gap(objective_usd: float, bound_usd: float) -> float:
    """The difference between objective and bound as a share of the objective."""
    return max(0.0, objective_usd - bound_usd) / max(abs(objective_usd), 1e-9)
