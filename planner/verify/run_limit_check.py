"""Check of the run limits: when each phase is stopped, and its cost by then."""

import math
from datetime import datetime

from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.planner.verify.verification_context import Context
from gpuplan.planner.verify.wall_clock_hours import NEVER_HOURS

#: The limit is the later of the deadline and this multiple of the 95 % quantile of hours.
TIMES_P95 = 1.5
PAID_BY_THE_HOUR, PAID_ONCE = ("storage", "power"), ("egress",)
#: Limits beyond this follow from invalid figures.
LONGEST = 10 * NEVER_HOURS


def run_limits(context: Context) -> None:
    """Check the limit of every phase and the cost at it, and their sum."""
    field_coverage = context.field_coverage
    count = field_coverage.size("phases")
    stated = []
    for number in range(count):
        _hours(context, number, count)
        _cost(context, number)
        stated.append(field_coverage.micros("phases", number, "run_limit", "cost_usd"))
    field_coverage.is_money("cost", ("run_limit", "cost_usd"), sum(stated), "not the sum of the phases at their limits")


def _hours(context: Context, number: int, count: int) -> None:
    field_coverage, at = context.field_coverage, ("phases", number, "run_limit", "hours")
    p95, expected = field_coverage.number("hours", "p95"), field_coverage.number("hours", "expected")
    waits_for_it = number + 1 < count and field_coverage.has("phases", number + 1, "switch_by")
    if not (waits_for_it or field_coverage.has("phases", number, "switch_by")):
        p95 = field_coverage.number("phases", number, "hours") * max(1.0, p95 / max(expected, 1e-12))
    needed = [1.0, TIMES_P95 * p95]
    deadline = context.submitted_plan.job.deadline_hours
    if deadline is not None:
        needed.append(deadline - _begins(context, number))
    kind = price_kinds().get(field_coverage.text("phases", number, "price_kind"))
    longest = None if kind is None else kind.max_run_hours
    # A price kind with a maximum run ends the phase after as many whole hours.
    least = max(needed) if longest is None else min(float(math.floor(longest)), max(needed))
    hours = field_coverage.whole(*at, least=1)
    why = "not the later of the deadline and 1.5 x the hours of 19 in 20 runs, in whole hours"
    field_coverage.tick("hours", at)
    field_coverage.is_true("hours", at, least <= LONGEST and hours == math.ceil(least), round(least, 6), why)


def _cost(context: Context, number: int) -> None:
    field_coverage, phase = context.field_coverage, ("phases", number)
    hours, expected = (
        field_coverage.whole(*phase, "run_limit", "hours", least=1),
        field_coverage.number(*phase, "hours"),
    )
    parts = {
        name: field_coverage.micros(*phase, "cost_usd", "breakdown", name) for name in ("compute", "setup", *PAID_ONCE)
    }
    longer = max(1.0, hours / expected) if expected > 0 else 1.0
    lasting = sum(field_coverage.micros(*phase, "cost_usd", "breakdown", name) for name in PAID_BY_THE_HOUR) * longer
    machines = parts["compute"] + parts["setup"]
    kind = price_kinds().get(field_coverage.text(*phase, "price_kind"))
    if kind is None or not kind.term_hours:
        price = field_coverage.micros(*phase, "usd_per_node_hour")
        machines = max(machines, field_coverage.whole(*phase, "nodes", least=1) * price * hours)
    why = "not the cost of the machines up to the limit, with storage, power and egress"
    cost_micros = machines + lasting + parts["egress"]
    field_coverage.is_money("cost", (*phase, "run_limit", "cost_usd"), cost_micros, why)


def _begins(context: Context, number: int) -> float:
    """Hours from the start of the plan to that of the phase; 0 where the time is invalid, which another check
    reports.
    """
    try:
        begins = datetime.fromisoformat(context.field_coverage.text("phases", number, "starts_at"))
        return (begins - context.submitted_plan.start.replace(microsecond=0)).total_seconds() / 3600
    except (ValueError, TypeError):
        return 0.0
