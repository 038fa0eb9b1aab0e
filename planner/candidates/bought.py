"""What is bought where: offers times the node counts at which their machines can run a job, and what each costs to hold.

Jobs that differ in length, deadline or budget buy the same but for the hours of work; so this is kept.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from planner.candidates.carbon import kg_per_node_hour
from planner.candidates.estimated import Estimated
from planner.candidates.kept_estimates import Able
from planner.candidates.machine_rows import MachineRows
from planner.candidates.market import Market
from planner.candidates.screen import RegionCosts, Screened, host_gib, known_rates
from planner.cost.bill import RUN_ARRAYS, Run, TakeOver, billing_tables
from planner.cost.checkpoints import checkpoint_gb
from planner.estimate.host_memory import offloaded_gib
from planner.kept import kept_within
from planner.question import Question

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pairs:
    """Offers times node counts at which their machines can run the job; `offer` counts the screened places."""

    offer: Ints
    place: Ints
    nodes: Ints
    row: Ints


def runnable(market: Market, screened: Screened, rows: MachineRows, reason: Ints, hosts_gib: float) -> Pairs:
    """The kept offers at every node count at which their machines can run the job, by the estimates' `reason`, and their
    hosts together hold `hosts_gib`.
    """
    snapshot = market.snapshot
    offer, pair = _expanded(snapshot.shapes.of_type[snapshot.type_index[screened.places]], rows, reason)
    place, nodes = screened.places[offer], rows.nodes[pair]
    pairs = Pairs(offer=offer, place=place, nodes=nodes, row=rows.row[pair])
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
    """What of a job and the settings decides what is bought, beside the hours of work.

    `checkpoint_hours` are those of one node that writes the whole checkpoint, `hosts_gib` what all hosts must hold.
    """

    checkpoint_hours: float
    hosts_gib: float
    default_interruptions_per_hour: float

    @classmethod
    def of(cls, question: Question) -> "Terms":
        """The terms of a question."""
        gigabytes = checkpoint_gb(question.work, question.job.training)
        return cls(
            checkpoint_hours=gigabytes / question.settings.checkpoint_gbs / 3600.0,
            hosts_gib=offloaded_gib(question.work, question.job.training),
            default_interruptions_per_hour=question.settings.default_interruptions_per_hour,
        )


#: Pairs, what is bought but for the hours of work, and kg CO2e of a node-hour.
Offered = tuple[Pairs, Run, Floats]

#: Kinds of job of which a market keeps what they buy: models x batches x places x sizes of cluster, about 60 KiB of each;
#: of one that may go anywhere on many nodes 4 MiB, so that it is bytes that bound what a client has kept.
MOST_KINDS = 512
MOST_BYTES = 32 * 1024 * 1024


@lru_cache(maxsize=4)
def kept_of(market: Market) -> Callable[..., Offered]:
    """What is kept of one market goes with it."""
    return kept_within(MOST_KINDS, MOST_BYTES, _nbytes)(partial(_offered, market))


def _nbytes(offered: Offered) -> int:
    """Bytes of all arrays, each once: zeros are one array under several names."""
    pairs, run, kg_rate = offered
    of_pairs, of_run = (
        (getattr(pairs, each.name) for each in fields(Pairs)),
        (getattr(run, name) for name in RUN_ARRAYS),
    )
    return sum({id(each): int(each.nbytes) for each in (kg_rate, *of_pairs, *of_run)}.values())


def _offered(
    market: Market,
    screened: Screened,
    rows: MachineRows,
    able: Able,
    costs: RegionCosts,
    *,
    terms: Terms,
) -> Offered:
    """Offers x node counts that can run such steps, what is bought but for the hours of work, and kg CO2e of a node-hour."""
    pairs = runnable(market, screened, rows, able.reason, terms.hosts_gib)
    return pairs, _bought(market, pairs, costs, terms), kg_per_node_hour(market, pairs.place)


def _expanded(shape: NDArray[np.int32], rows: MachineRows, reason: Ints) -> tuple[Ints, Ints]:
    """For offers of these shapes: each offer's index once per node count that can run, and the pair it stands for."""
    able = np.flatnonzero(reason[rows.row] == 0)
    of_shape = np.bincount(rows.shape[able], minlength=len(rows.first) - 1)
    before = np.cumsum(of_shape) - of_shape
    count = of_shape[shape]
    which = np.repeat(np.arange(len(shape)), count)
    # Offers follow each other here, pairs of a shape there: per offer one number apart.
    apart = before[shape] - (np.cumsum(count) - count)
    return which, able[np.arange(len(which)) + np.repeat(apart, count)]


def run_on(question: Question, market: Market, pairs: Pairs, ready: Estimated, costs: RegionCosts) -> Run:
    """What is bought, one element per pair."""
    run = _bought(market, pairs, costs, Terms.of(question))
    takeover = _takeover(question, market, costs, market.snapshot.region_index[pairs.place])
    return replace(for_work(run, pairs, ready), takeover=takeover)


def for_work(run: Run, pairs: Pairs, ready: Estimated) -> Run:
    """What is bought with the hours that the work takes, and their spread."""
    hours, sigma = ready.estimates.hours_with_goodput[pairs.row], ready.estimates.log_sigma[pairs.row]
    return replace(run, work_hours=hours, log_sigma=sigma)


def _bought(market: Market, pairs: Pairs, costs: RegionCosts, terms: Terms) -> Run:
    """What is bought, whatever the work: hours of it and their spread are zeros."""
    snapshot, place, nodes = market.snapshot, pairs.place, pairs.nodes
    kinds = billing_tables(market.columns.kinds)
    kind, region, type_ = snapshot.kind_index[place], snapshot.region_index[place], snapshot.type_index[place]
    levels = known_rates(snapshot.rate_levels, terms.default_interruptions_per_hour)
    rate = np.where(kinds.interruptible[kind], levels[snapshot.rate_level[place]], 0.0)
    zeros = np.zeros(len(place))
    return Run(
        nodes=nodes.astype(np.float64),
        work_hours=zeros,
        beside_hours=zeros,
        log_sigma=zeros,
        cluster_rate=rate * nodes,
        checkpoint_hours=terms.checkpoint_hours / nodes.astype(np.float64),
        usd_per_node_hour=snapshot.usd_per_hour[place],
        power_usd_per_node_hour=market.power_usd_per_node_hour[type_],
        egress_usd=zeros if market.up else costs.egress_usd[region],
        storage_usd_per_hour=costs.storage_usd_per_hour[region],
        billing_step_hours=kinds.step_hours[kind],
        billing_minimum_hours=kinds.minimum_hours[kind],
        term_hours=zeros if market.term_paid else kinds.term_hours[kind],
        longest_hours=kinds.longest_hours[kind],
    )


def _takeover(question: Question, market: Market, costs: RegionCosts, region: NDArray[np.int32]) -> TakeOver | None:
    """What it takes to go on from where a job stands; None for a job that starts."""
    origin, zeros = question.origin, np.zeros(len(region))
    if origin is None or costs.fetch_usd is None or costs.delay_hours is None:
        return None
    if market.up:
        ready = zeros + question.settings.setup_hours
        return TakeOver(
            ready_hours=ready, up_hours=zeros + market.up.hours, fetch_usd=zeros, lead_usd=zeros, delay_hours=zeros
        )
    return TakeOver(
        ready_hours=zeros,
        up_hours=zeros,
        fetch_usd=costs.fetch_usd[region],
        lead_usd=zeros + origin.write_usd,
        delay_hours=costs.delay_hours[region],
    )
