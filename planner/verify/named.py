"""The offer that a part of a document names, looked up in the snapshot, the held commitments or the inventory."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np

from catalog.columns import Columns
from catalog.money import usd_text
from catalog.offer import InstanceType, Offer
from planner.job import Constraints
from planner.settings import PlannerSettings
from planner.verify.ledger import Ledger, Path
from planner.verify.rules import cannot_be_had, negotiated_micros, winning
from planner.verify.shelves import Lot, Shelves

Key = tuple[str, str, str, str]
IN = "prices"


class Named(NamedTuple):
    """A lot at the price of the very offer named, that offer's row (None: an own machine's), and how many nodes."""

    lot: Lot
    offer: Offer | None
    nodes: int


class Counter:
    """Where offers are asked for by name."""

    def __init__(self, columns: Columns, shelves: Shelves, settings: PlannerSettings, constraints: Constraints) -> None:
        """Over these lots."""
        self._columns, self._settings, self._constraints = columns, settings, constraints
        self._types = {(each.provider, each.name): i for i, each in enumerate(columns.instance_types)}
        self._regions = {place: i for i, place in enumerate(columns.regions)}
        self._kinds = {kind: i for i, kind in enumerate(columns.kinds)}
        self._lots: dict[Key, list[Lot]] = {}
        for lot in shelves.lots:
            of = lot.machine.type
            self._lots.setdefault((*lot.place, of.name, lot.kind.name), []).append(lot)

    def named(self, ledger: Ledger, path: Path) -> Named | None:
        """The offer that stands at the path, or None where there is none such, which the ledger then says.

        Ticks off everything that the document says of the offer itself.
        """
        key = tuple(ledger.text(*path, name) for name in ("provider", "region", "instance_type", "price_kind"))
        zone, nodes = ledger.text(*path, "zone"), ledger.whole(*path, "nodes", least=1)
        ledger.tick(
            IN, *((*path, name) for name in ("provider", "region", "zone", "instance_type", "price_kind", "nodes"))
        )
        lots = self._lots.get((key[0], key[1], key[2], key[3]), [])
        if not lots:
            ledger.holds(
                IN, (*path, "instance_type"), False, None, f"no {' '.join(key)} is in the snapshot or the inventory"
            )
            return self._nothing(ledger, path)
        own = next((lot for lot in lots if lot.machine.own is not None), None)
        held = next((lot for lot in lots if lot.paid and nodes <= lot.machine.limit), None)
        if own is not None:
            ledger.holds(IN, (*path, "zone"), zone == "", "", "own machines stand in no zone")
            found = Named(own, None, nodes)
        else:
            row = self._row((key[0], key[1], key[2], key[3]), zone)
            if row is None:
                ledger.holds(IN, (*path, "zone"), False, None, f"{' '.join(key)} has no price in that zone")
                return self._nothing(ledger, path)
            offer, listed = row
            lot = self._of(lots, offer) if held is None else held
            micros = 0 if lot.paid else self._micros(offer, listed)
            found = Named(replace(lot, micros=micros), self._negotiated(offer, listed), nodes)
        self._described(ledger, path, found)
        return found

    def prices(self, place: tuple[str, str], name: str, kind: str) -> set[int]:
        """Micro-dollars per node-hour that the snapshot has for a machine in a place under a price kind."""
        key = (*place, name, kind)
        if key not in self._lots:
            return set()
        each = self._columns.instance_types[self._types[place[0], name]]
        listed = {round(float(self._columns.usd_per_hour[element]) * 1e6) for element in self._elements(key)}
        return {negotiated_micros(micros, each, place, kind, self._settings.discounts) for micros in listed}

    def _elements(self, key: Key) -> list[int]:
        """Where in the snapshot the offers of a key stand, whatever their zone."""
        provider, region, name, kind = key
        at = (
            (self._columns.type_index == self._types[provider, name])
            & (self._columns.region_index == self._regions[provider, region])
            & (self._columns.kind_index == self._kinds[kind])
        )
        found: list[int] = np.flatnonzero(at).tolist()
        return found

    def _row(self, key: Key, zone: str) -> tuple[Offer, int] | None:
        """The row of the snapshot and its list price."""
        for element in self._elements(key):
            offer = self._columns.offer(element)
            if offer.zone == zone:
                return offer, round(float(self._columns.usd_per_hour[element]) * 1e6)
        return None

    def _of(self, lots: list[Lot], offer: Offer) -> Lot:
        """The lot of the snapshot that a row belongs to, with the row's own rate and standing."""
        lot = next(lot for lot in lots if not lot.paid)
        rate = offer.interruptions_per_hour
        rate = self._settings.default_interruptions_per_hour if rate is None else rate
        reason = cannot_be_had(
            lot.machine.type,
            lot.kind,
            lot.place,
            self._constraints,
            whole_price=not offer.partial,
            verified=offer.available,
        )
        return replace(lot, rate=rate if lot.kind.interruptible else 0.0, reason=reason)

    def _micros(self, offer: Offer, listed: int) -> int:
        each = self._columns.instance_types[self._types[offer.provider, offer.instance_type]]
        place = (offer.provider, offer.region)
        return negotiated_micros(listed, each, place, offer.price_kind, self._settings.discounts)

    def _negotiated(self, offer: Offer, listed: int) -> Offer:
        """The row at the price that the user pays, its source saying so."""
        each = self._columns.instance_types[self._types[offer.provider, offer.instance_type]]
        won = winning(each, (offer.provider, offer.region), offer.price_kind, self._settings.discounts)
        if won is None:
            return replace(offer, usd_micros_per_hour=listed)
        what = "negotiated price" if won.percent is None else f"{won.percent:g} % negotiated discount"
        source = f"{what}; list {usd_text(listed)} USD per hour: {offer.source}"
        return replace(offer, usd_micros_per_hour=self._micros(offer, listed), source=source)

    def _described(self, ledger: Ledger, path: Path, found: Named) -> None:
        """What the catalogue says of the machine and its price."""
        each: InstanceType = found.lot.machine.type
        price = found.lot.micros if found.offer is None else found.offer.usd_micros_per_hour
        count = float(each.accelerator_count)
        ledger.is_money(IN, (*path, "usd_per_node_hour"), price, "not the price of this offer", relative=0.0)
        ledger.is_same(IN, (*path, "accelerator"), each.accelerator, "not the accelerator of this machine")
        per_node = (*path, "accelerators_per_node")
        ledger.is_number(IN, per_node, round(count, 4), "not what one such machine has")
        ledger.is_same(IN, (*path, "slice_hosts"), each.fixed_nodes, "not the hosts of such a slice")

    @staticmethod
    def _nothing(ledger: Ledger, path: Path) -> None:
        """What is said of an offer that is not there cannot be checked; one wrong figure is enough."""
        names = ("usd_per_node_hour", "accelerator", "accelerators_per_node", "slice_hosts")
        ledger.tick(IN, *((*path, name) for name in names))


def second_text(moment: datetime) -> str:
    """A time as plans show it: UTC, to the second."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
