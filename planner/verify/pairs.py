"""Whether a plan in phases would be cheaper: every pair of configurations, and a bound for any number of phases.

Under cost and hours of a share x of the work on configuration k lie straight lines,

    cost_k(x) >= A_k + B_k x          hours_k(x) >= a + b_k x          a: set-up

exact without preemption but for rounding up to billing steps. With it, w hours of work take at least
w e^(r R) (1 + l + sqrt(l (2 + l))) hours, l = r d, whatever the interval between checkpoints (e^y - 1 >= y + y^2 / 2 in
Daly's equation), and hours at a confidence above one half are at least e^(z s) times that. Moves and windows only add.

Least cost under these lines is a linear programme with two rows, the work and the deadline: at a vertex at most two
configurations do work, and what does none only adds its start. So the best pair, or single one, by the lines bounds
plans of any number of phases. Pairs that the bound leaves below the plan are then priced exactly, at the largest share
that the cheaper of the two can do in time.
"""

import heapq
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from planner.verify.billing import mean_of
from planner.verify.clock import NEVER_HOURS, quantile, wall_hours
from planner.verify.context import Context
from planner.verify.counts import undominated
from planner.verify.course import STEPS, Part, course, kin, total_micros
from planner.verify.estimates import Row
from planner.verify.named import Named
from planner.verify.shelves import Lot

#: Pairs that are priced exactly at most, the most promising first.
MOST_PAIRS = 2000
#: Steps tried beside the share at which the deadline binds.
BESIDE = 2


class Line(NamedTuple):
    """The straight lines under one configuration: USD to start, to bring the data, and for all the work; its hours."""

    start_usd: float
    data_usd: float
    work_usd: float
    work_hours: float
    part: Part


@dataclass(frozen=True, slots=True, kw_only=True)
class InPhases:
    """What was found of plans in phases: the least that any costs (None: no limit on time binds or none is possible), the
    cheapest pair priced exactly (micro-dollars and words), how many pairs were, and whether some were `left` to the bound.
    """

    least_usd: float | None
    cheapest: tuple[int, str] | None
    priced: int
    left: bool


def in_phases(context: Context, most_micros: float) -> InPhases | None:
    """Plans of two phases below `most_micros`, and the bound; None where the job keeps to one configuration."""
    job = context.claim.job
    one = job.constraints.max_phases < 2 or job.objective != "cost" or job.constraints.carbon_budget_kg is not None
    if one:
        return None
    groups: dict[tuple[str, str], list[Line]] = {}
    most = job.constraints.max_accelerators or math.inf
    for lot, nodes, row in context.enumeration.runnable(context.open_lots, job.constraints.max_nodes):
        line = line_of(context, lot, nodes, row) if nodes * lot.machine.type.devices <= most else None
        if line is not None:
            groups.setdefault(kin(line.part), []).append(line)
    deadline = math.inf if job.deadline_hours is None else job.deadline_hours
    setup = context.claim.settings.setup_hours
    bounds = [bound for lines in groups.values() for bound in _bounds(_best_lines(lines), deadline, setup)]
    least = min(bounds, default=math.inf)
    kept = {id(lot) for lot in undominated(context, context.open_lots)}
    promising: list[tuple[float, Line, Line]] = []
    for lines in groups.values():
        promising += _promising(lines, kept, deadline, setup, most_micros / 1e6)
    promising.sort(key=lambda pair: pair[0])
    cheapest: tuple[int, str] | None = None
    for _, first, second in promising[:MOST_PAIRS]:
        found = _priced(context, first, second, deadline)
        if found is not None and found[0] < min(most_micros, math.inf if cheapest is None else cheapest[0]):
            cheapest = found
    return InPhases(
        least_usd=least if math.isfinite(least) else None,
        cheapest=cheapest,
        priced=min(len(promising), MOST_PAIRS),
        left=len(promising) > MOST_PAIRS,
    )


def line_of(context: Context, lot: Lot, nodes: int, row: Row) -> Line | None:
    """The lines under a configuration; None where the work never ends on it."""
    settings, rates = context.claim.settings, context.rates
    rate, write = lot.rate * nodes, rates.checkpoint_hours(nodes)
    work, growth = row.hours_with_goodput, 1.0
    if not wall_hours(work, write, settings.restart_hours, rate) <= NEVER_HOURS:
        return None
    if rate:
        lost = rate * write
        growth = math.exp(rate * settings.restart_hours) * (1 + lost + math.sqrt(lost * (2 + lost)))
    on_clock = growth * (1 + rate * settings.spot_wait_hours)
    z = quantile(context.claim.job.confidence)
    certain = not rate or z >= 0
    term = 0 if lot.paid else lot.kind.term_hours
    compute, storage = nodes * lot.micros / 1e6, rates.place(lot.place).storage_per_hour
    by_hour = nodes * lot.machine.power_usd_per_hour + (0.0 if term else compute)
    # Money is told by expected hours, time by quantiles around the estimate's.
    expected_work = mean_of(work, row.log_sigma)
    return Line(
        start_usd=(by_hour + storage) * settings.setup_hours + compute * term,
        data_usd=rates.place(lot.place).egress,
        work_usd=expected_work * (by_hour * growth + storage * on_clock),
        work_hours=work * on_clock * math.exp(z * row.log_sigma) if certain else 0.0,
        part=Part(Named(lot, None, nodes), row, STEPS),
    )


def _best_lines(lines: list[Line]) -> list[Line]:
    """Lines that no other lies below in all four figures."""
    best: list[Line] = []
    for line in sorted(lines, key=lambda one: one[:4]):
        _, data, work, hours = line[:4]
        if not any(one.data_usd <= data and one.work_usd <= work and one.work_hours <= hours for one in best):
            best.append(line)
    return best


def _bounds(lines: list[Line], deadline: float, setup: float) -> Iterable[float]:
    """The least of each single line and of each pair, where they can be in time."""
    for number, one in enumerate(lines):
        if setup + one.work_hours <= deadline:
            yield one.start_usd + one.data_usd + one.work_usd
        for other in lines[:number]:
            yield pair_bound(one, other, deadline - 2 * setup)


def pair_bound(one: Line, other: Line, hours: float) -> float:
    """The least that a plan on two lines costs whose work takes at most so many hours, in USD; inf if none does.

    The data are brought to the dearer of the places at the least.
    """
    slow, fast = (one, other) if one.work_hours >= other.work_hours else (other, one)
    if fast.work_hours > hours:
        return math.inf
    share = 1.0
    if slow.work_hours > hours:
        share = (hours - fast.work_hours) / (slow.work_hours - fast.work_hours)
    on_slow = share if slow.work_usd < fast.work_usd else 0.0
    work = slow.work_usd * on_slow + fast.work_usd * (1 - on_slow)
    return one.start_usd + other.start_usd + max(one.data_usd, other.data_usd) + work


def _promising(
    lines: list[Line], kept: set[int], deadline: float, setup: float, most_usd: float
) -> list[tuple[float, Line, Line]]:
    """Pairs of screened configurations that the bound leaves below `most_usd`, in the order in which they would run."""
    hours = deadline - 2 * setup
    best = _best_lines(lines)
    mine = [
        line
        for line in lines
        if id(line.part.named.lot) in kept and any(pair_bound(line, other, hours) < most_usd for other in best)
    ]
    found: list[tuple[float, Line, Line]] = []
    for number, one in enumerate(mine):
        for other in mine[:number]:
            bound = pair_bound(one, other, hours)
            if one.part.named.lot.place != other.part.named.lot.place:
                bound += min(one.data_usd, other.data_usd)
            if bound < most_usd:
                first, second = sorted((one, other), key=_rank)
                found.append((bound, first, second))
    return heapq.nsmallest(MOST_PAIRS + 1, found, key=lambda pair: pair[0])


def _rank(line: Line) -> tuple[bool, float]:
    """Interruptible phases first, then the slowest."""
    return not line.part.named.lot.rate, -line.part.row.hours_with_goodput


def _priced(context: Context, first: Line, second: Line, deadline: float) -> tuple[int, str] | None:
    """The exact cost of two phases at the best share of the cheaper, in words too; None if they cannot be in time."""
    cheap_first = first.work_usd <= second.work_usd

    def plan(on_cheap: int) -> tuple[float, int] | None:
        steps = (on_cheap, STEPS - on_cheap) if cheap_first else (STEPS - on_cheap, on_cheap)
        parts = [line.part._replace(steps=many) for line, many in zip((first, second), steps, strict=True)]
        found = course(context, parts)
        return None if found is None else (sum(each.kept for each in found), total_micros(found))

    low, high = 0, STEPS
    while high - low > 1:
        middle = (low + high) // 2
        tried = plan(middle)
        low, high = (middle, high) if tried is not None and tried[0] <= deadline else (low, middle)
    best: int | None = None
    for steps in range(max(1, low - BESIDE), min(STEPS - 1, low + BESIDE) + 1):
        tried = plan(steps)
        if tried is not None and tried[0] <= deadline and (best is None or tried[1] < best):
            best = tried[1]
    if best is None:
        return None
    words = ", then ".join(
        f"{line.part.named.nodes} x {line.part.named.lot.machine.type.name}" for line in (first, second)
    )
    return best, words
