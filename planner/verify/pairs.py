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

By duality a pair (k, j) within H hours of work costs at least, at any price mu >= 0 of an hour,

    A_k + A_j + min(B_k + mu b_k, B_j + mu b_j) - mu H

so configuration k is in no pair below A_k - mu H + min(B_k + mu b_k + min_j A_j, min_j (A_j + B_j + mu b_j)). Those that
this leaves no room at one of some prices `mu` are put aside before pairs are formed: there are very many node counts.
"""

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from catalog.accelerators import accelerators
from planner.verify.billing import means_of
from planner.verify.clock import NEVER_HOURS, Floats, Ints, quantile, wall_hours
from planner.verify.context import Context
from planner.verify.counts import undominated
from planner.verify.course import STEPS, Part, course, total_micros
from planner.verify.estimates import Scaling
from planner.verify.named import Named
from planner.verify.shelves import Lot

#: Pairs that are priced exactly at most, the most promising first.
MOST_PAIRS = 2000
#: Configurations of which pairs are formed at most, the most promising first: the others are left to the bound.
MOST_LINES = 3000
#: Steps tried beside the share at which the deadline binds.
BESIDE = 2
#: Prices of an hour at which configurations are put aside, as multiples of cost over hours; any price is sound.
HOUR_PRICES = (0.0, *np.geomspace(1e-3, 1e3, 48).tolist())


class Lines(NamedTuple):
    """The straight lines under configurations: USD to start, to bring the data, and for all the work; its hours.

    Arrays of equal length; `lot` is an element of the list of lots, `place` numbers places.
    """

    start_usd: Floats
    data_usd: Floats
    work_usd: Floats
    work_hours: Floats
    lot: Ints
    nodes: Ints
    place: Ints

    def take(self, which: Ints) -> "Lines":
        """Those of these elements."""
        start, data, work, hours = (each[which] for each in self[:4])
        return Lines(start, data, work, hours, self.lot[which], self.nodes[which], self.place[which])


@dataclass(frozen=True, slots=True, kw_only=True)
class InPhases:
    """What was found of plans in phases: the least that any costs (None: no limit on time binds or none is possible), the
    cheapest pair priced exactly (micro-dollars and words), how many pairs were, and whether some were `left` to the bound.
    """

    least_usd: float | None
    cheapest: tuple[int, str] | None
    priced: int
    left: bool


class _Promising(NamedTuple):
    """Pairs of one group as (bound in USD, elements of its lines), what no pair of it costs less than, and whether some
    configurations were left to that bound.
    """

    lines: Lines
    pairs: list[tuple[float, int, int]]
    least_usd: float
    left: bool


def in_phases(context: Context, most_micros: float, *, plan_micros: float = 0.0) -> InPhases | None:
    """Plans of two phases below `most_micros`, and the bound, which is told up to `plan_micros` if that is more.

    None where the job keeps to one configuration.
    """
    job = context.claim.job
    alone = job.constraints.max_phases < 2 or job.objective != "cost" or job.constraints.carbon_budget_kg is not None
    if alone:
        return None
    deadline = math.inf if job.deadline_hours is None else job.deadline_hours
    setup, told_usd = context.claim.settings.setup_hours, max(most_micros, plan_micros) / 1e6
    lots = undominated(context, context.open_lots)
    least, left, promising = math.inf, False, list[tuple[float, Lines, int, int]]()
    for lines in _groups(context, lots):
        least = min(least, _alone(lines, deadline - setup))
        found = _promising(lines, deadline - 2 * setup, told_usd)
        least, left = min(least, found.least_usd), left or found.left
        kept = (pair for pair in found.pairs if pair[0] < most_micros / 1e6)
        promising += [(bound, found.lines, one, other) for bound, one, other in kept]
    left = left or len(promising) > MOST_PAIRS
    promising = heapq.nsmallest(MOST_PAIRS, promising, key=lambda pair: pair[0])
    cheapest: tuple[int, str] | None = None
    priced = 0
    for bound, lines, *pair in promising:
        limit = most_micros if cheapest is None else min(most_micros, cheapest[0])
        if bound * 1e6 >= limit:
            break
        first, second = sorted((_part(context, lots, lines, number) for number in pair), key=_rank)
        found_pair = _priced(context, first, second, deadline)
        priced += 1
        if found_pair is not None and found_pair[0] < limit:
            cheapest = found_pair
    return InPhases(least_usd=least if math.isfinite(least) else None, cheapest=cheapest, priced=priced, left=left)


def _groups(context: Context, lots: list[Lot]) -> Iterator[Lines]:
    """The lines of every configuration, apart for each group within which a run can move."""
    groups: dict[tuple[str, int], list[Lines]] = {}
    number_of = {id(lot): number for number, lot in enumerate(lots)}
    places = {place: number for number, place in enumerate(dict.fromkeys(lot.place for lot in lots))}
    most = context.claim.job.constraints.max_accelerators or math.inf
    for lot, scaling in context.enumeration.runnable(lots, context.claim.job.constraints.max_nodes):
        stack = accelerators()[lot.machine.type.accelerator].stack
        few = scaling.nodes * lot.machine.type.devices <= most
        for precision in np.unique(scaling.precision[few]).tolist():
            some = scaling.take(few & (scaling.precision == precision))
            found = lines_of(context, lot, some, lot_number=number_of[id(lot)], place_number=places[lot.place])
            groups.setdefault((stack, precision), []).append(found)
    for each in groups.values():
        yield Lines(*(np.concatenate(column) for column in zip(*each, strict=True)))


def lines_of(context: Context, lot: Lot, scaling: Scaling, *, lot_number: int = 0, place_number: int = 0) -> Lines:
    """The lines under the configurations of a lot; those on which the work never ends are left out."""
    settings, rates = context.claim.settings, context.rates
    ends = scaling.hours_with_goodput <= NEVER_HOURS
    write = rates.checkpoint_hours(1) / scaling.nodes
    if lot.rate:
        rate = np.asarray(lot.rate * scaling.nodes, np.float64)
        ends = wall_hours(scaling.hours_with_goodput, write, settings.restart_hours, rate) <= NEVER_HOURS
    scaling, write = scaling.take(ends), write[ends]
    nodes, work, rate = scaling.nodes, scaling.hours_with_goodput, lot.rate * scaling.nodes
    lost = rate * write
    growth = np.exp(rate * settings.restart_hours) * (1 + lost + np.sqrt(lost * (2 + lost)))
    on_clock = growth * (1 + rate * settings.spot_wait_hours)
    z = quantile(context.claim.job.confidence)
    term = 0 if lot.paid else lot.kind.term_hours
    compute, place = nodes * lot.micros / 1e6, rates.place(lot.place)
    by_hour = nodes * lot.machine.power_usd_per_hour + (0.0 if term else compute)
    # Money is told by expected hours, time by quantiles around the estimate's.
    expected_work = means_of(work, scaling.log_sigma)
    certain = not lot.rate or z >= 0
    return Lines(
        start_usd=(by_hour + place.storage_per_hour) * settings.setup_hours + compute * term,
        data_usd=np.full(len(nodes), place.egress),
        work_usd=expected_work * (by_hour * growth + place.storage_per_hour * on_clock),
        work_hours=work * on_clock * np.exp(z * scaling.log_sigma) if certain else np.zeros(len(nodes)),
        lot=np.full(len(nodes), lot_number),
        nodes=nodes,
        place=np.full(len(nodes), place_number),
    )


def _alone(lines: Lines, hours: float) -> float:
    """The least that any single configuration costs whose work takes at most so many hours, in USD; inf if none does."""
    usd = (lines.start_usd + lines.data_usd + lines.work_usd)[lines.work_hours <= hours]
    return float(usd.min(initial=math.inf))


def pair_bounds(one: Lines, other: Lines, hours: float) -> Floats:
    """The least that a plan on two of the lines costs whose work takes at most so many hours, in USD; inf if none does.

    For each of one (rows) with each of the other (columns). The data are brought to the dearer of the places at the least.
    """
    (start, data, usd, takes), others = (each[:, None] for each in one[:4]), other[:4]
    other_start, other_data, other_usd, other_takes = others
    cheap, dear = np.minimum(usd, other_usd), np.maximum(usd, other_usd)
    cheap_takes = np.where(usd < other_usd, takes, other_takes)
    dear_takes = np.where(usd < other_usd, other_takes, takes)
    on_cheap = np.ones(cheap.shape)
    late = cheap_takes > hours
    if late.any():
        gains = cheap_takes - dear_takes
        with np.errstate(divide="ignore", invalid="ignore"):
            on_cheap = np.where(late, np.where(gains > 0, (hours - dear_takes) / gains, -1.0), 1.0)
    work = np.where(on_cheap >= 0, cheap * on_cheap + dear * (1 - on_cheap), np.inf)
    return np.asarray(start + other_start + np.maximum(data, other_data) + work)


def least_in_a_pair(lines: Lines, hours: float) -> Floats:
    """What every pair that a configuration is in costs at the least, by the bound at some prices of an hour, in USD."""
    if not (lines.work_hours <= hours).any():
        return np.full(len(lines.nodes), math.inf)
    start, begun = float(lines.start_usd.min()), lines.start_usd + lines.data_usd
    found = np.zeros(len(lines.nodes))
    unit = 0.0 if math.isinf(hours) else float(lines.work_usd.min()) / max(hours, 1e-9)
    for multiple in HOUR_PRICES if unit else (0.0,):
        price = multiple * unit
        priced = lines.work_usd + price * lines.work_hours
        rest = np.minimum(priced + start, float((lines.start_usd + priced).min()))
        np.maximum(found, begun + rest - (price * hours if price else 0.0), out=found)
    return found


def _promising(lines: Lines, hours: float, most_usd: float) -> _Promising:
    """Pairs of configurations that the bound leaves below `most_usd`."""
    floors = least_in_a_pair(lines, hours)
    some = np.flatnonzero(floors < most_usd)
    least = most_usd if len(some) < len(floors) else math.inf
    left = len(some) > MOST_LINES
    if left:
        some = some[np.argsort(floors[some], kind="stable")]
        least, some = min(least, float(floors[some[MOST_LINES]])), some[:MOST_LINES]
    mine, found = lines.take(some), list[tuple[float, int, int]]()
    for number in range(1, len(some)):
        bounds = pair_bounds(mine.take(np.array([number])), mine.take(np.arange(number)), hours)[0]
        least = min(least, float(bounds.min()))
        moved = mine.place[:number] != mine.place[number]
        bounds = bounds + np.where(moved, np.minimum(mine.data_usd[:number], mine.data_usd[number]), 0.0)
        found += [(float(bounds[other]), number, other) for other in np.flatnonzero(bounds < most_usd).tolist()]
        if len(found) > 4 * MOST_PAIRS:
            found = heapq.nsmallest(MOST_PAIRS + 1, found)
    return _Promising(mine, heapq.nsmallest(MOST_PAIRS + 1, found), least, left)


def _part(context: Context, lots: list[Lot], lines: Lines, number: int) -> Part:
    lot, nodes = lots[int(lines.lot[number])], int(lines.nodes[number])
    return Part(Named(lot, None, nodes), context.estimator.row(lot.machine, nodes), STEPS)


def _rank(part: Part) -> tuple[bool, float]:
    """Interruptible phases first, then the slowest."""
    return not part.named.lot.rate, -part.row.hours_with_goodput


def _priced(context: Context, first: Part, second: Part, deadline: float) -> tuple[int, str] | None:
    """The exact cost of two phases at the best share of the cheaper, in words too; None if they cannot be in time."""
    cheap_first = _work_usd(context, first) <= _work_usd(context, second)

    def plan(on_cheap: int) -> tuple[float, int] | None:
        steps = (on_cheap, STEPS - on_cheap) if cheap_first else (STEPS - on_cheap, on_cheap)
        parts = [part._replace(steps=many) for part, many in zip((first, second), steps, strict=True)]
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
    words = ", then ".join(f"{part.named.nodes} x {part.named.lot.machine.type.name}" for part in (first, second))
    return best, words


def _work_usd(context: Context, part: Part) -> float:
    """What all the work costs on a configuration by its line."""
    lot, nodes = part.named.lot, part.named.nodes
    (scaling,) = context.estimator.scalings([(lot.machine, range(nodes, nodes + 1))])
    return float(lines_of(context, lot, scaling).work_usd[0])
