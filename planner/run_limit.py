"""The run limit of a phase: when its machines are stopped whatever happens, and what the phase costs by then.

    limit = the later of the deadline and 1.5 x the 95 % quantile of the phase's hours, in whole hours
    cost  = nodes x price x limit + (storage + power) x max(1, limit / expected hours) + egress

A run that is on course ends long before its limit; the limit bounds the cost of one that hangs. A commitment costs its
whole term whatever runs, so there the limit adds no compute.
"""

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from catalog.money import usd_micros, usd_text
from catalog.price_kinds import PriceKind, price_kinds

Document = dict[str, Any]

#: A run that takes 1.5 x the hours that 95 % of runs stay within is taken to hang.
P95_FACTOR = 1.5
#: The least hours of a limit: the run must be able to save a checkpoint before it.
LEAST_HOURS = 1


def limit_hours(*, p95_hours: float, deadline_hours: float | None, kind: PriceKind) -> int:
    """Whole hours from the start of a phase to its limit; `deadline_hours` counts from there too, None without one.

    Machines of a kind that is lent for some hours at most end with those.
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
    """Micro-dollars that a phase costs if it runs for `hours`; `costs` are its expected ones by part."""
    longer = max(1.0, hours / expected_hours) if expected_hours > 0 else 1.0
    compute = costs["compute"] + costs["setup"]
    if not kind.term_hours:
        compute = max(compute, round(nodes * usd_micros_per_node_hour * hours))
    return compute + round((costs["storage"] + costs["power"]) * longer) + costs["egress"]


def p95_of_phase(*, hours: float, expected: float, p95: float, switches: bool) -> float:
    """Hours that a phase stays within in 95 % of runs: late as the plan is.

    A standby and the phase before it run for hours that depend on whether it is called: those of the plan.
    """
    if switches:
        return p95
    return hours * max(1.0, p95 / expected) if expected > 0 else hours


def with_run_limits(plan: Document, deadline_hours: float | None) -> Document:
    """The plan's document with `run_limit` in every phase, and their sum for the plan."""
    rows = plan["phases"]
    stands_by = [*("switch_by" in row for row in rows), False]
    phases = [
        row | {"run_limit": _limit_of(plan, row, deadline_hours, switches=stands_by[i] or stands_by[i + 1])}
        for i, row in enumerate(rows)
    ]
    total = sum(usd_micros(row["run_limit"]["cost_usd"]) for row in phases)
    return plan | {"phases": phases, "run_limit": {"cost_usd": usd_text(total)}}


def _limit_of(plan: Document, row: Document, deadline_hours: float | None, *, switches: bool) -> Document:
    kind = price_kinds()[row["price_kind"]]
    p95 = p95_of_phase(
        hours=row["hours"], expected=plan["hours"]["expected"], p95=plan["hours"]["p95"], switches=switches
    )
    left = None if deadline_hours is None else deadline_hours - hours_between(plan["start"], row["starts_at"])
    hours = limit_hours(p95_hours=p95, deadline_hours=left, kind=kind)
    found = cost_micros(
        hours,
        nodes=row["nodes"],
        usd_micros_per_node_hour=usd_micros(row["usd_per_node_hour"]),
        expected_hours=row["hours"],
        costs={part: usd_micros(text) for part, text in row["cost_usd"]["breakdown"].items()},
        kind=kind,
    )
    return {"hours": hours, "cost_usd": usd_text(found)}


def hours_between(start: str, end: str) -> float:
    """Hours from one moment of a document to another."""
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds() / 3600
