"""Lookup of the offer that a document names, in the snapshot, the existing commitments or the inventory."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np

from gpuplan.catalog.model.money import usd_text
from gpuplan.catalog.model.offer import InstanceType, Offer
from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.planner.model.job import Constraints
from gpuplan.planner.model.settings import PlannerSettings
from gpuplan.planner.verify.eligibility_check import LEAST_MICROS, cannot_be_had, negotiated_micros, winning
from gpuplan.planner.verify.expected_prices import less_percent
from gpuplan.planner.verify.field_coverage import FieldCoverage, Path
from gpuplan.planner.verify.offer_groups import OfferGroup, OpenOffers

Key = tuple[str, str, str, str]
IN = "prices"


class Named(NamedTuple):
    """An offer group at the price of the named offer, that offer's row (None: an own machine's), and the number of
    nodes.
    """

    offer_group: OfferGroup
    offer: Offer | None
    nodes: int


class Counter:
    """Lookup of offers by provider, region, instance type and price kind."""

    def __init__(
        self, columns: Columns, open_offers: OpenOffers, settings: PlannerSettings, constraints: Constraints
    ) -> None:
        """Lookup over these offer groups."""
        self._columns, self._settings, self._constraints = columns, settings, constraints
        self._types = {
            (instance_type.provider, instance_type.name): i for i, instance_type in enumerate(columns.instance_types)
        }
        self._regions = {place: i for i, place in enumerate(columns.regions)}
        self._kinds = {kind: i for i, kind in enumerate(columns.kinds)}
        self._offer_groups: dict[Key, list[OfferGroup]] = {}
        for offer_group in open_offers.offer_groups:
            of = offer_group.machine.type
            self._offer_groups.setdefault((*offer_group.place, of.name, offer_group.kind.name), []).append(offer_group)

    def named(self, field_coverage: FieldCoverage, path: Path) -> Named | None:
        """The offer named at the path, with every figure of the offer checked; None, and a wrong figure, if it does
        not exist.
        """
        key = tuple(field_coverage.text(*path, name) for name in ("provider", "region", "instance_type", "price_kind"))
        zone, nodes = field_coverage.text(*path, "zone"), field_coverage.whole(*path, "nodes", least=1)
        field_coverage.tick(
            IN, *((*path, name) for name in ("provider", "region", "zone", "instance_type", "price_kind", "nodes"))
        )
        offer_groups = self._offer_groups.get((key[0], key[1], key[2], key[3]), [])
        if not offer_groups:
            field_coverage.is_true(
                IN, (*path, "instance_type"), False, None, f"no {' '.join(key)} is in the snapshot or the inventory"
            )
            return self._nothing(field_coverage, path)
        owned_group = next((offer_group for offer_group in offer_groups if offer_group.machine.owned is not None), None)
        commitment = next(
            (offer_group for offer_group in offer_groups if offer_group.paid and nodes <= offer_group.machine.limit),
            None,
        )
        if owned_group is not None:
            field_coverage.is_true(IN, (*path, "zone"), zone == "", "", "own machines have no zone")
            named = Named(owned_group, None, nodes)
        else:
            row = self._row((key[0], key[1], key[2], key[3]), zone)
            if row is None:
                field_coverage.is_true(IN, (*path, "zone"), False, None, f"{' '.join(key)} has no price in that zone")
                return self._nothing(field_coverage, path)
            offer, listed = row
            offer_group = self._of(offer_groups, offer) if commitment is None else commitment
            micros = 0 if offer_group.paid else self._micros(offer, listed)
            named = Named(replace(offer_group, micros=micros), self._negotiated(offer, listed), nodes)
        self._described(field_coverage, path, named)
        return named

    def prices(self, place: tuple[str, str], name: str, kind: str) -> set[int]:
        """Micro-dollars per node-hour in the snapshot for an instance type in a place under a price kind."""
        key = (*place, name, kind)
        if key not in self._offer_groups:
            return set()
        instance_type = self._columns.instance_types[self._types[place[0], name]]
        listed = {round(float(self._columns.usd_per_hour[element]) * 1e6) for element in self._elements(key)}
        return {negotiated_micros(micros, instance_type, place, kind, self._settings.discounts) for micros in listed}

    def _elements(self, key: Key) -> list[int]:
        """Indices in the snapshot of the offers with this key, in any zone."""
        provider, region, name, kind = key
        at = (
            (self._columns.type_index == self._types[provider, name])
            & (self._columns.region_index == self._regions[provider, region])
            & (self._columns.kind_index == self._kinds[kind])
        )
        elements: list[int] = np.flatnonzero(at).tolist()
        return elements

    def _row(self, key: Key, zone: str) -> tuple[Offer, int] | None:
        """The row of the snapshot in this zone and its list price in micro-dollars."""
        for element in self._elements(key):
            offer = self._columns.offer(element)
            if offer.zone == zone:
                return offer, round(float(self._columns.usd_per_hour[element]) * 1e6)
        return None

    def _of(self, offer_groups: list[OfferGroup], offer: Offer) -> OfferGroup:
        """The offer group of a snapshot row, with that row's own interruption rate and eligibility."""
        offer_group = next(offer_group for offer_group in offer_groups if not offer_group.paid)
        rate = offer.interruptions_per_hour
        rate = self._settings.default_interruptions_per_hour if rate is None else rate
        reason = cannot_be_had(
            offer_group.machine.type,
            offer_group.kind,
            offer_group.place,
            self._constraints,
            whole_price=not offer.partial,
            verified=offer.available,
        )
        return replace(offer_group, rate=rate if offer_group.kind.interruptible else 0.0, reason=reason)

    def _micros(self, offer: Offer, listed: int) -> int:
        instance_type = self._columns.instance_types[self._types[offer.provider, offer.instance_type]]
        place = (offer.provider, offer.region)
        return negotiated_micros(listed, instance_type, place, offer.price_kind, self._settings.discounts)

    def _negotiated(self, offer: Offer, listed: int) -> Offer:
        """The row at the price that the user pays, with the discount named in its source."""
        instance_type = self._columns.instance_types[self._types[offer.provider, offer.instance_type]]
        won = winning(instance_type, (offer.provider, offer.region), offer.price_kind, self._settings.discounts)
        if won is None:
            return replace(offer, usd_micros_per_hour=listed)
        what = "negotiated price" if won.percent is None else f"{won.percent:g} % negotiated discount"
        source = f"{what}; list {usd_text(listed)} USD per hour: {offer.source}"
        estimate = less_percent(offer.price_estimate, won.percent, least=LEAST_MICROS)
        return replace(offer, usd_micros_per_hour=self._micros(offer, listed), source=source, price_estimate=estimate)

    def _described(self, field_coverage: FieldCoverage, path: Path, named: Named) -> None:
        """Check price, accelerator, accelerators per node and slice hosts."""
        instance_type: InstanceType = named.offer_group.machine.type
        price = named.offer_group.micros if named.offer is None else named.offer.usd_micros_per_hour
        count = float(instance_type.accelerator_count)
        field_coverage.is_money(IN, (*path, "usd_per_node_hour"), price, "not the price of this offer", relative=0.0)
        field_coverage.is_same(
            IN, (*path, "accelerator"), instance_type.accelerator, "not the accelerator of this machine"
        )
        per_node = (*path, "accelerators_per_node")
        field_coverage.is_number(IN, per_node, round(count, 4), "not the number of accelerators of this machine")
        field_coverage.is_same(IN, (*path, "slice_hosts"), instance_type.fixed_nodes, "not the hosts of such a slice")

    @staticmethod
    def _nothing(field_coverage: FieldCoverage, path: Path) -> None:
        """Mark the figures of a missing offer as covered, because one wrong figure is enough."""
        names = ("usd_per_node_hour", "accelerator", "accelerators_per_node", "slice_hosts")
        field_coverage.tick(IN, *((*path, name) for name in names))


def second_text(moment: datetime) -> str:
    """A time as plans show it: UTC, to the second."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
