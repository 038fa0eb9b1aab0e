"""Which offers can matter to a job at all: hard reasons first, then its requirements, then dominance.

Inside a cell (same machine shape, price kind and provider) an offer is *dominated* if another is no dearer per hour and no
worse in each of the things that depend on the place: one-time egress, storage per hour and interruption rate (and, where
carbon decides, in the carbon of a kWh; where training offloads to hosts, in their memory). A dominated offer is never cheaper at any node count, nor in time where the other
is not, so leaving it out keeps the choice exact; at a confidence at which hours may fall as interruptions rise, offers of
equal rates alone are compared. Offers alike in all but zone and price are told apart by price alone, whatever the job:
only the cheapest of such a group is looked at.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from catalog.columns import Columns
from planner.candidates.carbon import weighs_carbon
from planner.candidates.requirements import BIT, Broken, broken
from planner.candidates.shapes import Arranged
from planner.candidates.standing import REASONS, reason_table
from planner.cost.bill import rises_with_preemption
from planner.job import REQUIREMENTS, Constraints, TrainingJob

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

#: Hard reasons stand above the requirement bits in one integer, so that one count tells all.
_HARD_SHIFT = len(REQUIREMENTS)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RegionCosts:
    """Per region of the snapshot: egress of the data in USD, once, storage in USD per hour, carbon in kg per kWh (or nan).

    For a job that is under way also what bringing its checkpoint there costs, and takes in hours; else None.
    """

    egress_usd: Floats
    storage_usd_per_hour: Floats
    kg_per_kwh: Floats
    fetch_usd: Floats | None = None
    delay_hours: Floats | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Screened:
    """Places (in the arranged snapshot) of the offers to evaluate, and why the others are not.

    `broken` holds each kept offer's requirement bits (all 0 unless asked to keep breakers);
    `allowed` marks the groups left before dominance, `allowed_of_shape` counts their offers per machine shape.
    """

    places: Places
    broken: NDArray[np.uint16]
    rejected: dict[str, int]
    allowed: NDArray[np.bool_]
    allowed_of_shape: NDArray[np.int64]


def screen(
    job: TrainingJob,
    snapshot: Arranged,
    costs: RegionCosts,
    default_rate: float,
    *,
    own: bool = False,
    paid: bool = False,
    keep_breakers: bool = False,
) -> Screened:
    """Offers that no other offer of the same machine beats.

    With `keep_breakers` offers that break requirements stay, and dominate only offers that break
    at least the same: what the search for relaxations needs. `own` machines are exempt from
    region constraints, and none beats another: there are only so many of each, free at their own hours. Commitments
    that are `paid` for need no naming among price kinds.
    """
    allowed_, screened_ = _kept_of(snapshot)
    allowed = allowed_(_binding(job.constraints), own=own, paid=paid, keep_breakers=keep_breakers)
    rising = rises_with_preemption(job.confidence)
    hosts = job.training.offload != "none"
    return screened_(allowed, costs, default_rate, own=own, carbon=weighs_carbon(job), rising=rising, hosts=hosts)


@lru_cache(maxsize=512)
def _binding(constraints: Constraints) -> Constraints:
    """What of the constraints binds an offer by itself, names in one order: jobs alike in that are screened once.

    Names of one kind are a set, of which an offer has to be in; the size of a cluster or of a plan binds no offer.
    """
    names: dict[str, Any] = {each.name: tuple(sorted(set(getattr(constraints, each.name)))) for each in _SETS}
    return replace(constraints, **names, max_nodes=1, max_accelerators=None, max_phases=1, carbon_budget_kg=None)


#: The constraints that are sets of names.
_SETS = tuple(each for each in fields(Constraints) if isinstance(each.default, tuple))


@lru_cache(maxsize=8)
def _kept_of(snapshot: Arranged) -> tuple[Callable[..., "_Allowed"], Callable[..., Screened]]:
    """What is kept of one snapshot goes with it: offers by constraints, and those left by costs of places."""
    return lru_cache(maxsize=16)(partial(_allowed, snapshot)), lru_cache(maxsize=128)(partial(_screened, snapshot))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Allowed:
    """Before dominance: places with the bits they break, and what `Screened` says of all offers."""

    places: Places
    mask: NDArray[np.uint16]
    rejected: dict[str, int]
    allowed: NDArray[np.bool_]
    allowed_of_shape: NDArray[np.int64]


def _allowed(snapshot: Arranged, constraints: Constraints, *, own: bool, paid: bool, keep_breakers: bool) -> _Allowed:
    bits = broken(snapshot.columns, snapshot.shapes, constraints, own=own, paid=paid)
    code = _codes(constraints, snapshot, bits)
    rejected = {} if keep_breakers else _count(code, snapshot.group_size)
    allowed = code >> _HARD_SHIFT == 0 if keep_breakers else code == 0
    places = snapshot.lead[allowed]
    mask = (code[allowed] & ((1 << _HARD_SHIFT) - 1)).astype(np.uint16)
    if keep_breakers:
        # Places are in order of cell and price already; a stable sort by mask keeps that order within each mask.
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
    own: bool,
    carbon: bool,
    rising: bool,
    hosts: bool,
) -> Screened:
    places, mask = allowed.places, allowed.mask
    if own:
        kept = np.ones(len(places), np.bool_)
    else:
        decisive = _decided_by_place(snapshot, places, costs, default_rate, carbon=carbon, rising=rising)
        if hosts:
            decisive.append((-host_gib(snapshot.columns), snapshot.type_index[places]))
        kept = _undominated(snapshot, places, mask, decisive)
    return Screened(
        places=places[kept],
        broken=mask[kept],
        rejected=allowed.rejected,
        allowed=allowed.allowed,
        allowed_of_shape=allowed.allowed_of_shape,
    )


def up_already(job: TrainingJob, snapshot: Arranged, *, own: bool) -> Screened:
    """The one offer of a market that is up, with the requirements that it breaks: what runs can be had, and is bought."""
    bits = broken(snapshot.columns, snapshot.shapes, job.constraints, own=own)
    place = np.zeros(1, np.int64)
    return Screened(
        places=place,
        broken=bits.by_type[snapshot.type_index[place]] | bits.by_region[snapshot.region_index[place]],
        rejected={},
        allowed=np.ones(1, np.bool_),
        allowed_of_shape=np.ones(len(snapshot.shapes), np.int64),
    )


def _codes(constraints: Constraints, snapshot: Arranged, bits: Broken) -> NDArray[np.int32]:
    """Per group, its hard reason above its requirement bits."""
    lead = snapshot.lead
    hard = (reason_table(constraints) << _HARD_SHIFT)[snapshot.standing[lead]]
    soft = bits.by_type[snapshot.type_index[lead]] | bits.by_region[snapshot.region_index[lead]]
    return hard | soft | bits.by_kind[snapshot.kind_index[lead]]


def _count(code: NDArray[np.int32], offers: NDArray[np.int64]) -> dict[str, int]:
    """Offers per reason; one that has several counts under the first requirement, else under the hard reason."""
    counts = np.bincount(code, weights=offers)
    rejected: dict[str, int] = {}
    for value in np.flatnonzero(counts):
        soft, hard = int(value) & ((1 << _HARD_SHIFT) - 1), int(value) >> _HARD_SHIFT
        if not value:
            continue
        first = next((name for name in REQUIREMENTS if soft & BIT[name]), None)
        reason = REASONS[hard] if first is None else f"not among {first}"
        rejected[reason] = rejected.get(reason, 0) + int(counts[value])
    return rejected


def _decided_by_place(
    snapshot: Arranged, places: Places, costs: RegionCosts, default_rate: float, *, carbon: bool, rising: bool
) -> list[tuple[Floats, Places | NDArray[np.int32]]]:
    """What differs between offers of a cell besides the price: (values, which of them each place has), less is better."""
    region, level = snapshot.region_index[places], snapshot.rate_level[places]
    rates = known_rates(snapshot.rate_levels, default_rate)
    decisive: list[tuple[Floats, Places | NDArray[np.int32]]] = [
        (costs.egress_usd, region),
        (costs.storage_usd_per_hour, region),
        (rates, level),
    ]
    if not rising:
        decisive.append((-rates, level))
    decisive += [(each, region) for each in (costs.fetch_usd, costs.delay_hours) if each is not None]
    if carbon:
        # Machines of a cell draw the same power. What is unknown beats nothing that is known.
        decisive.append((np.where(np.isnan(costs.kg_per_kwh), np.inf, costs.kg_per_kwh), region))
    return decisive


@lru_cache(maxsize=8)
def host_gib(columns: Columns) -> Floats:
    """Memory of one host by instance type; inf where nobody states it, which refuses nothing."""
    return np.array([np.inf if each.ram_gib is None else each.ram_gib for each in columns.instance_types], np.float64)


def known_rates(levels: Floats, default: float) -> Floats:
    """Interruptions per hour by level, unknown ones (nan) taken for the default."""
    return np.where(np.isnan(levels), default, levels)


def _undominated(
    snapshot: Arranged,
    places: Places,
    mask: NDArray[np.uint16],
    decisive: list[tuple[Floats, Places | NDArray[np.int32]]],
) -> NDArray[np.bool_]:
    """Whether each place is one that no single cheaper one of its cell equals or betters in all that the place decides.

    Places come in order of price. Of those left of a cell the first is beaten by none; whatever it beats goes, and so on,
    in all cells at once.
    """
    kept = np.zeros(len(places), np.bool_)
    if not len(places):
        return kept
    cell = snapshot.cell[places].astype(np.int64) << 16 | mask
    segment = np.concatenate(([0], np.cumsum(cell[1:] != cell[:-1])))
    values = [levels[which] for levels, which in decisive]
    left = np.arange(len(places))
    while len(left):
        mine = segment[left]
        starts = np.concatenate(([True], mine[1:] != mine[:-1]))
        kept[left[starts]] = True
        leader = left[starts][np.cumsum(starts) - 1]
        better = np.zeros(len(left), np.bool_)
        for each in values:
            better |= each[left] < each[leader]
        left = left[better]
    return kept
