"""What a portfolio's search says of itself: where it stands while it goes on, and what it found."""

import math
from dataclasses import dataclass
from enum import StrEnum

from planner.portfolio.instance import Plan
from planner.portfolio.prices import Prices


class Stage(StrEnum):
    """What a search is doing, in words for whoever waits for it."""

    CONFIGURATIONS = "working out what each job could run on"
    FIRST_PLAN = "making a first plan"
    PRICES = "pricing scarce machines"
    RELAXATION = "computing a lower bound on the cost"
    DIVE = "placing jobs as the lower bound suggests"
    RUIN_AND_RECREATE = "rearranging jobs"
    CUTS = "raising the lower bound on the cost"
    LIKELY_COLUMNS = "solving the most promising choices exactly"
    NEIGHBOURHOODS = "solving groups of jobs exactly"
    WHOLE_MODEL = "solving all choices exactly"
    DONE = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Where a search stands: seconds since it began, and the best plan so far.

    `jobs_seen` of `jobs` have their configurations worked out, `jobs_planned` run in the best plan. `cost_usd` is what
    these cost; `objective_usd`, which the search minimises and `bound_usd` bounds, adds what leaving the others out
    counts. `gap` is the difference of these two as a share of the objective. Before the first plan cost, objective and
    gap are infinite.
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
class Found:
    """The best plan, its proof, and the work done: `iterations` by stage. `prices` are what capacity is worth."""

    plan: Plan
    bound_usd: float
    gap: float
    proven: bool
    elapsed_s: float
    first_plan_s: float
    iterations: dict[str, int]
    prices: Prices


def gap(objective_usd: float, bound_usd: float) -> float:
    """What is left to prove, as a share of the objective."""
    return max(0.0, objective_usd - bound_usd) / max(abs(objective_usd), 1e-9)
