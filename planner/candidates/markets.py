"""The sources of offers: the snapshot, owned machines, and commitments already paid.

All three use the same formulas. A market states what differs: the number of nodes of each type, the cost of power,
whether the term is paid, and whether region constraints apply.
"""

import difflib
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.offer import Offer
from gpuplan.catalog.model.owned_machine import OwnedMachine
from gpuplan.catalog.parsing.quantities import shown
from gpuplan.catalog.runtime.errors import Fault, UnusableInput
from gpuplan.catalog.snapshots.offer_columns import Columns, columns_of
from gpuplan.planner.candidates.machine_shapes import Arranged, arranged
from gpuplan.planner.cost.planned_prices import planned_prices
from gpuplan.planner.model.quota import IGNORE, KNOWN, RESPECT, Quota
from gpuplan.planner.model.settings import ExistingCommitment, PlannerSettings

Floats = NDArray[np.float64]
#: Provider, region, instance type and price kind.
Key = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Up:
    """Machines that run the job already: their number of nodes, and the hours since they started."""

    nodes: int
    hours: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Market:
    """Offers with common rules.

    `node_limit` and `power_usd_per_node_hour` have one element per instance type. `owned` is empty except in the market of
    owned machines, to which region constraints do not apply. A market that is `up` has one offer, on which the job runs.
    `quotas` limit the nodes of the snapshot's offers.
    """

    snapshot: Arranged
    node_limit: Floats
    power_usd_per_node_hour: Floats
    term_paid: bool = False
    owned: tuple[OwnedMachine, ...] = ()
    up: Up | None = None
    quotas: tuple[Quota, ...] = ()

    @property
    def columns(self) -> Columns:
        """The market's offers as columns."""
        return self.snapshot.columns


@lru_cache(maxsize=4)
def rented(columns: Columns, quotas: tuple[Quota, ...] = ()) -> Market:
    """The snapshot's offers: any number of nodes within the quotas, power included in the price."""
    count = len(columns.instance_types)
    return Market(
        snapshot=arranged(columns),
        node_limit=np.full(count, np.inf),
        power_usd_per_node_hour=np.zeros(count),
        quotas=quotas,
    )


@lru_cache(maxsize=16)
def owned_market(machines: tuple[OwnedMachine, ...], cost_basis: str, stated_at: datetime) -> Market:
    """Owned machines at full cost (amortisation and power) or marginal cost (power only)."""
    ordered = tuple(sorted(machines, key=lambda machine: (machine.instance_type.provider, machine.instance_type.name)))
    full = cost_basis == "full"
    offers = [
        _owned_offer(machine, round(machine.usd_per_hour_full * 1e6) if full else 0, stated_at) for machine in ordered
    ]
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
def commitment_markets(columns: Columns, existing_commitments: tuple[ExistingCommitment, ...]) -> tuple[Market, ...]:
    """Commitments that the user already pays for: their offers at price 0, limited to the committed nodes.

    One market per number of nodes, since offers of one market share their rules. Raises `UnusableInput` for a commitment
    without an offer in the snapshot, and for a duplicate.
    """
    at: dict[Key, list[int]] = {}
    for i, offer in enumerate(columns.offers if existing_commitments else ()):
        at.setdefault(_key(offer), []).append(i)
    faults = [
        fault
        for i, existing_commitment in enumerate(existing_commitments)
        if (fault := _commitment_fault(i, existing_commitments, columns, at)) is not None
    ]
    if faults:
        raise UnusableInput(*faults)
    sizes = sorted({existing_commitment.nodes for existing_commitment in existing_commitments})
    return tuple(
        _paid_market(
            columns,
            [
                i
                for existing_commitment in existing_commitments
                if existing_commitment.nodes == size
                for i in at[_key(existing_commitment)]
            ],
            size,
        )
        for size in sizes
    )


def _commitment_fault(
    place: int, existing_commitments: tuple[ExistingCommitment, ...], columns: Columns, at: dict[Key, list[int]]
) -> Fault | None:
    """What is wrong with the commitment at `place` of the settings, if anything."""
    commitment = existing_commitments[place]
    if _key(commitment) in (_key(earlier) for earlier in existing_commitments[:place]):
        return Fault(("settings", "held", place), "is held already; give all its nodes at once")
    if _key(commitment) in at:
        return None
    checked = (
        ("provider", commitment.provider, {provider for provider, _ in columns.regions}),
        (
            "region",
            commitment.region,
            {region for provider, region in columns.regions if provider == commitment.provider},
        ),
        (
            "instance_type",
            commitment.instance_type,
            {a.name for a in columns.instance_types if a.provider == commitment.provider},
        ),
    )
    for name, value, known in checked:
        if value not in known:
            near = ", ".join(difflib.get_close_matches(value, sorted(known), n=3, cutoff=0.4) or sorted(known)[:3])
            message = f"{shown(value)} is not in the snapshot; nearest: {near}"
            return Fault(("settings", "held", place, name), message)
    kinds = sorted({key[3] for key in at if key[:3] == _key(commitment)[:3]})
    message = f"{commitment.price_kind} has no price there in the snapshot; it has {', '.join(kinds) or 'none'}"
    return Fault(("settings", "held", place, "price_kind"), message)


def _paid_market(columns: Columns, at: list[int], nodes: int) -> Market:
    """The offers at these elements at price 0, `nodes` of each."""
    where = np.array(at)
    chosen = replace(columns.subset(where, [columns.offer(i) for i in at]), usd_per_hour=np.zeros(len(at)))
    count = len(columns.instance_types)
    return Market(
        snapshot=arranged(chosen),
        node_limit=np.full(count, float(nodes)),
        power_usd_per_node_hour=np.zeros(count),
        term_paid=True,
    )


def _key(existing_commitment: ExistingCommitment | Offer) -> Key:
    return (
        existing_commitment.provider,
        existing_commitment.region,
        existing_commitment.instance_type,
        existing_commitment.price_kind,
    )


def markets(
    columns: Columns,
    owned: tuple[OwnedMachine, ...],
    settings: PlannerSettings,
    start: datetime,
    quotas: str = KNOWN,
) -> tuple[Market, ...]:
    """Every market of a job, the snapshot first, at the prices that are expected on the day of `start`, less discounts.

    `quotas` is the job's `constraints.quotas`. Raises `UnusableInput` if it is to respect quotas and none is known.

    The inventory is assumed to be valid on the day of `start`.
    """
    columns = planned_prices(columns, settings, start)
    commitments = commitment_markets(columns, settings.held)
    day = start.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    inventory = owned_market(owned, settings.cost_basis, day) if owned else None
    return (
        rented(columns, applicable_quotas(quotas, settings)),
        *commitments,
        *(() if inventory is None else (inventory,)),
    )


def applicable_quotas(asked: str, settings: PlannerSettings) -> tuple[Quota, ...]:
    """The quotas that a job keeps to. Raises `UnusableInput` if it is to respect quotas and none is known."""
    if asked == RESPECT and not settings.quotas:
        message = "is respect, but no quota is known: state `quotas` in the settings file, or read them: gpuplan quotas"
        raise UnusableInput.at("constraints", "quotas", message=message)
    return () if asked == IGNORE else settings.quotas
