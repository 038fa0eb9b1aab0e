"""Cost breakdowns in whole micro-dollars, as plans show them."""

from collections.abc import Sequence

from gpuplan.planner.verify.cost_recomputation import RecomputedCost

PARTS = ("storage", "egress", "power", "setup")


def cost_parts(cost_breakdowns: Sequence[RecomputedCost]) -> dict[str, int]:
    """Micro-dollars of several cost breakdowns by part, and `expected` for their sum.

    Each breakdown is rounded once; compute absorbs the rounding of the other parts.
    """
    parts = {
        name: sum(round(getattr(cost_breakdown, name) * 1e6) for cost_breakdown in cost_breakdowns) for name in PARTS
    }
    expected = sum(round(cost_breakdown.total * 1e6) for cost_breakdown in cost_breakdowns)
    return {"expected": expected, "compute": expected - sum(parts.values()), **parts}
