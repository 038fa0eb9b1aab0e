"""Every configuration of a snapshot that can run a job, and a reason for every rejected offer."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.candidates.configurations import Configurations, joined, of_a_share
from gpuplan.planner.candidates.estimated_machines import Estimated, estimated, shapes_left
from gpuplan.planner.candidates.job_requirements import BIT, CARBON, QUOTA, refuse_what_matches_nothing
from gpuplan.planner.candidates.machine_shapes import Shapes
from gpuplan.planner.candidates.markets import Market
from gpuplan.planner.candidates.node_counts import MachineCandidates
from gpuplan.planner.candidates.offer_screening import RegionCosts, Screened, host_gib, screen, up_already
from gpuplan.planner.candidates.place_costs import region_costs, under_way
from gpuplan.planner.candidates.planning_problem import Question
from gpuplan.planner.candidates.priced_configurations import runnable
from gpuplan.planner.cost.preemption_and_checkpoint_interval import checkpoint_gb
from gpuplan.planner.model.current_placement import Origin
from gpuplan.planner.performance.estimator_request import REASONS
from gpuplan.planner.performance.training_states import offloaded_gib


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidates:
    """Configurations that meet all constraints except deadline and budget, and the reasons of rejected offers.

    `table` holds those that can do all of the work, `shares` also those that can do only part of it. `screened`, `costs`
    and `estimated` have one element per market. `rejected` counts offers by reason. `over_quota` holds the configurations
    that break nothing but a known quota, None where no quota is known.
    """

    question: Question
    screened: tuple[Screened, ...]
    costs: tuple[RegionCosts, ...]
    estimated: tuple[Estimated, ...]
    table: Configurations
    shares: Configurations
    offers_considered: int
    rejected: dict[str, int]
    over_quota: Configurations | None = None


def candidates(question: Question, *, relaxed_nodes: int | None = None) -> Candidates:
    """All configurations of all markets.

    With `relaxed_nodes`, configurations up to that many nodes that break constraints are included, marked with the bits of
    the constraints. Raises `UnusableInput` for constraints that match nothing in any market.
    """
    job = question.job
    refuse_what_matches_nothing(tuple(market.columns for market in question.markets), job.constraints)
    relaxed = relaxed_nodes is not None
    stored_gb = question.settings.checkpoints_kept * checkpoint_gb(question.work, job.training)
    parts: list[Configurations] = []
    places = [_costs(question, market, stored_gb) for market in question.markets]
    screens = [
        _screened(question, market, costs, relaxed=relaxed)
        for market, costs in zip(question.markets, places, strict=True)
    ]
    ready = []
    rejected: dict[str, int] = {}
    # Markets of one snapshot share their machine shapes, so they are estimated together.
    together: dict[Shapes, set[int]] = {}
    for market, screened in zip(question.markets, screens, strict=True):
        together.setdefault(market.snapshot.shapes, set()).update(shapes_left(market, screened))
    for number, (market, screened, costs) in enumerate(zip(question.markets, screens, places, strict=True)):
        wanted = together[market.snapshot.shapes]
        market_estimates = estimated(question, market, screened, relaxed_nodes or job.constraints.max_nodes, wanted)
        parts.append(of_a_share(question, number, screened, market_estimates, costs, keep=True))
        ready.append(market_estimates)
        for reason, count in _rejections(question, market, screened, market_estimates, parts[-1].whole()).items():
            rejected[reason] = rejected.get(reason, 0) + count
        if question.origin is not None:
            parts[-1], left = _able_to_take_over(parts[-1], market, market_estimates, question.origin)
            if left:
                rejected[CANNOT_TAKE_OVER] = rejected.get(CANNOT_TAKE_OVER, 0) + left
    table = joined(parts)
    limited = any(market.quotas for market in question.markets)
    over_quota = table.take(table.broken == QUOTA).whole() if limited else None
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
        over_quota=over_quota,
    )


def _screened(question: Question, market: Market, costs: RegionCosts, *, relaxed: bool) -> Screened:
    """The offers of one market to evaluate."""
    job, settings, owned = question.job, question.settings, bool(market.owned)
    if market.up:
        return up_already(job, market.snapshot, owned=owned)
    return screen(
        job,
        market.snapshot,
        costs,
        settings.default_interruptions_per_hour,
        owned=owned,
        paid=market.term_paid,
        keep_breakers=relaxed,
        quotas=market.quotas,
        by_zones=settings.spot_wait_hours is None,
    )


def estimated_up(question: Question) -> tuple[Candidates, Estimated]:
    """The one configuration of a question whose only market is up, even if it breaks requirements; none if it cannot run."""
    (market,) = question.markets
    screened = up_already(question.job, market.snapshot, owned=bool(market.owned))
    wanted = shapes_left(market, screened)
    ready = estimated(question, market, screened, question.job.constraints.max_nodes, wanted)
    costs = _costs(question, market, 0.0)
    table = of_a_share(question, 0, screened, ready, costs)
    candidates = Candidates(
        question=question,
        screened=(screened,),
        costs=(costs,),
        estimated=(ready,),
        table=table,
        shares=table,
        offers_considered=1,
        rejected={},
    )
    return candidates, ready


#: Reason for offers of which a quota does not even allow the least number of nodes that can run a job.
OVER_QUOTA = "over constraints.quotas at every node count"
#: Reason for machines with enough accelerator memory that cannot run a job.
HOSTS_TOO_SMALL = "host memory too small for what is offloaded to it"
#: Reason for machines that can run a job but not continue it.
CANNOT_TAKE_OVER = "another software stack or precision than the checkpoint's"


def _costs(question: Question, market: Market, stored_gb: float) -> RegionCosts:
    costs = region_costs(market.columns, question.job.data, stored_gb)
    if question.origin is None:
        return costs
    return under_way(costs, market.columns, question.origin, checkpoint_gb(question.work, question.job.training))


def _able_to_take_over(
    table: Configurations, market: Market, ready: Estimated, origin: Origin
) -> tuple[Configurations, int]:
    """The configurations that can read the checkpoint of a running job, and the number of offers without any."""
    same = np.array(
        [
            stack_and_precision == origin.migration_class
            for stack_and_precision in migration_class(table, market, ready)
        ],
        np.bool_,
    )
    left = set(table.place.tolist()) - set(table.place[same].tolist())
    return table.take(same), len(left)


def migration_class(table: Configurations, market: Market, ready: Estimated) -> list[tuple[str, str]]:
    """(software stack, precision) of each configuration of a market; a checkpoint can move only within such a class."""
    shapes, estimates = market.snapshot.shapes, ready.estimates
    accelerator = shapes.accelerator[shapes.of_type[market.snapshot.type_index[table.place]]]
    stacks = [accelerator.stack for accelerator in shapes.accelerators]
    precisions = estimates.precision[table.row]
    return [
        (stacks[a], estimates.precisions[p]) for a, p in zip(accelerator.tolist(), precisions.tolist(), strict=True)
    ]


def _rejections(
    question: Question, market: Market, screened: Screened, ready: Estimated, table: Configurations
) -> dict[str, int]:
    """Rejected offers by reason: constraints, machines that cannot run the job, a cheaper offer of the same machine."""
    limits = _Limits(question.job.constraints.max_accelerators, offloaded_gib(question.work, question.job.training))
    if not table.broken.any():
        if ready.able is not None and len(table) == len(table.priced_configurations):
            # Neither the length of the job nor constraints exclude a configuration that can run its steps.
            reason = ready.able.reason
            places = runnable(market, screened, ready.rows, reason, limits.hosts_gib).place
            return _rejected(market, screened, ready.rows, reason, places, limits=limits)
        return _rejected(market, screened, ready.rows, ready.estimates.reason, table.place, limits=limits)
    # Only a quota and a carbon budget can reject some node counts and places of a shape and accept others.
    table = table.take(table.broken & ~(CARBON | QUOTA) == 0)
    rejected = _rejected(market, screened, ready.rows, ready.estimates.reason, table.place, limits=limits)
    within = table.take(table.broken & QUOTA == 0)
    if len(within) < len(table):
        count = len(np.setdiff1d(table.place, within.place))
        rejected |= {OVER_QUOTA: count} if count else {}
    return rejected | _by_carbon(within, len(market.columns)) if within.broken.any() else rejected


class _Limits(NamedTuple):
    """The most accelerators (None: any number), and the least GiB of memory that all hosts have together."""

    most_accelerators: int | None
    hosts_gib: float


def _rejected(
    market: Market,
    screened: Screened,
    rows: MachineCandidates,
    reason: NDArray[np.int64],
    places: NDArray[np.int64],
    *,
    limits: _Limits,
) -> dict[str, int]:
    """Rejected offers by reason if configurations remain at `places`; `reason` is that of the estimates."""
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
    """The number of distinct elements, where equal elements are adjacent."""
    if not len(values[0]):
        return 0
    begins = values[0][1:] != values[0][:-1]
    for value in values[1:]:
        begins |= value[1:] != value[:-1]
    return 1 + int(np.count_nonzero(begins))


def _by_carbon(table: Configurations, places: int) -> dict[str, int]:
    """Offers rejected for carbon: those over the budget at every node count, and those with unknown carbon."""
    tried, known, within = np.zeros((3, places), np.bool_)
    tried[table.place] = True
    known[table.place[~np.isnan(table.carbon_kg)]] = True
    within[table.place[table.broken == 0]] = True
    counts = {
        "over constraints.carbon_budget_kg at every node count": int((tried & known & ~within).sum()),
        "carbon unknown, so that neither a budget nor the objective can count it": int(
            (tried & ~known & ~within).sum()
        ),
    }
    return {reason: count for reason, count in counts.items() if count}


def _why(
    shapes: Shapes,
    rows: MachineCandidates,
    reason: NDArray[np.int64],
    lost: NDArray[np.int64],
    offers: NDArray[np.int64],
    *,
    limits: _Limits,
    host_memory: NDArray[np.float64],
) -> list[tuple[str, int]]:
    """(reason, number of offers) of the `lost` shapes, which have `offers` each: the commonest reason of its node counts.

    `host_memory` is the largest memory of a host of each shape, GiB.
    """
    kinds = len(REASONS)
    codes = np.maximum(reason[rows.row], 0)
    counts = np.bincount(rows.shape * kinds + codes, minlength=(len(rows.first) - 1) * kinds).reshape(-1, kinds)[lost]
    counts[:, 0] = 0
    # Where the estimates give no reason, argmax returns code 0, which means none.
    code, asked = np.argmax(counts, axis=1), rows.first[lost + 1] > rows.first[lost]
    of_code = np.bincount(code[asked], weights=offers[asked], minlength=kinds)
    reasons = [(REASONS[number], int(of_code[number])) for number in (1 + np.flatnonzero(of_code[1:])).tolist()]
    if not asked.all():
        reasons.append(("not among constraints.max_nodes", int(offers[~asked].sum())))
    for index in np.flatnonzero(asked & (code == 0)).tolist():
        shape, most = int(lost[index]), limits.most_accelerators
        mine = slice(rows.first[shape], rows.first[shape + 1])
        able = rows.nodes[mine][reason[rows.row[mine]] == 0]
        if limits.hosts_gib and not (able * host_memory[shape] >= limits.hosts_gib).any():
            reasons.append((HOSTS_TOO_SMALL, int(offers[index])))
        elif most is not None and _least_devices(shapes, rows, shape) > most:
            reasons.append(("not among constraints.max_accelerators", int(offers[index])))
        else:
            too_long = "longer than its price kind or free windows allow, or than a thousand years"
            reasons.append((too_long, int(offers[index])))
    return reasons


def _least_devices(shapes: Shapes, rows: MachineCandidates, shape: int) -> int:
    nodes = rows.nodes[rows.first[shape] : rows.first[shape + 1]]
    return int(nodes.min()) * int(shapes.devices[shape])


def every_offer_of(candidates: Candidates, market: int, place: int) -> Configurations:
    """Every allowed offer in the cell of `place`, dominated ones included, at every node count.

    Includes configurations that can do only part of the work.
    """
    return on_offers(candidates, market, allowed_in_the_cell(candidates, market, place))


def allowed_in_the_cell(candidates: Candidates, market: int, place: int) -> NDArray[np.int64]:
    """The places of all allowed offers in the cell of `place`, dominated ones included."""
    snapshot, screened = candidates.question.markets[market].snapshot, candidates.screened[market]
    first, last = np.searchsorted(snapshot.cell, [snapshot.cell[place], snapshot.cell[place] + 1])
    return np.asarray(first + np.flatnonzero(screened.allowed[snapshot.group[first:last]]), np.int64)


def on_offers(candidates: Candidates, market: int, places: NDArray[np.int64]) -> Configurations:
    """Configurations of the offers at these places of a market at every node count, also for only part of the work."""
    screened = replace(candidates.screened[market], places=places, broken=np.zeros(len(places), np.uint32))
    table = of_a_share(candidates.question, market, screened, candidates.estimated[market], candidates.costs[market])
    return table.take(table.broken == 0)


def over(table: Configurations, deadline_hours: float | None, budget_usd: float | None) -> NDArray[np.uint32]:
    """Requirement bits of each configuration with deadline and budget added; callers must not write to them.

    Costs are compared as shown, in whole micro-dollars, so the cost of a plan is a sufficient budget for it.
    """
    bits = table.broken
    if deadline_hours is not None:
        bits = bits | np.where(table.cost_breakdown.hours_at_confidence > deadline_hours, BIT["deadline"], np.uint32(0))
    if budget_usd is not None:
        dear = np.rint(table.cost_breakdown.cost_usd * 1e6) / 1e6 > budget_usd
        bits = bits | np.where(dear, BIT["budget_usd"], np.uint32(0))
    return bits


def with_late_and_dear(candidates: Candidates, broken: NDArray[np.uint32]) -> dict[str, int]:
    """The rejections, plus the evaluated offers that miss deadline or budget at every node count."""
    table, feasible = candidates.table, broken == 0
    # Configurations of one offer are adjacent, in the order of their markets.
    late = _distinct(table.place, table.market) - _distinct(table.place[feasible], table.market[feasible])
    return candidates.rejected | ({"misses deadline or budget at every node count": late} if late else {})
