"""Every price that is open to a job, as plain rows: the snapshot's, commitments that are held, the user's own machines.

Offers alike in machine, region, price kind, interruption rate and standing differ in zone and price alone, and their
cheapest is never worse than another of them: they make one `Lot`, at the cheapest price. Nothing else is left out.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from catalog.columns import Columns
from catalog.measured import MeasuredRates
from catalog.offer import InstanceType
from catalog.owned import OwnedMachine
from catalog.price_kinds import PriceKind, price_kinds
from planner.job import Constraints
from planner.settings import PlannerSettings
from planner.verify.rules import breaks, cannot_be_had, negotiated_micros

Place = tuple[str, str]
_NO_LIMIT = 1 << 30


class Machine(NamedTuple):
    """An instance type, how many nodes of it there are, and what an hour of one adds besides its price.

    `own` is set for the user's machines.
    """

    type: InstanceType
    limit: int
    power_usd_per_hour: float
    own: OwnedMachine | None

    @property
    def measured(self) -> MeasuredRates | None:
        """What was measured on it, if anything."""
        return None if self.own is None else self.own.measured


@dataclass(frozen=True, slots=True, kw_only=True)
class Lot:
    """Equal offers at the price of the cheapest: `size` of them, the next one at `second` micro-dollars (None: alone).

    `shelf` numbers where it comes from (0: the snapshot; then commitments, one shelf per number of nodes; then own
    machines). `first` is the place of the cheapest in the snapshot. `rate` is the interruptions of one node per hour, 0 where
    nobody takes it away. `reason` says why it cannot be had, `broken` which requirements it breaks.
    """

    shelf: int
    first: int
    machine: Machine
    place: Place
    kind: PriceKind
    rate: float
    micros: int
    size: int
    second: int | None
    paid: bool
    reason: str
    broken: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelves:
    """All lots, and how many offers they stand for."""

    lots: tuple[Lot, ...]
    offers: int


def shelves(
    columns: Columns, owned: tuple[OwnedMachine, ...], settings: PlannerSettings, constraints: Constraints
) -> Shelves:
    """Every lot of the snapshot (shelf 0), of held commitments, and of own machines."""
    lots = [*_of_snapshot(columns, settings, constraints)]
    held = [*_held(lots, settings, named=bool(constraints.price_kinds))]
    own = [*_own(owned, settings, constraints, shelf=1 + len({each.nodes for each in settings.held}))]
    lots = [*lots, *held, *own]
    return Shelves(lots=tuple(lots), offers=sum(lot.size for lot in lots))


def _of_snapshot(columns: Columns, settings: PlannerSettings, constraints: Constraints) -> Iterator[Lot]:
    """The snapshot's lots, one pass over its offers."""
    found: dict[tuple[int, int, int, float | None, bool, bool], list[tuple[int, int]]] = {}
    listed = zip(
        columns.type_index.tolist(),
        columns.region_index.tolist(),
        columns.kind_index.tolist(),
        columns.interruptions_per_hour.tolist(),
        columns.plannable.tolist(),
        columns.verified.tolist(),
        columns.usd_per_hour.tolist(),
        strict=True,
    )
    for number, (type_, region, kind, rate, whole, verified, usd) in enumerate(listed):
        micros = round(usd * 1e6)
        key = (type_, region, kind, None if math.isnan(rate) else rate, whole, verified)
        found.setdefault(key, []).append((micros, number))
    machines = [Machine(each, _NO_LIMIT, 0.0, None) for each in columns.instance_types]
    kinds = [price_kinds()[name] for name in columns.kinds]
    for (type_, region, kind, rate, whole, verified), prices in found.items():
        each, place, paid_by = machines[type_], columns.regions[region], kinds[kind]
        (cheapest, first), *others = sorted(prices)[:2]
        second = others[0][0] if others else None
        if settings.discounts:
            cheapest = negotiated_micros(cheapest, each.type, place, paid_by.name, settings.discounts)
            second = (
                None
                if second is None
                else negotiated_micros(second, each.type, place, paid_by.name, settings.discounts)
            )
        yield Lot(
            shelf=0,
            first=first,
            machine=each,
            place=place,
            kind=paid_by,
            rate=_rate(paid_by, rate, settings),
            micros=cheapest,
            size=len(prices),
            second=second,
            paid=False,
            reason=cannot_be_had(each.type, paid_by, place, constraints, whole_price=whole, verified=verified),
            broken=breaks(each.type, paid_by, place, constraints, own=False),
        )


def _rate(kind: PriceKind, rate: float | None, settings: PlannerSettings) -> float:
    """Interruptions of one node per hour; the default where the source has none."""
    if not kind.interruptible:
        return 0.0
    return settings.default_interruptions_per_hour if rate is None else rate


def _held(lots: list[Lot], settings: PlannerSettings, *, named: bool) -> Iterator[Lot]:
    """The commitments that are paid for already, as many nodes as are held, with nothing more to pay.

    A job that has not `named` price kinds may use them whatever their kind is.
    """
    sizes = sorted({each.nodes for each in settings.held})
    for each in settings.held:
        for lot in lots:
            of = lot.machine.type
            if (of.provider, of.name, lot.kind.name) != (each.provider, each.instance_type, each.price_kind):
                continue
            if lot.place != (each.provider, each.region):
                continue
            yield Lot(
                shelf=1 + sizes.index(each.nodes),
                first=lot.first,
                machine=lot.machine._replace(limit=each.nodes),
                place=lot.place,
                kind=lot.kind,
                rate=lot.rate,
                micros=0,
                size=lot.size,
                second=0 if lot.size > 1 else None,
                paid=True,
                reason=lot.reason,
                broken=lot.broken if named else lot.broken - {"constraints.price_kinds"},
            )


def _own(
    owned: tuple[OwnedMachine, ...], settings: PlannerSettings, constraints: Constraints, *, shelf: int
) -> Iterator[Lot]:
    """The user's own machines, at full cost (their hours and power) or marginal cost (power alone)."""
    kind = next(row for row in price_kinds().values() if row.owned)
    ordered = sorted(owned, key=lambda machine: (machine.instance_type.provider, machine.instance_type.name))
    for number, each in enumerate(ordered):
        power = each.power_watts / 1000.0 * each.pue * each.usd_per_kwh
        place = (each.instance_type.provider, each.region)
        yield Lot(
            shelf=shelf,
            first=number,
            machine=Machine(each.instance_type, each.machines, power, each),
            place=place,
            kind=kind,
            rate=0.0,
            micros=round(each.usd_per_hour_full * 1e6) if settings.cost_basis == "full" else 0,
            size=1,
            second=None,
            paid=False,
            reason=cannot_be_had(each.instance_type, kind, place, constraints, whole_price=True, verified=True),
            broken=breaks(each.instance_type, kind, place, constraints, own=True),
        )
