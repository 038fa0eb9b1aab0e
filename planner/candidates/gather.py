"""From a job and a snapshot to every configuration that could run it, and a reason for every offer that cannot."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.candidates.bought import MOST_KINDS, runnable
from planner.candidates.configurations import Configurations, joined, of_a_share
from planner.candidates.estimated import Estimated, estimated, shapes_left
from planner.candidates.kept_estimates import Able
from planner.candidates.machine_rows import MachineRows
from planner.candidates.market import Market
from planner.candidates.places import region_costs, under_way
from planner.candidates.requirements import BIT, CARBON, refuse_what_matches_nothing
from planner.candidates.screen import RegionCosts, Screened, host_gib, screen, up_already
from planner.candidates.shapes import Shapes
from planner.cost.checkpoints import checkpoint_gb
from planner.estimate.host_memory import offloaded_gib
from planner.estimate.machines import REASONS
from planner.kept import kept_per_snapshot
from planner.origin import Origin
from planner.question import Question


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidates:
    """Configurations that meet every constraint but deadline and budget, and what became of all offers.

    `table` holds those that can do all of the work, `shares` also those that have room for a part of it only.
    `screened`, `costs` and `estimated` have one element per market.
    """

    question: Question
    screened: tuple[Screened, ...]
    costs: tuple[RegionCosts, ...]
    estimated: tuple[Estimated, ...]
    table: Configurations
    shares: Configurations
    offers_considered: int
    rejected: dict[str, int]


def candidates(question: Question, *, relaxed_nodes: int | None = None) -> Candidates:
    """All configurations of all markets.

    With `relaxed_nodes` the ones that break constraints are kept, marked with the bits they break,
    up to that many nodes. Raises `UnusableInput` for constraints that name nothing there is.
    """
    job, settings = question.job, question.settings
    refuse_what_matches_nothing(tuple(market.columns for market in question.markets), job.constraints)
    relaxed = relaxed_nodes is not None
    stored_gb = settings.checkpoints_kept * checkpoint_gb(question.work, job.training)
    parts: list[Configurations] = []
    screens, places, ready = [], [], []
    rejected: dict[str, int] = {}
    for market in question.markets:
        own = bool(market.owned)
        costs = _costs(question, market, stored_gb)
        rate = settings.default_interruptions_per_hour
        if market.up:
            screened = up_already(job, market.snapshot, own=own)
        else:
            screened = screen(job, market.snapshot, costs, rate, own=own, paid=market.term_paid, keep_breakers=relaxed)
        screens.append(screened)
        places.append(costs)
    # Markets that are parts of one snapshot have their shapes in common, and are estimated together.
    together: dict[Shapes, set[int]] = {}
    for market, screened in zip(question.markets, screens, strict=True):
        together.setdefault(market.snapshot.shapes, set()).update(shapes_left(market, screened))
    for number, (market, screened, costs) in enumerate(zip(question.markets, screens, places, strict=True)):
        wanted = together[market.snapshot.shapes]
        each = estimated(question, market, screened, relaxed_nodes or job.constraints.max_nodes, wanted)
        parts.append(of_a_share(question, number, screened, each, costs, keep=True))
        ready.append(each)
        for reason, count in _rejections(question, market, screened, each, parts[-1].whole()).items():
            rejected[reason] = rejected.get(reason, 0) + count
        if question.origin is not None:
            parts[-1], left = _able_to_take_over(parts[-1], market, each, question.origin)
            if left:
                rejected[CANNOT_TAKE_OVER] = rejected.get(CANNOT_TAKE_OVER, 0) + left
    table = joined(parts)
    if not relaxed:
        table = table.take(table.broken == 0)
    return Candidates(
        question=question,
        screened=tuple(screens),
        costs=tuple(places),
        estimated=tuple(ready),
        table=table.whole(),
        shares=table,
        offers_considered=sum(len(market.columns) for market in question.markets),
        rejected=rejected,
    )


def estimated_up(question: Question) -> tuple[Candidates, Estimated]:
    """The one configuration of a question whose one market is up, whatever requirements it breaks; none if it cannot run."""
    (market,) = question.markets
    screened = up_already(question.job, market.snapshot, own=bool(market.owned))
    wanted = shapes_left(market, screened)
    ready = estimated(question, market, screened, question.job.constraints.max_nodes, wanted)
    costs = _costs(question, market, 0.0)
    table = of_a_share(question, 0, screened, ready, costs)
    found = Candidates(
        question=question,
        screened=(screened,),
        costs=(costs,),
        estimated=(ready,),
        table=table,
        shares=table,
        offers_considered=1,
        rejected={},
    )
    return found, ready


#: Why machines whose accelerators have room for a job cannot run it.
HOSTS_TOO_SMALL = "host memory too small for what is offloaded to it"
#: Why machines that could run a job cannot go on with it.
CANNOT_TAKE_OVER = "another software stack or precision than the checkpoint's"


def _costs(question: Question, market: Market, stored_gb: float) -> RegionCosts:
    costs = region_costs(market.columns, question.job.data, stored_gb)
    if question.origin is None:
        return costs
    return under_way(costs, market.columns, question.origin, checkpoint_gb(question.work, question.job.training))


def _able_to_take_over(
    table: Configurations, market: Market, ready: Estimated, origin: Origin
) -> tuple[Configurations, int]:
    """The configurations that can read the checkpoint of a job that is under way, and of how many offers none can."""
    same = np.array([each == origin.kin for each in kin(table, market, ready)], np.bool_)
    left = set(table.place.tolist()) - set(table.place[same].tolist())
    return table.take(same), len(left)


def kin(table: Configurations, market: Market, ready: Estimated) -> list[tuple[str, str]]:
    """Software stack and precision of each configuration of a market: what a checkpoint is good for."""
    shapes, estimates = market.snapshot.shapes, ready.estimates
    accelerator = shapes.accelerator[shapes.of_type[market.snapshot.type_index[table.place]]]
    stacks = [each.stack for each in shapes.accelerators]
    precisions = estimates.precision[table.row]
    return [
        (stacks[a], estimates.precisions[p]) for a, p in zip(accelerator.tolist(), precisions.tolist(), strict=True)
    ]


def _rejections(
    question: Question, market: Market, screened: Screened, ready: Estimated, table: Configurations
) -> dict[str, int]:
    """Offers left out, by reason: constraints, machines that cannot run the job, a cheaper offer of the same machine."""
    limits = _Limits(question.job.constraints.max_accelerators, offloaded_gib(question.work, question.job.training))
    if not table.broken.any():
        if ready.able is not None and len(table) == len(table.bought):
            # Neither length nor constraints leave out any that can run such steps.
            return _rejected_of_any_length(market, screened, ready.rows, ready.able, limits)
        return _rejected(market, screened, ready.rows, ready.estimates.reason, table.place, limits=limits)
    # A carbon budget is the one requirement that parts the node counts and places of a shape.
    table = table.take(table.broken & ~CARBON == 0)
    rejected = _rejected(market, screened, ready.rows, ready.estimates.reason, table.place, limits=limits)
    return rejected | _by_carbon(table, len(market.columns)) if table.broken.any() else rejected


@kept_per_snapshot(MOST_KINDS)
def _rejected_of_any_length(
    market: Market, screened: Screened, rows: MachineRows, able: Able, limits: "_Limits"
) -> dict[str, int]:
    """The offers left out of jobs that run wherever such steps can, which is the same for all of them. Not to be changed."""
    places = runnable(market, screened, rows, able.reason, limits.hosts_gib).place
    return _rejected(market, screened, rows, able.reason, places, limits=limits)


class _Limits(NamedTuple):
    """Accelerators at most, None for any number, and GiB that the hosts hold together at the least."""

    most_accelerators: int | None
    hosts_gib: float


def _rejected(
    market: Market,
    screened: Screened,
    rows: MachineRows,
    reason: NDArray[np.int64],
    places: NDArray[np.int64],
    *,
    limits: _Limits,
) -> dict[str, int]:
    """Offers left out, by reason, where configurations at these places are left; `reason` is that of the estimates."""
    rejected = dict(screened.rejected)
    shapes = market.snapshot.shapes
    ran = np.zeros(len(shapes), np.bool_)
    ran[shapes.of_type[market.snapshot.type_index[places]]] = True
    lost = np.flatnonzero(~ran & (screened.allowed_of_shape > 0))
    offers = screened.allowed_of_shape[lost]
    of_place = shapes.of_type[market.snapshot.type_index[screened.places]]
    memory = np.zeros(len(shapes))
    np.maximum.at(memory, of_place, host_gib(market.columns)[market.snapshot.type_index[screened.places]])
    for why, count in _why(shapes, rows, reason, lost, offers, limits=limits, host_memory=memory):
        rejected[why] = rejected.get(why, 0) + count
    dominated = int(screened.allowed_of_shape[ran].sum()) - _distinct(places)
    if dominated:
        rejected["dearer than another offer of the same machine"] = dominated
    return rejected


def _distinct(*values: NDArray[np.int64]) -> int:
    """How many different elements there are, where those alike in all of these values stand together."""
    if not len(values[0]):
        return 0
    begins = values[0][1:] != values[0][:-1]
    for each in values[1:]:
        begins |= each[1:] != each[:-1]
    return 1 + int(np.count_nonzero(begins))


def _by_carbon(table: Configurations, places: int) -> dict[str, int]:
    """Offers of which carbon leaves nothing: those over the budget at every node count, and those nobody knows it of."""
    tried, known, kept = np.zeros((3, places), np.bool_)
    tried[table.place] = True
    known[table.place[~np.isnan(table.carbon_kg)]] = True
    kept[table.place[table.broken == 0]] = True
    counts = {
        "over constraints.carbon_budget_kg at every node count": int((tried & known & ~kept).sum()),
        "carbon unknown, so that neither a budget nor the objective can count it": int((tried & ~known & ~kept).sum()),
    }
    return {reason: count for reason, count in counts.items() if count}


def _why(
    shapes: Shapes,
    rows: MachineRows,
    reason: NDArray[np.int64],
    lost: NDArray[np.int64],
    offers: NDArray[np.int64],
    *,
    limits: _Limits,
    host_memory: NDArray[np.float64],
) -> list[tuple[str, int]]:
    """Reasons and offers of these shapes, which have so many: of each the reason that most of its node counts share.

    `host_memory` is the most GiB that a host of each shape has.
    """
    kinds = len(REASONS)
    codes = np.maximum(reason[rows.row], 0)
    counts = np.bincount(rows.shape * kinds + codes, minlength=(len(rows.first) - 1) * kinds).reshape(-1, kinds)[lost]
    counts[:, 0] = 0
    # Where the estimates give no reason, the first code stands, which is none.
    code, asked = np.argmax(counts, axis=1), rows.first[lost + 1] > rows.first[lost]
    of_code = np.bincount(code[asked], weights=offers[asked], minlength=kinds)
    reasons = [(REASONS[each], int(of_code[each])) for each in (1 + np.flatnonzero(of_code[1:])).tolist()]
    if not asked.all():
        reasons.append(("not among constraints.max_nodes", int(offers[~asked].sum())))
    for each in np.flatnonzero(asked & (code == 0)).tolist():
        shape, most = int(lost[each]), limits.most_accelerators
        mine = slice(rows.first[shape], rows.first[shape + 1])
        able = rows.nodes[mine][reason[rows.row[mine]] == 0]
        if limits.hosts_gib and not (able * host_memory[shape] >= limits.hosts_gib).any():
            reasons.append((HOSTS_TOO_SMALL, int(offers[each])))
        elif most is not None and _least_devices(shapes, rows, shape) > most:
            reasons.append(("not among constraints.max_accelerators", int(offers[each])))
        else:
            too_long = "longer than its price kind or free windows allow, or than a thousand years"
            reasons.append((too_long, int(offers[each])))
    return reasons


def _least_devices(shapes: Shapes, rows: MachineRows, shape: int) -> int:
    nodes = rows.nodes[rows.first[shape] : rows.first[shape + 1]]
    return int(nodes.min()) * int(shapes.devices[shape])


def every_offer_of(found: Candidates, market: int, place: int) -> Configurations:
    """Every allowed offer of the cell in which `place` stands, dominated ones too, at every node count.

    With configurations that have room for a share of the work only.
    """
    return on_offers(found, market, allowed_in_the_cell(found, market, place))


def allowed_in_the_cell(found: Candidates, market: int, place: int) -> NDArray[np.int64]:
    """The places of every allowed offer of the cell in which `place` stands, dominated ones too."""
    snapshot, screened = found.question.markets[market].snapshot, found.screened[market]
    first, last = np.searchsorted(snapshot.cell, [snapshot.cell[place], snapshot.cell[place] + 1])
    return np.asarray(first + np.flatnonzero(screened.allowed[snapshot.group[first:last]]), np.int64)


def on_offers(found: Candidates, market: int, places: NDArray[np.int64]) -> Configurations:
    """What runs on the offers at these places of a market, at every node count, be it for a share of the work only."""
    screened = replace(found.screened[market], places=places, broken=np.zeros(len(places), np.uint16))
    table = of_a_share(found.question, market, screened, found.estimated[market], found.costs[market])
    return table.take(table.broken == 0)


def over(table: Configurations, deadline_hours: float | None, budget_usd: float | None) -> NDArray[np.uint16]:
    """Requirement bits of each configuration with deadline and budget added; not to be written to.

    Cost is compared as it is shown, in whole micro-dollars: the cost of a plan is a sufficient budget for it.
    """
    bits = table.broken
    if deadline_hours is not None:
        bits = bits | np.where(table.bill.hours_kept > deadline_hours, BIT["deadline"], np.uint16(0))
    if budget_usd is not None:
        dear = np.rint(table.bill.cost_usd * 1e6) / 1e6 > budget_usd
        bits = bits | np.where(dear, BIT["budget_usd"], np.uint16(0))
    return bits


def with_late_and_dear(found: Candidates, broken: NDArray[np.uint16]) -> dict[str, int]:
    """The rejections, with the evaluated offers that no node count brings within deadline and budget."""
    table, feasible = found.table, broken == 0
    # Configurations of one offer stand together, in the order of their markets.
    late = _distinct(table.place, table.market) - _distinct(table.place[feasible], table.market[feasible])
    return found.rejected | ({"misses deadline or budget at every node count": late} if late else {})
