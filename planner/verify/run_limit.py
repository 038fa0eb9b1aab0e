"""The run limits of a plan, worked out anew from its other figures: when each phase is stopped, and its cost by then."""

import math
from datetime import datetime

from catalog.price_kinds import price_kinds
from planner.verify.clock import NEVER_HOURS
from planner.verify.context import Context

#: The limit is the later of the deadline and this many times the hours of 19 in 20 runs.
TIMES_P95 = 1.5
PAID_BY_THE_HOUR, PAID_ONCE = ("storage", "power"), ("egress",)
#: Figures that no plan has make a limit beyond this.
LONGEST = 10 * NEVER_HOURS


def run_limits(context: Context) -> None:
    """Tick off the limit and the cost at it of every phase, and their sum."""
    ledger = context.ledger
    count = ledger.size("phases")
    stated = []
    for number in range(count):
        _hours(context, number, count)
        _cost(context, number)
        stated.append(ledger.micros("phases", number, "run_limit", "cost_usd"))
    ledger.is_money("cost", ("run_limit", "cost_usd"), sum(stated), "not the sum of the phases at their limits")


def _hours(context: Context, number: int, count: int) -> None:
    ledger, at = context.ledger, ("phases", number, "run_limit", "hours")
    p95, expected = ledger.number("hours", "p95"), ledger.number("hours", "expected")
    waits_for_it = number + 1 < count and ledger.has("phases", number + 1, "switch_by")
    if not (waits_for_it or ledger.has("phases", number, "switch_by")):
        p95 = ledger.number("phases", number, "hours") * max(1.0, p95 / max(expected, 1e-12))
    needed = [1.0, TIMES_P95 * p95]
    deadline = context.claim.job.deadline_hours
    if deadline is not None:
        needed.append(deadline - _begins(context, number))
    kind = price_kinds().get(ledger.text("phases", number, "price_kind"))
    longest = None if kind is None else kind.max_run_hours
    # Machines that are lent for some hours end with those, in whole hours that fit into them.
    least = max(needed) if longest is None else min(float(math.floor(longest)), max(needed))
    hours = ledger.whole(*at, least=1)
    why = "not the later of the deadline and 1.5 x the hours of 19 in 20 runs, in whole hours"
    ledger.tick("hours", at)
    ledger.holds("hours", at, least <= LONGEST and hours == math.ceil(least), round(least, 6), why)


def _cost(context: Context, number: int) -> None:
    ledger, phase = context.ledger, ("phases", number)
    hours, expected = ledger.whole(*phase, "run_limit", "hours", least=1), ledger.number(*phase, "hours")
    parts = {name: ledger.micros(*phase, "cost_usd", "breakdown", name) for name in ("compute", "setup", *PAID_ONCE)}
    longer = max(1.0, hours / expected) if expected > 0 else 1.0
    lasting = sum(ledger.micros(*phase, "cost_usd", "breakdown", name) for name in PAID_BY_THE_HOUR) * longer
    machines = parts["compute"] + parts["setup"]
    kind = price_kinds().get(ledger.text(*phase, "price_kind"))
    if kind is None or not kind.term_hours:
        price = ledger.micros(*phase, "usd_per_node_hour")
        machines = max(machines, ledger.whole(*phase, "nodes", least=1) * price * hours)
    why = "not the machines to the limit, with storage, power and egress"
    found = machines + lasting + parts["egress"]
    ledger.is_money("cost", (*phase, "run_limit", "cost_usd"), found, why)


def _begins(context: Context, number: int) -> float:
    """Hours from the start of the plan to that of the phase; 0 where the time is none, which another check names."""
    try:
        begins = datetime.fromisoformat(context.ledger.text("phases", number, "starts_at"))
        return (begins - context.claim.start.replace(microsecond=0)).total_seconds() / 3600
    except (ValueError, TypeError):
        return 0.0
