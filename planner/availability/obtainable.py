"""The chance that machines are obtained when they are asked for, and what choices have in common.

Own machines and commitments that are paid for are certain. Machines that a cloud answered about have the chance of its
answer, everything else that of `data/capacity_prior.csv` by the age of its accelerator, its price kind and its size.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.model.capacity_prior import CapacityPrior, KindPrior, capacity_prior
from gpuplan.catalog.model.offer import InstanceType, Offer
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.planner.candidates.live_chances import LiveChances, Shape
from gpuplan.planner.candidates.markets import Market
from gpuplan.planner.snapshot_cache import cached_per_snapshot

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Standard normal quantile of an 80 % band.
_Z80 = 1.2815515655446004


@dataclass(frozen=True, slots=True, kw_only=True)
class Obtainability:
    """The states of a choice's group (fine, short of spot, short of everything), and its chance in each."""

    state_chance: tuple[float, float, float]
    obtained: tuple[float, float, float]

    @property
    def chance(self) -> float:
        """The chance of the choice by itself."""
        return sum(state * obtained for state, obtained in zip(self.state_chance, self.obtained, strict=True))


CERTAIN = Obtainability(state_chance=(1.0, 0.0, 0.0), obtained=(1.0, 1.0, 1.0))


def is_certain(market: Market) -> bool:
    """Whether the machines of a market are there whenever they are asked for."""
    return bool(market.owned) or market.term_paid or market.up is not None


def obtainability(
    offer: Offer,
    instance_type: InstanceType,
    nodes: int,
    *,
    market: Market,
    year: int,
    live: LiveChances,
) -> Obtainability:
    """The obtainability of so many nodes of an offer for a job that starts in `year`.

    A family is short with the share of refusals that hits all its machines, of the refusals of its most obtainable one:
    one node with one accelerator by the table, or the best that a cloud answered about.
    """
    if is_certain(market):
        return CERTAIN
    prior = capacity_prior()
    age = _age(prior, instance_type.accelerator, year)
    is_spot = price_kinds()[offer.price_kind].interruptible
    family = (offer.provider, offer.region, instance_type.accelerator)
    best_spot = max(prior.spot[age].chance, live.best_spot.get(family, 0.0))
    best_other = max(prior.on_demand[age].chance, live.best_other.get(family, 0.0))
    short_spot = prior.shared_share * (1.0 - best_spot)
    short = min(short_spot, prior.shared_share * (1.0 - best_other))
    answered = live.of(offer, nodes)
    chance = modelled_chance(instance_type, nodes, is_spot=is_spot, year=year) if answered is None else answered.chance
    given = chance / (1.0 - (short_spot if is_spot else short))
    return Obtainability(
        state_chance=(1.0 - short_spot, short_spot - short, short), obtained=(given, 0.0 if is_spot else given, 0.0)
    )


def band(chance: float) -> tuple[float, float]:
    """What 80 % of places and times have where this is the modelled chance, by the spread of the traces' log-odds."""
    if not 0.0 < chance < 1.0:
        return chance, chance
    middle, half = math.log(chance / (1.0 - chance)), _Z80 * capacity_prior().logit_spread
    return 1.0 / (1.0 + math.exp(half - middle)), 1.0 / (1.0 + math.exp(-half - middle))


def modelled_chance(instance_type: InstanceType, nodes: int, *, is_spot: bool, year: int) -> float:
    """The chance of `nodes` machines of a type in a place by the table, for a job that starts in `year`."""
    prior = capacity_prior()
    age = _age(prior, instance_type.accelerator, year)
    return _chance(prior.spot[age] if is_spot else prior.on_demand[age], float(instance_type.accelerator_count), nodes)


def _chance(kind: KindPrior, accelerators_per_node: float, nodes: int) -> float:
    falls = kind.size_exponent * math.log(max(1.0, accelerators_per_node)) + kind.node_exponent * math.log(nodes)
    return kind.chance * math.exp(-falls)


def modelled_chances(market: Market, place: Ints, nodes: Ints, year: int) -> Floats:
    """The chance by itself of `nodes` at each place of a market by the table: [places]."""
    if is_certain(market):
        return np.ones(len(place))
    table = _type_table(market.columns, year)
    spot = _is_spot(market.columns).take(market.snapshot.kind_index.take(place))
    kind_of_type = np.where(spot, table.chance.shape[1], 0) + market.snapshot.type_index.take(place)
    falls = -table.node_exponent.take(kind_of_type)
    return np.asarray(table.chance.take(kind_of_type) * np.exp(falls * np.log(nodes.astype(np.float64))))


def places_of(market: Market, shape: Shape) -> Ints:
    """The places of a market with this machine in this region at this price kind, under whatever zone."""
    columns, snapshot = market.columns, market.snapshot
    provider, region, instance_type, kind, _ = shape
    if (provider, region) not in columns.regions:
        return np.zeros(0, np.int64)
    types = [i for i, row in enumerate(columns.instance_types) if (row.provider, row.name) == (provider, instance_type)]
    return np.flatnonzero(
        (snapshot.region_index == columns.regions.index((provider, region)))
        & (snapshot.kind_index == columns.kinds.index(kind))
        & np.isin(snapshot.type_index, types)
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _TypeTable:
    """Chance of one node and its fall with nodes: [not spot or spot, instance types]."""

    chance: Floats
    node_exponent: Floats


@cached_per_snapshot(4)
def _type_table(columns: Columns, year: int) -> _TypeTable:
    prior = capacity_prior()
    ages = [_age(prior, instance_type.accelerator, year) for instance_type in columns.instance_types]
    sizes = [float(instance_type.accelerator_count) for instance_type in columns.instance_types]
    kinds = [[priors[age] for age in ages] for priors in (prior.on_demand, prior.spot)]
    return _TypeTable(
        chance=np.array(
            [[_chance(kind, size, 1) for kind, size in zip(row, sizes, strict=True)] for row in kinds]
        ).reshape(2, -1),
        node_exponent=np.array([[kind.node_exponent for kind in row] for row in kinds]).reshape(2, -1),
    )


def _age(prior: CapacityPrior, accelerator: str, year: int) -> str:
    return prior.age_class(introduced=accelerators()[accelerator].year, year=year)


def _is_spot(columns: Columns) -> NDArray[np.bool_]:
    return np.array([price_kinds()[name].interruptible for name in columns.kinds], np.bool_)
