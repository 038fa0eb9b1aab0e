"""Priced configurations: offers x the node counts at which their machines can run a job, with the inputs of their cost.

Jobs that differ in length, deadline or budget share all of these inputs except the hours of work, so they are cached.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, fields, replace
from functools import lru_cache, partial
from threading import Lock

import numpy as np
from cachetools import LRUCache, cached
from numpy.typing import NDArray

from gpuplan.planner.candidates.configuration_carbon import kg_per_node_hour
from gpuplan.planner.candidates.estimate_cache import Able
from gpuplan.planner.candidates.estimated_machines import Estimated
from gpuplan.planner.candidates.markets import Market
from gpuplan.planner.candidates.node_counts import MachineCandidates
from gpuplan.planner.candidates.offer_screening import RegionCosts, Screened, host_gib, known_rates
from gpuplan.planner.candidates.planning_problem import Question
from gpuplan.planner.candidates.preemption_waits import powers, waits_of
from gpuplan.planner.candidates.setup_hours import setup_hours_of
from gpuplan.planner.cost.cost_breakdown import billing_tables
from gpuplan.planner.cost.preemption_and_checkpoint_interval import checkpoint_gb
from gpuplan.planner.cost.run_inputs import RUN_ARRAYS, Run, TakeOver
from gpuplan.planner.performance.training_states import offloaded_gib

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pairs:
    """Offers x node counts at which their machines can run the job; `offer` indexes the screened places."""

    offer: Ints
    place: Ints
    nodes: Ints
    row: Ints


def runnable(market: Market, screened: Screened, rows: MachineCandidates, reason: Ints, hosts_gib: float) -> Pairs:
    """The screened offers at every node count at which they can run the job.

    The estimates' `reason` must be 0, and the hosts must have `hosts_gib` of memory together.
    """
    snapshot = market.snapshot
    offer, pair = _expanded(snapshot.shapes.of_type[snapshot.type_index[screened.places]], rows, reason)
    place, nodes = screened.places.take(offer), rows.nodes.take(pair)
    pairs = Pairs(offer=offer, place=place, nodes=nodes, row=rows.row.take(pair))
    if market.node_limit.min(initial=np.inf) == np.inf and not market.up and not hosts_gib:
        return pairs
    runs = nodes <= market.node_limit[snapshot.type_index[place]]
    if hosts_gib and not market.up:
        runs &= nodes * host_gib(market.columns)[snapshot.type_index[place]] >= hosts_gib
    if market.up:
        runs &= nodes == market.up.nodes
    return Pairs(offer=offer[runs], place=place[runs], nodes=nodes[runs], row=pairs.row[runs])


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The properties of a job and the settings that decide its priced configurations, besides the hours of work.

    `year` is that of the start. `setup_hours`, `spot_wait_hours` and `node_loss_exponent` are those of the settings.
    `checkpoint_hours` is the time of one node to write the whole checkpoint; `hosts_gib` the memory that all hosts need.
    """

    checkpoint_hours: float
    hosts_gib: float
    default_interruptions_per_hour: float
    node_loss_exponent: float
    setup_hours: float | None
    spot_wait_hours: float | None
    year: int

    @classmethod
    def of(cls, question: Question) -> "Terms":
        """The terms of a question."""
        gigabytes = checkpoint_gb(question.work, question.job.training)
        return cls(
            checkpoint_hours=gigabytes / question.settings.checkpoint_gbs / 3600.0,
            hosts_gib=offloaded_gib(question.work, question.job.training),
            default_interruptions_per_hour=question.settings.default_interruptions_per_hour,
            node_loss_exponent=question.settings.node_loss_exponent,
            setup_hours=question.settings.setup_hours,
            spot_wait_hours=question.settings.spot_wait_hours,
            year=question.start.year,
        )


#: Pairs, their cost inputs without the hours of work, and kg CO2e per node-hour.
Offered = tuple[Pairs, Run, Floats]

#: Most kinds of job that the cache of a market holds: models x batches x places x cluster sizes, about 60 KiB each. A job
#: that may run anywhere on many nodes takes 4 MiB, so the bytes limit the cache as well.
MOST_KINDS = 512
MOST_BYTES = 32 * 1024 * 1024


@lru_cache(maxsize=4)
def cached_offers_of(market: Market) -> Callable[..., Offered]:
    """`_offered` of one market with a cache that lives as long as the market."""
    answers: LRUCache[Hashable, Offered] = LRUCache(MOST_BYTES, getsizeof=_size)
    return cached(answers, lock=Lock())(partial(_offered, market))


def _size(offered: Offered) -> int:
    """Bytes of all distinct arrays (the zeros are one array under several names), at least its share of the bytes."""
    pairs, run, kg_rate = offered
    of_pairs, of_run = (
        (getattr(pairs, field.name) for field in fields(Pairs)),
        (getattr(run, name) for name in RUN_ARRAYS),
    )
    nbytes = sum({id(array): int(array.nbytes) for array in (kg_rate, *of_pairs, *of_run)}.values())
    return max(nbytes, MOST_BYTES // MOST_KINDS)


def _offered(
    market: Market,
    screened: Screened,
    rows: MachineCandidates,
    able: Able,
    costs: RegionCosts,
    *,
    terms: Terms,
) -> Offered:
    """Offers x node counts that can run the steps, their cost inputs without the hours of work, and kg CO2e per node-hour."""
    pairs = runnable(market, screened, rows, able.reason, terms.hosts_gib)
    return pairs, _purchased(market, pairs, costs, terms), kg_per_node_hour(market, pairs.place)


def _expanded(shape: NDArray[np.int32], rows: MachineCandidates, reason: Ints) -> tuple[Ints, Ints]:
    """(offer, pair): the index of each offer repeated per node count that can run, and the pair of shape and node count."""
    able = np.flatnonzero(reason.take(rows.row) == 0)
    of_shape = np.bincount(rows.shape[able], minlength=len(rows.first) - 1)
    before = np.cumsum(of_shape) - of_shape
    count = of_shape[shape]
    which = np.repeat(np.arange(len(shape)), count)
    # The pairs of a shape are consecutive, so per offer one constant converts the output index into the pair index.
    apart = before[shape] - (np.cumsum(count) - count)
    return which, able.take(np.arange(len(which)) + np.repeat(apart, count))


def run_on(question: Question, market: Market, pairs: Pairs, ready: Estimated, costs: RegionCosts) -> Run:
    """The inputs of cost and time, one element per pair."""
    run = _purchased(market, pairs, costs, Terms.of(question))
    takeover = _takeover(question, market, costs, market.snapshot.region_index[pairs.place])
    return replace(for_work(run, pairs, ready), takeover=takeover)


def for_work(run: Run, pairs: Pairs, ready: Estimated) -> Run:
    """The inputs with the estimated hours of the work and their spread."""
    hours, sigma = ready.estimates.hours_with_goodput.take(pairs.row), ready.estimates.log_sigma.take(pairs.row)
    return replace(run, work_hours=hours, log_sigma=sigma)


def _purchased(market: Market, pairs: Pairs, costs: RegionCosts, terms: Terms) -> Run:
    """The inputs that do not depend on the work; its hours and their spread are zeros."""
    snapshot, place, nodes = market.snapshot, pairs.place, pairs.nodes
    kinds = billing_tables(market.columns.kinds)
    # Converted once: an index array of another type is converted at each use.
    kind, region, type_ = (
        column.take(place).astype(np.intp)
        for column in (snapshot.kind_index, snapshot.region_index, snapshot.type_index)
    )
    levels = known_rates(snapshot.rate_levels, terms.default_interruptions_per_hour)
    taken_away = kinds.interruptible.take(kind)
    rate = np.where(taken_away, levels.take(snapshot.rate_level.take(place)), 0.0)
    zeros, wait = np.zeros(len(place)), terms.spot_wait_hours
    waits = waits_of(market.columns, type_, snapshot.zones.take(place), nodes, terms.year) if wait is None else wait
    return Run(
        nodes=nodes.astype(np.float64),
        setup_hours=zeros if market.up else setup_hours_of(market.columns, type_, kind, nodes, terms.setup_hours),
        work_hours=zeros,
        beside_hours=zeros,
        log_sigma=zeros,
        cluster_rate=rate * powers(nodes, terms.node_loss_exponent),
        wait_hours=np.where(taken_away, waits, 0.0),
        checkpoint_hours=terms.checkpoint_hours / nodes.astype(np.float64),
        usd_per_node_hour=snapshot.usd_per_hour.take(place),
        power_usd_per_node_hour=market.power_usd_per_node_hour.take(type_),
        egress_usd=zeros if market.up else costs.egress_usd.take(region),
        storage_usd_per_hour=costs.storage_usd_per_hour.take(region),
        billing_step_hours=kinds.step_hours.take(kind),
        billing_minimum_hours=kinds.minimum_hours.take(kind),
        term_hours=zeros if market.term_paid else kinds.term_hours.take(kind),
        longest_hours=kinds.longest_hours.take(kind),
    )


def _takeover(question: Question, market: Market, costs: RegionCosts, region: NDArray[np.int32]) -> TakeOver | None:
    """Costs and hours to continue a running job on these machines; None for a job that has not started."""
    origin, zeros = question.origin, np.zeros(len(region))
    if origin is None or costs.fetch_usd is None or costs.delay_hours is None:
        return None
    if market.up:
        return TakeOver(up_hours=zeros + market.up.hours, fetch_usd=zeros, lead_usd=zeros, delay_hours=zeros)
    return TakeOver(
        up_hours=zeros,
        fetch_usd=costs.fetch_usd[region],
        lead_usd=zeros + origin.write_usd,
        delay_hours=costs.delay_hours[region],
    )
