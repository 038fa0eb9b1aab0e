"""Whether a plan of two phases is cheaper: every pair of configurations, priced exactly or excluded by a bound.

Cost and hours of a share x of the work on configuration k have linear lower bounds

    cost_k(x) >= A_k + B_k x          hours_k(x) >= a + b_k x          a: set-up

which are exact without preemption except for rounding up to billing steps. With preemption, w hours of work take at
least w e^(r R) (1 + l + sqrt(l (2 + l))) hours, l = r d, under any checkpoint interval (e^y - 1 >= y + y^2 / 2 in
Daly's equation), and hours at a confidence above one half are at least e^(z s) times that, s of the estimate and of
waits between zones. Moves and windows only add.

The least cost under these bounds is a linear programme with two rows, the work and the deadline. At a vertex at most
two configurations do work, and any other only adds its set-up. So the bound for pairs and single configurations also
holds for the plans of three phases of earlier versions. Pairs whose bound is below the plan are priced exactly, at
the largest share that the cheaper of the two can do within the deadline.

By duality a pair (k, j) within H hours of work costs at least, at any price mu >= 0 of an hour,

    A_k + A_j + min(B_k + mu b_k, B_j + mu b_j) - mu H

so no pair with configuration k costs less than A_k - mu H + min(B_k + mu b_k + min_j A_j, min_j (A_j + B_j + mu
b_j)). Configurations that this excludes at one of several `mu` are dropped before pairs are formed.
"""

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.planner.verify.billed_hours import means_of
from gpuplan.planner.verify.estimator_port import Scaling
from gpuplan.planner.verify.named_offers import Named
from gpuplan.planner.verify.offer_counts import undominated
from gpuplan.planner.verify.offer_groups import OfferGroup
from gpuplan.planner.verify.schedule_check import STEPS, Part, schedule, total_micros
from gpuplan.planner.verify.verification_context import Context
from gpuplan.planner.verify.wall_clock_hours import (
    NEVER_HOURS,
    Floats,
    Ints,
    between_zones,
    quantile,
    wall_hours,
)

#: The most pairs that are priced exactly, in ascending order of their bounds.
MOST_PAIRS = 2000
#: The most configurations of which pairs are formed, in ascending order of their bounds; the bound covers the
#: others.
MOST_LINES = 3000
#: Steps of the share tried on either side of the share at which the deadline binds.
BESIDE = 2
#: Prices of an hour for the dual bound, as multiples of cost over hours; every price gives a valid bound.
HOUR_PRICES = (0.0, *np.geomspace(1e-3, 1e3, 48).tolist())


class Lines(NamedTuple):
    """Linear lower bounds of configurations: USD to start, for the data and for all the work, and hours of all the
    work and of the set-up before it.

    Arrays of equal length; `offer_group` indexes the list of offer groups, `place` numbers places.
    """

    start_usd: Floats
    data_usd: Floats
    work_usd: Floats
    work_hours: Floats
    setup_hours: Floats
    offer_group: Ints
    nodes: Ints
    place: Ints

    def take(self, which: Ints) -> "Lines":
        """The bounds at these indices."""
        return self._replace(**{name: getattr(self, name)[which] for name in self._fields})


@dataclass(frozen=True, slots=True, kw_only=True)
class InPhases:
    """Result over plans in phases.

    `least_usd` is the lower bound on the cost of any of them (None: no deadline binds, or none is possible),
    `cheapest` the cheapest pair priced exactly (micro-dollars, description), `priced` the number of such pairs, and
    `left` whether some pairs rest on the bound alone.
    """

    least_usd: float | None
    cheapest: tuple[int, str] | None
    priced: int
    left: bool


class _Promising(NamedTuple):
    """Pairs of one group as (bound in USD, indices of its lines), the lower bound of all its pairs, and whether some
    configurations rest on that bound alone.
    """

    lines: Lines
    pairs: list[tuple[float, int, int]]
    least_usd: float
    left: bool


def in_phases(context: Context, most_micros: float, *, plan_micros: float = 0.0) -> InPhases | None:
    """Plans of two phases below `most_micros`, and the lower bound, computed up to `plan_micros` if that is higher.

    None where the job stays on one configuration.
    """
    job = context.submitted_plan.job
    alone = job.constraints.max_phases < 2 or job.objective != "cost" or job.constraints.carbon_budget_kg is not None
    if alone:
        return None
    deadline = math.inf if job.deadline_hours is None else job.deadline_hours
    format_usd = max(most_micros, plan_micros) / 1e6
    offer_groups = undominated(context, context.open_offer_groups)
    least, left, promising = math.inf, False, list[tuple[float, Lines, int, int]]()
    for lines in _groups(context, offer_groups):
        least = min(least, _alone(lines, deadline))
        pairs_of_group = _promising(lines, deadline, format_usd)
        least, left = min(least, pairs_of_group.least_usd), left or pairs_of_group.left
        cheap_enough = (pair for pair in pairs_of_group.pairs if pair[0] < most_micros / 1e6)
        promising += [(bound, pairs_of_group.lines, one, other) for bound, one, other in cheap_enough]
    left = left or len(promising) > MOST_PAIRS
    promising = heapq.nsmallest(MOST_PAIRS, promising, key=lambda pair: pair[0])
    cheapest: tuple[int, str] | None = None
    priced = 0
    for bound, lines, *pair in promising:
        limit = most_micros if cheapest is None else min(most_micros, cheapest[0])
        if bound * 1e6 >= limit:
            break
        first, second = sorted((_part(context, offer_groups, lines, number) for number in pair), key=_rank)
        priced_pair = _priced(context, first, second, deadline)
        priced += 1
        if priced_pair is not None and priced_pair[0] < limit:
            cheapest = priced_pair
    return InPhases(least_usd=least if math.isfinite(least) else None, cheapest=cheapest, priced=priced, left=left)


def _groups(context: Context, offer_groups: list[OfferGroup]) -> Iterator[Lines]:
    """The linear bounds of every configuration, one array set per migration class."""
    groups: dict[tuple[str, int], list[Lines]] = {}
    number_of = {id(offer_group): number for number, offer_group in enumerate(offer_groups)}
    places = {
        place: number for number, place in enumerate(dict.fromkeys(offer_group.place for offer_group in offer_groups))
    }
    most = context.submitted_plan.job.constraints.max_accelerators or math.inf
    for offer_group, scaling in context.enumeration.runnable(
        offer_groups, context.submitted_plan.job.constraints.max_nodes
    ):
        stack = accelerators()[offer_group.machine.type.accelerator].stack
        few = (scaling.nodes * offer_group.machine.type.devices <= most) & (scaling.nodes <= offer_group.quota_nodes)
        for precision in np.unique(scaling.precision[few]).tolist():
            some = scaling.take(few & (scaling.precision == precision))
            lines = lines_of(
                context,
                offer_group,
                some,
                group_number=number_of[id(offer_group)],
                place_number=places[offer_group.place],
            )
            groups.setdefault((stack, precision), []).append(lines)
    for group in groups.values():
        yield Lines(*(np.concatenate(column) for column in zip(*group, strict=True)))


def lines_of(
    context: Context, offer_group: OfferGroup, scaling: Scaling, *, group_number: int = 0, place_number: int = 0
) -> Lines:
    """The linear bounds of an offer group's configurations, without those on which the work never ends."""
    settings, rates = context.submitted_plan.settings, context.rates
    ends = scaling.hours_with_goodput <= NEVER_HOURS
    write = rates.checkpoint_hours(1) / scaling.nodes
    if offer_group.rate:
        rate, _ = rates.preempted(offer_group, scaling.nodes)
        ends = wall_hours(scaling.hours_with_goodput, write, settings.restart_hours, rate) <= NEVER_HOURS
    scaling, write = scaling.take(ends), write[ends]
    nodes, work = scaling.nodes, scaling.hours_with_goodput
    rate, wait = rates.preempted(offer_group, nodes)
    setup = rates.setup_hours(offer_group, nodes)
    lost = rate * write
    growth = np.exp(rate * settings.restart_hours) * (1 + lost + np.sqrt(lost * (2 + lost)))
    on_clock = growth * (1 + rate * wait)
    z = quantile(context.submitted_plan.job.confidence)
    term = 0 if offer_group.paid else offer_group.kind.term_hours
    compute, place = nodes * offer_group.micros / 1e6, rates.place(offer_group.place)
    by_hour = nodes * offer_group.machine.power_usd_per_hour + (0.0 if term else compute)
    # Cost follows expected hours; time follows quantiles around the estimate.
    expected_work = means_of(work, scaling.log_sigma)
    certain = not offer_group.rate or z >= 0
    sigma = np.hypot(scaling.log_sigma, between_zones(rate, wait))
    return Lines(
        start_usd=(by_hour + place.storage_per_hour) * setup + compute * term,
        data_usd=np.full(len(nodes), place.egress),
        work_usd=expected_work * (by_hour * growth + place.storage_per_hour * on_clock),
        work_hours=work * on_clock * np.exp(z * sigma) if certain else np.zeros(len(nodes)),
        setup_hours=setup,
        offer_group=np.full(len(nodes), group_number),
        nodes=nodes,
        place=np.full(len(nodes), place_number),
    )


def _alone(lines: Lines, hours: float) -> float:
    """The least cost in USD of a single configuration that takes at most `hours`; inf if none does."""
    usd = (lines.start_usd + lines.data_usd + lines.work_usd)[lines.setup_hours + lines.work_hours <= hours]
    return float(usd.min(initial=math.inf))


#: A bound takes hours in whatever order, and may not call a pair late that is just in time.
_ROUNDED_UP = 1 + 1e-12


def pair_bounds(one: Lines, other: Lines, hours: float) -> Floats:
    """Lower bounds in USD on plans on two configurations within `hours`; inf where impossible: [one, other].

    The data are brought at least to the dearer of the two places.
    """
    (start, data, usd, takes, setup), others = (column[:, None] for column in one[:5]), other[:5]
    other_start, other_data, other_usd, other_takes, other_setup = others
    room = hours * _ROUNDED_UP - setup - other_setup
    cheap, dear = np.minimum(usd, other_usd), np.maximum(usd, other_usd)
    cheap_takes = np.where(usd < other_usd, takes, other_takes)
    dear_takes = np.where(usd < other_usd, other_takes, takes)
    on_cheap = np.ones(cheap.shape)
    late = cheap_takes > room
    if late.any():
        gains = cheap_takes - dear_takes
        with np.errstate(divide="ignore", invalid="ignore"):
            on_cheap = np.where(late, np.where(gains > 0, (room - dear_takes) / gains, -1.0), 1.0)
    work = np.where(on_cheap >= 0, cheap * on_cheap + dear * (1 - on_cheap), np.inf)
    return np.asarray(start + other_start + np.maximum(data, other_data) + work)


def least_in_a_pair(lines: Lines, hours: float) -> Floats:
    """A lower bound in USD on every pair that contains a configuration, by duality at several prices of an hour."""
    if not (lines.setup_hours + lines.work_hours + lines.setup_hours.min() <= hours * _ROUNDED_UP).any():
        return np.full(len(lines.nodes), math.inf)
    begun = lines.start_usd + lines.data_usd
    floors = np.zeros(len(lines.nodes))
    unit = 0.0 if math.isinf(hours) else float(lines.work_usd.min()) / max(hours, 1e-9)
    for multiple in HOUR_PRICES if unit else (0.0,):
        price = multiple * unit
        priced, starts = lines.work_usd + price * lines.work_hours, lines.start_usd + price * lines.setup_hours
        rest = np.minimum(priced + float(starts.min()), float((starts + priced).min()))
        np.maximum(floors, begun + rest + price * lines.setup_hours - (price * hours if price else 0.0), out=floors)
    return floors


def _promising(lines: Lines, hours: float, most_usd: float) -> _Promising:
    """Pairs of configurations with a bound below `most_usd`."""
    floors = least_in_a_pair(lines, hours)
    some = np.flatnonzero(floors < most_usd)
    least = most_usd if len(some) < len(floors) else math.inf
    left = len(some) > MOST_LINES
    if left:
        some = some[np.argsort(floors[some], kind="stable")]
        least, some = min(least, float(floors[some[MOST_LINES]])), some[:MOST_LINES]
    mine, pairs = lines.take(some), list[tuple[float, int, int]]()
    for number in range(1, len(some)):
        bounds = pair_bounds(mine.take(np.array([number])), mine.take(np.arange(number)), hours)[0]
        least = min(least, float(bounds.min()))
        moved = mine.place[:number] != mine.place[number]
        bounds = bounds + np.where(moved, np.minimum(mine.data_usd[:number], mine.data_usd[number]), 0.0)
        pairs += [(float(bounds[other]), number, other) for other in np.flatnonzero(bounds < most_usd).tolist()]
        if len(pairs) > 4 * MOST_PAIRS:
            pairs = heapq.nsmallest(MOST_PAIRS + 1, pairs)
    return _Promising(mine, heapq.nsmallest(MOST_PAIRS + 1, pairs), least, left)


def _part(context: Context, offer_groups: list[OfferGroup], lines: Lines, number: int) -> Part:
    offer_group, nodes = offer_groups[int(lines.offer_group[number])], int(lines.nodes[number])
    return Part(Named(offer_group, None, nodes), context.estimator.row(offer_group.machine, nodes), STEPS)


def _rank(part: Part) -> tuple[bool, float]:
    """Interruptible phases first, then the slowest."""
    return not part.named.offer_group.rate, -part.row.hours_with_goodput


def _priced(context: Context, first: Part, second: Part, deadline: float) -> tuple[int, str] | None:
    """The exact cost of two phases at the best share of the cheaper, and their description; None if they miss the
    deadline.
    """
    cheap_first = _work_usd(context, first) <= _work_usd(context, second)

    def plan(on_cheap: int) -> tuple[float, int] | None:
        steps = (on_cheap, STEPS - on_cheap) if cheap_first else (STEPS - on_cheap, on_cheap)
        parts = [part._replace(steps=step) for part, step in zip((first, second), steps, strict=True)]
        phases = schedule(context, parts)
        return None if phases is None else (sum(phase.confident for phase in phases), total_micros(phases))

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
        f"{part.named.nodes} x {part.named.offer_group.machine.type.name}" for part in (first, second)
    )
    return best, words


def _work_usd(context: Context, part: Part) -> float:
    """The cost of the whole work on a configuration by its linear bound."""
    offer_group, nodes = part.named.offer_group, part.named.nodes
    (scaling,) = context.estimator.scalings([(offer_group.machine, range(nodes, nodes + 1))])
    return float(lines_of(context, offer_group, scaling).work_usd[0])
