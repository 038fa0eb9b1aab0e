"""The run limit of a phase (the user's, else the plan's), and the highest cost of the phase."""

from gpuplan.api.exports.plan_handover import Handover, Phase, Wishes
from gpuplan.catalog.model.money import usd_micros
from gpuplan.planner.cost.run_limit import cost_micros, limit_hours, p95_of_phase


def limit_seconds(handover: Handover, phase: Phase, wishes: Wishes) -> int:
    """Longest time from start to end of the phase's machines in seconds, in whole minutes."""
    hours = wishes.run_limit_hours
    if hours is None:
        return 3600 * _planned_hours(handover, phase)
    if phase.kind.max_run_hours is not None:
        hours = min(hours, phase.kind.max_run_hours)
    return 60 * round(60 * hours)


def cost_at_limit(handover: Handover, phase: Phase, wishes: Wishes) -> int:
    """Micro-dollars that the phase costs if it runs to its limit, at the prices of the plan."""
    return cost_micros(
        limit_seconds(handover, phase, wishes) / 3600,
        nodes=phase.nodes,
        usd_micros_per_node_hour=usd_micros(phase.usd_per_node_hour),
        expected_hours=phase.hours,
        costs=phase.costs,
        kind=phase.kind,
    )


def _planned_hours(handover: Handover, phase: Phase) -> int:
    """The plan's limit, recomputed because plans of older releases lack it."""
    left = handover.deadline_hours
    if left is not None:
        left -= (phase.starts_at - handover.start).total_seconds() / 3600
    p95 = p95_of_phase(
        hours=phase.hours,
        expected=handover.expected_hours,
        p95=handover.p95_hours,
        switches=phase.switch_by is not None,
    )
    return limit_hours(p95_hours=p95, deadline_hours=left, kind=phase.kind)
