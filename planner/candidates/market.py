"""Where configurations come from: the snapshot, the user's own machines, and commitments already paid.

All three go through the same arithmetic; a market only says what differs: how many nodes there are
of each type, what power costs, whether the term is paid, whether places bind.
"""

import difflib
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from catalog.columns import Columns, columns_of
from catalog.errors import Fault, UnusableInput
from catalog.offer import Offer
from catalog.owned import OwnedMachine
from catalog.quantities import shown
from planner.candidates.shapes import Arranged, arranged
from planner.discounts import discounted
from planner.settings import HeldCommitment, PlannerSettings

Floats = NDArray[np.float64]
#: Provider, region, instance type and price kind.
Key = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Up:
    """Machines that run the job already: how many nodes, and the hours for which they have been up."""

    nodes: int
    hours: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Market:
    """Offers that share their rules.

    `node_limit` and `power_usd_per_node_hour` have one element per instance type; `owned` is empty
    but for the user's own machines, whose places are exempt from region constraints. A market that is `up` has one offer,
    on which so many nodes run the job now.
    """

    snapshot: Arranged
    node_limit: Floats
    power_usd_per_node_hour: Floats
    term_paid: bool = False
    owned: tuple[OwnedMachine, ...] = ()
    up: Up | None = None

    @property
    def columns(self) -> Columns:
        """The market's offers as columns."""
        return self.snapshot.columns


@lru_cache(maxsize=4)
def rented(columns: Columns) -> Market:
    """The snapshot's offers: as many nodes as asked, power in the price."""
    count = len(columns.instance_types)
    return Market(
        snapshot=arranged(columns), node_limit=np.full(count, np.inf), power_usd_per_node_hour=np.zeros(count)
    )


@lru_cache(maxsize=16)
def owned_market(machines: tuple[OwnedMachine, ...], cost_basis: str, stated_at: datetime) -> Market:
    """The user's own machines, at full cost (amortisation and power) or marginal cost (power only)."""
    ordered = tuple(sorted(machines, key=lambda machine: (machine.instance_type.provider, machine.instance_type.name)))
    full = cost_basis == "full"
    offers = [_owned_offer(each, round(each.usd_per_hour_full * 1e6) if full else 0, stated_at) for each in ordered]
    columns = columns_of("owned", stated_at, [machine.instance_type for machine in ordered], offers)
    return Market(
        snapshot=arranged(columns, tuple(machine.measured for machine in ordered)),
        node_limit=np.array([float(machine.machines) for machine in ordered]),
        power_usd_per_node_hour=np.array([machine.usd_per_hour_power for machine in ordered]),
        owned=ordered,
    )


def _owned_offer(machine: OwnedMachine, usd_micros: int, stated_at: datetime) -> Offer:
    return Offer(
        provider=machine.instance_type.provider,
        region=machine.region,
        instance_type=machine.instance_type.name,
        price_kind="owned",
        usd_micros_per_hour=usd_micros,
        observed_at=stated_at,
        source="the user's inventory",
    )


@lru_cache(maxsize=16)
def held_markets(columns: Columns, held: tuple[HeldCommitment, ...]) -> tuple[Market, ...]:
    """Commitments the user already pays for: the same offers with nothing more to pay, as many nodes as held.

    One market per number of nodes, since offers of one market share their rules. Raises `UnusableInput` for
    a commitment that names no offer of the snapshot, or one that is named before.
    """
    at: dict[Key, list[int]] = {}
    for i, offer in enumerate(columns.offers if held else ()):
        at.setdefault(_key(offer), []).append(i)
    faults = [fault for i, each in enumerate(held) if (fault := _held_fault(i, held, columns, at)) is not None]
    if faults:
        raise UnusableInput(*faults)
    sizes = sorted({each.nodes for each in held})
    return tuple(
        _held(columns, [i for each in held if each.nodes == size for i in at[_key(each)]], size) for size in sizes
    )


def _held_fault(
    place: int, held: tuple[HeldCommitment, ...], columns: Columns, at: dict[Key, list[int]]
) -> Fault | None:
    """What is wrong with the commitment at `place` of the settings, if anything."""
    each = held[place]
    if _key(each) in (_key(earlier) for earlier in held[:place]):
        return Fault(("settings", "held", place), "is held already; give all its nodes at once")
    if _key(each) in at:
        return None
    checked = (
        ("provider", each.provider, {provider for provider, _ in columns.regions}),
        ("region", each.region, {region for provider, region in columns.regions if provider == each.provider}),
        ("instance_type", each.instance_type, {a.name for a in columns.instance_types if a.provider == each.provider}),
    )
    for name, value, known in checked:
        if value not in known:
            near = ", ".join(difflib.get_close_matches(value, sorted(known), n=3, cutoff=0.4) or sorted(known)[:3])
            message = f"{shown(value)} is not in the snapshot; nearest: {near}"
            return Fault(("settings", "held", place, name), message)
    kinds = sorted({key[3] for key in at if key[:3] == _key(each)[:3]})
    message = f"{each.price_kind} has no price there in the snapshot; it has {', '.join(kinds) or 'none'}"
    return Fault(("settings", "held", place, "price_kind"), message)


def _held(columns: Columns, at: list[int], nodes: int) -> Market:
    """The offers at these elements as held ones, `nodes` of each."""
    where = np.array(at)
    chosen = replace(
        columns,
        offers=[columns.offer(i) for i in at],
        type_index=columns.type_index[where],
        region_index=columns.region_index[where],
        kind_index=columns.kind_index[where],
        usd_per_hour=np.zeros(len(at)),
        interruptions_per_hour=columns.interruptions_per_hour[where],
        plannable=columns.plannable[where],
        verified=columns.verified[where],
    )
    count = len(columns.instance_types)
    return Market(
        snapshot=arranged(chosen),
        node_limit=np.full(count, float(nodes)),
        power_usd_per_node_hour=np.zeros(count),
        term_paid=True,
    )


def _key(each: HeldCommitment | Offer) -> Key:
    return (each.provider, each.region, each.instance_type, each.price_kind)


def markets(
    columns: Columns, owned: tuple[OwnedMachine, ...], settings: PlannerSettings, start: datetime
) -> tuple[Market, ...]:
    """Every market open to a job, the snapshot first, at the prices that the user has negotiated.

    What the inventory says is taken to hold on the day of `start`.
    """
    columns = discounted(columns, settings.discounts)
    held = held_markets(columns, settings.held)
    day = start.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    own = owned_market(owned, settings.cost_basis, day) if owned else None
    return (rented(columns), *held, *(() if own is None else (own,)))
