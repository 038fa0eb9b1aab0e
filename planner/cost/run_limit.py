"""The run limit of a phase: the time at which its machines are stopped in any case, and the cost until then.

    limit = the later of the deadline and 1.5 x the 95 % quantile of the phase's hours, in whole hours
    cost  = nodes x price x limit + (storage + power) x max(1, limit / expected hours) + egress

A normal run ends long before its limit; the limit bounds the cost of a run that hangs. A commitment costs its whole term
in any case, so its limit adds no compute cost.
"""

import math
from collections.abc import Mapping
from dataclasses import fields, replace
from datetime import datetime
from decimal import Decimal

from gpuplan.catalog.model.money import usd_micros, usd_text
from gpuplan.catalog.model.price_kinds import PriceKind, price_kinds
from gpuplan.planner.model.plan import PlanLimit
from gpuplan.planner.model.shared import Hours, Phase, PhaseLimit

#: A run longer than 1.5 x the 95 % quantile is assumed to hang.
P95_FACTOR = 1.5
#: Least hours of a limit: the run must be able to save a checkpoint before it.
LEAST_HOURS = 1


def limit_hours(*, p95_hours: float, deadline_hours: float | None, kind: PriceKind) -> int:
    """Whole hours from the start of a phase to its limit; `deadline_hours` counts from the same start, None without one.

    A price kind with a maximum run length limits them further.
    """
    hours = max(LEAST_HOURS, math.ceil(max(P95_FACTOR * p95_hours, deadline_hours or 0.0)))
    return hours if kind.max_run_hours is None else min(hours, math.floor(kind.max_run_hours))


def cost_micros(
    hours: float,
    *,
    nodes: int,
    usd_micros_per_node_hour: int,
    expected_hours: float,
    costs: Mapping[str, int],
    kind: PriceKind,
) -> int:
    """Micro-dollars that a phase costs if it runs for `hours`; `costs` are its expected costs by part."""
    longer = max(1.0, hours / expected_hours) if expected_hours > 0 else 1.0
    compute = costs["compute"] + costs["setup"]
    if not kind.term_hours:
        compute = max(compute, round(nodes * usd_micros_per_node_hour * hours))
    return compute + round((costs["storage"] + costs["power"]) * longer) + costs["egress"]


def p95_of_phase(*, hours: float, expected: float, p95: float, switches: bool) -> float:
    """The 95 % quantile of a phase's hours: its expected hours scaled like those of the plan.

    If the plan `switches` to a standby, the hours of both phases depend on the switch, so the plan's quantile applies.
    """
    if switches:
        return p95
    return hours * max(1.0, p95 / expected) if expected > 0 else hours


def with_run_limits(
    phases: tuple[Phase, ...], hours: Hours, start: datetime, deadline_hours: float | None
) -> tuple[tuple[Phase, ...], PlanLimit]:
    """The phases of a plan that begins at `start` and takes `hours`, each with its `run_limit`, and the sum of their costs."""
    stands_by = [*(phase.switch_by is not None for phase in phases), False]
    limits = []
    for number, phase in enumerate(phases):
        begins = (phase.starts_at - start).total_seconds() / 3600
        left = None if deadline_hours is None else deadline_hours - begins
        limits.append(_limit_of(phase, hours, left, switches=stands_by[number] or stands_by[number + 1]))
    limited = tuple(replace(phase, run_limit=limit) for phase, limit in zip(phases, limits, strict=True))
    total = sum(usd_micros(limit.cost_usd) for limit in limits)
    return limited, PlanLimit(cost_usd=Decimal(usd_text(total)))


def _limit_of(phase: Phase, of_plan: Hours, deadline_hours: float | None, *, switches: bool) -> PhaseLimit:
    kind = price_kinds()[phase.price_kind]
    p95 = p95_of_phase(hours=phase.hours, expected=of_plan.expected, p95=of_plan.p95, switches=switches)
    hours = limit_hours(p95_hours=p95, deadline_hours=deadline_hours, kind=kind)
    parts = phase.cost_usd.breakdown
    micros = cost_micros(
        hours,
        nodes=phase.nodes,
        usd_micros_per_node_hour=usd_micros(phase.usd_per_node_hour),
        expected_hours=phase.hours,
        costs={part.name: usd_micros(getattr(parts, part.name)) for part in fields(parts)},
        kind=kind,
    )
    return PhaseLimit(hours=hours, cost_usd=Decimal(usd_text(micros)))
