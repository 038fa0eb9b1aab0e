"""The offers to evaluate for a job: filtered by eligibility, then by requirements, then by dominance.

Inside a cell (same machine shape, price kind and provider) an offer is *dominated* if another costs no more per hour and
is no worse in anything that depends on the place: one-time egress, storage per hour, interruption rate and, unless the
settings state the wait for preempted machines, the zones of the region that sell it (also carbon per kWh if carbon is a
criterion, and host memory if training offloads to hosts). A dominated offer is never cheaper at any node count, and never meets a deadline that the other misses, so omitting it keeps the choice exact. At a confidence
at which hours may fall as interruptions rise, only offers of equal rates are compared. Offers that differ only in zone
and price differ only by price for every job, so only the cheapest of such a group is evaluated.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.spot_waits import spot_waits
from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.planner.candidates.configuration_carbon import weighs_carbon
from gpuplan.planner.candidates.eligibility import REASONS, reason_table
from gpuplan.planner.candidates.job_requirements import BIT, Broken, broken
from gpuplan.planner.candidates.machine_shapes import Arranged
from gpuplan.planner.candidates.quota_limits import quota_nodes
from gpuplan.planner.cost.cost_breakdown import billing_tables, rises_with_preemption
from gpuplan.planner.model.job import REQUIREMENTS, Constraints, TrainingJob
from gpuplan.planner.model.quota import KNOWN, Quota

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

#: One integer holds the requirement bits above the hard reason, so that one count covers both. The bits that single
#: offers usually break are the lowest, so that it stays small.
_HARD_BITS = 3
_HARD = (1 << _HARD_BITS) - 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RegionCosts:
    """Costs per region of the snapshot: one-time egress of the data in USD, storage in USD per hour, kg CO2e per kWh (or nan).

    For a running job also the cost and the hours of moving its checkpoint there; else None.
    """

    egress_usd: Floats
    storage_usd_per_hour: Floats
    kg_per_kwh: Floats
    fetch_usd: Floats | None = None
    delay_hours: Floats | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Screened:
    """Places (in the arranged snapshot) of the offers to evaluate, and the reasons of the others.

    `broken` holds the requirement bits of each offer (all 0 without `keep_breakers`). `allowed` marks the groups that
    remain before dominance, `allowed_of_shape` counts their offers per machine shape.
    """

    places: Places
    broken: NDArray[np.uint32]
    rejected: dict[str, int]
    allowed: NDArray[np.bool_]
    allowed_of_shape: NDArray[np.int64]


def screen(
    job: TrainingJob,
    snapshot: Arranged,
    costs: RegionCosts,
    default_rate: float,
    *,
    owned: bool = False,
    paid: bool = False,
    keep_breakers: bool = False,
    quotas: tuple[Quota, ...] = (),
    by_zones: bool = True,
) -> Screened:
    """Offers that no other offer of the same machine dominates.

    With `keep_breakers`, offers that break requirements stay and are compared only with offers that break the same ones;
    the search for relaxations needs this. Region constraints do not apply to `owned` machines, and none dominates
    another, because each is limited in number and has its own availability. Commitments that are already `paid` need not
    be among the named price kinds.
    """
    allowed_, screened_ = _cached_screening(snapshot)
    allowed = allowed_(
        _binding(job.constraints), job.training.framework, owned=owned, paid=paid, keep_breakers=keep_breakers
    )
    rising = rises_with_preemption(job.confidence)
    hosts = job.training.offload != "none"
    return screened_(
        allowed,
        costs,
        default_rate,
        owned=owned,
        carbon=weighs_carbon(job),
        rising=rising,
        hosts=hosts,
        quotas=quotas,
        by_zones=by_zones,
    )


def _binding(constraints: Constraints) -> Constraints:
    """The constraints that apply to a single offer, in canonical order, so that jobs with equal ones share one screening.

    The order and repetition of names have no meaning. Limits on the cluster or the plan apply to no single offer.
    """
    names: dict[str, Any] = {field.name: tuple(sorted(set(getattr(constraints, field.name)))) for field in _SETS}
    return replace(
        constraints, **names, max_nodes=1, max_accelerators=None, max_phases=1, carbon_budget_kg=None, quotas=KNOWN
    )


#: The constraints that are sets of names.
_SETS = tuple(field for field in fields(Constraints) if isinstance(field.default, tuple))


@lru_cache(maxsize=8)
def _cached_screening(snapshot: Arranged) -> tuple[Callable[..., "_Allowed"], Callable[..., Screened]]:
    """Screening functions of one snapshot with caches that live as long as it: by constraints, and by region costs."""
    return lru_cache(maxsize=16)(partial(_allowed, snapshot)), lru_cache(maxsize=128)(partial(_screened, snapshot))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Allowed:
    """The offers before dominance: places with the bits they break; the other fields are those of `Screened`."""

    places: Places
    mask: NDArray[np.uint32]
    rejected: dict[str, int]
    allowed: NDArray[np.bool_]
    allowed_of_shape: NDArray[np.int64]


def _allowed(
    snapshot: Arranged, constraints: Constraints, framework: str, *, owned: bool, paid: bool, keep_breakers: bool
) -> _Allowed:
    bits = broken(snapshot.columns, snapshot.shapes, constraints, framework, owned=owned, paid=paid)
    code = _codes(constraints, snapshot, bits)
    rejected = {} if keep_breakers else _count(code, snapshot.group_size)
    allowed = code & _HARD == 0 if keep_breakers else code == 0
    places = snapshot.lead[allowed]
    mask = (code[allowed] >> _HARD_BITS).astype(np.uint32)
    if keep_breakers:
        # Places are already in order of cell and price; a stable sort by mask keeps that order within each mask.
        by_mask = np.argsort(mask, kind="stable")
        places, mask = places[by_mask], mask[by_mask]
    shape_of_group = snapshot.shapes.of_type[snapshot.type_index[snapshot.lead]]
    offers = np.bincount(shape_of_group, weights=snapshot.group_size * allowed, minlength=len(snapshot.shapes))
    return _Allowed(
        places=places, mask=mask, rejected=rejected, allowed=allowed, allowed_of_shape=offers.astype(np.int64)
    )


def _screened(
    snapshot: Arranged,
    allowed: _Allowed,
    costs: RegionCosts,
    default_rate: float,
    *,
    owned: bool,
    carbon: bool,
    rising: bool,
    hosts: bool,
    quotas: tuple[Quota, ...],
    by_zones: bool,
) -> Screened:
    places, mask = allowed.places, allowed.mask
    if owned:
        undominated = np.ones(len(places), np.bool_)
    else:
        decisive = _decided_by_place(snapshot, places, costs, default_rate, carbon=carbon, rising=rising)
        if by_zones:
            decisive += _waits_by_zones(snapshot, places, rising=rising)
        if hosts:
            decisive.append((-host_gib(snapshot.columns), snapshot.type_index[places]))
        if quotas:
            decisive.append((-quota_nodes(snapshot, quotas), places))
        undominated = _undominated(snapshot, places, mask, decisive)
    return Screened(
        places=places[undominated],
        broken=mask[undominated],
        rejected=allowed.rejected,
        allowed=allowed.allowed,
        allowed_of_shape=allowed.allowed_of_shape,
    )


def up_already(job: TrainingJob, snapshot: Arranged, *, owned: bool) -> Screened:
    """The one offer of a market that is up, with the requirements that it breaks; a running offer is always eligible."""
    bits = broken(snapshot.columns, snapshot.shapes, job.constraints, job.training.framework, owned=owned)
    place = np.zeros(1, np.int64)
    return Screened(
        places=place,
        broken=bits.by_type[snapshot.type_index[place]] | bits.by_region[snapshot.region_index[place]],
        rejected={},
        allowed=np.ones(1, np.bool_),
        allowed_of_shape=np.ones(len(snapshot.shapes), np.int64),
    )


def _codes(constraints: Constraints, snapshot: Arranged, bits: Broken) -> NDArray[np.int32]:
    """Per group: its requirement bits above its hard reason."""
    lead = snapshot.lead
    soft = bits.by_type[snapshot.type_index[lead]] | bits.by_region[snapshot.region_index[lead]]
    soft |= bits.by_kind[snapshot.kind_index[lead]]
    return reason_table(constraints)[snapshot.eligibility[lead]] | soft.astype(np.int32) << _HARD_BITS


def _count(code: NDArray[np.int32], offers: NDArray[np.int64]) -> dict[str, int]:
    """Offers per reason; an offer with several counts under its first requirement, else under its hard reason."""
    counts = np.bincount(code, weights=offers)
    rejected: dict[str, int] = {}
    for hard, soft in sorted((code & _HARD, code >> _HARD_BITS) for code in np.flatnonzero(counts).tolist()):
        if not hard and not soft:
            continue
        first = next((name for name in REQUIREMENTS if soft & BIT[name]), None)
        reason = REASONS[hard] if first is None else f"not among {first}"
        rejected[reason] = rejected.get(reason, 0) + int(counts[soft << _HARD_BITS | hard])
    return rejected


def _decided_by_place(
    snapshot: Arranged, places: Places, costs: RegionCosts, default_rate: float, *, carbon: bool, rising: bool
) -> list[tuple[Floats, Places | NDArray[np.int32]]]:
    """Criteria besides the price for offers of a cell: (values, index of the value of each place); less is better."""
    region, level = snapshot.region_index[places], snapshot.rate_level[places]
    rates = known_rates(snapshot.rate_levels, default_rate)
    decisive: list[tuple[Floats, Places | NDArray[np.int32]]] = [
        (costs.egress_usd, region),
        (costs.storage_usd_per_hour, region),
        (rates, level),
    ]
    if not rising:
        decisive.append((-rates, level))
    decisive += [
        (costs_of_place, region)
        for costs_of_place in (costs.fetch_usd, costs.delay_hours)
        if costs_of_place is not None
    ]
    if carbon:
        # Machines of a cell draw the same power. Unknown carbon is worse than any known one.
        decisive.append((np.where(np.isnan(costs.kg_per_kwh), np.inf, costs.kg_per_kwh), region))
    return decisive


def _waits_by_zones(snapshot: Arranged, places: Places, *, rising: bool) -> list[tuple[Floats, Places]]:
    """Waits for preempted machines as criteria: they fall with the zones of the region that sell an interruptible offer."""
    taken_away = billing_tables(snapshot.columns.kinds).interruptible[snapshot.kind_index[places]]
    zones = np.where(taken_away, np.minimum(snapshot.zones[places], spot_waits().most_zones), 0).astype(np.float64)
    every = np.arange(len(places))
    return [(-zones, every)] if rising else [(-zones, every), (zones, every)]


@lru_cache(maxsize=8)
def host_gib(columns: Columns) -> Floats:
    """Memory of one host in GiB by instance type; inf where unknown, so that no offer is rejected for it."""
    return np.array(
        [
            np.inf if instance_type.ram_gib is None else instance_type.ram_gib
            for instance_type in columns.instance_types
        ],
        np.float64,
    )


def known_rates(levels: Floats, default: float) -> Floats:
    """Interruptions per hour by level; unknown ones (nan) are replaced by the default."""
    return np.where(np.isnan(levels), default, levels)


def _undominated(
    snapshot: Arranged,
    places: Places,
    mask: NDArray[np.uint32],
    decisive: list[tuple[Floats, Places | NDArray[np.int32]]],
) -> NDArray[np.bool_]:
    """Marks the places that no cheaper place of the same cell dominates in all criteria.

    Places are in order of price. In every round, for all cells at once, the first remaining place of a cell is undominated
    and the places that it dominates are removed.
    """
    undominated = np.zeros(len(places), np.bool_)
    if not len(places):
        return undominated
    cell = snapshot.cell[places].astype(np.int64) << 16 | mask
    segment = np.concatenate(([0], np.cumsum(cell[1:] != cell[:-1])))
    values = [levels[which] for levels, which in decisive]
    left = np.arange(len(places))
    while len(left):
        mine = segment[left]
        starts = np.concatenate(([True], mine[1:] != mine[:-1]))
        undominated[left[starts]] = True
        leader = left[starts][np.cumsum(starts) - 1]
        better = np.zeros(len(left), np.bool_)
        for value in values:
            better |= value[left] < value[leader]
        left = left[better]
    return undominated
