"""What a portfolio's search says of itself: where it stands while it goes on, and what it found."""

import math
from dataclasses import dataclass

from planner.portfolio.instance import Plan
from planner.portfolio.prices import Prices

#: The stage before there is any plan: working out what each job could run on.
CONFIGURATIONS = "configurations"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Where a search stands: seconds since it began, best cost and bound in USD, the gap between as a share.

    `jobs_seen` of `jobs` have their configurations worked out, `jobs_planned` run in the best plan so far. Before the
    first plan cost and gap are infinite.
    """

    elapsed_s: float
    stage: str
    jobs: int
    jobs_seen: int
    jobs_planned: int = 0
    cost_usd: float = math.inf
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


def gap(cost_usd: float, bound_usd: float) -> float:
    """What is left to prove, as a share of the cost."""
    return max(0.0, cost_usd - bound_usd) / max(abs(cost_usd), 1e-9)
