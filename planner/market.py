"""Where configurations come from: the snapshot, the user's own machines, and commitments already paid.

All three go through the same arithmetic; a market only says what differs: how many nodes there are
of each type, what power costs, whether the term is paid, whether places bind.
"""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from catalog.columns import Columns, columns_of
from catalog.offer import Offer
from catalog.owned import OwnedMachine
from planner.settings import HeldCommitment, PlannerSettings
from planner.shapes import Arranged, arranged

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Market:
    """Offers that share their rules.

    `node_limit` and `power_usd_per_node_hour` have one element per instance type; `owned` is empty
    but for the user's own machines, whose places are exempt from region constraints.
    """

    snapshot: Arranged
    node_limit: Floats
    power_usd_per_node_hour: Floats
    term_paid: bool = False
    owned: tuple[OwnedMachine, ...] = ()

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
        snapshot=arranged(columns),
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
def held_market(columns: Columns, held: tuple[HeldCommitment, ...]) -> Market | None:
    """Commitments the user already pays for: the same offers with nothing more to pay, as many nodes as held.

    None if no commitment names an offer of the snapshot.
    """
    limits = {_key(each): 0 for each in held}
    for each in held:
        limits[_key(each)] += each.nodes
    at = [i for i, offer in enumerate(columns.offers) if _key(offer) in limits]
    if not at:
        return None
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
    node_limit = np.zeros(len(columns.instance_types))
    for i in at:
        index = int(columns.type_index[i])
        node_limit[index] = max(node_limit[index], limits[_key(columns.offer(i))])
    return Market(
        snapshot=arranged(chosen),
        node_limit=node_limit,
        power_usd_per_node_hour=np.zeros(len(columns.instance_types)),
        term_paid=True,
    )


def _key(each: HeldCommitment | Offer) -> tuple[str, str, str, str]:
    return (each.provider, each.region, each.instance_type, each.price_kind)


def markets(
    columns: Columns, owned: tuple[OwnedMachine, ...], settings: PlannerSettings, start: datetime
) -> tuple[Market, ...]:
    """Every market open to a job, the snapshot first. What the inventory says is taken to hold on the day of `start`."""
    held = held_market(columns, settings.held) if settings.held else None
    day = start.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    own = owned_market(owned, settings.cost_basis, day) if owned else None
    return tuple(market for market in (rented(columns), held, own) if market is not None)
