"""Every price that a job may use, as plain rows: the snapshot's, existing commitments', and own machines'.

Offers that differ only in zone and price form one `OfferGroup` at the lowest price, because the cheapest one dominates
the others. No other offer is omitted.
"""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.model.measured_rates import MeasuredRates
from gpuplan.catalog.model.offer import InstanceType
from gpuplan.catalog.model.owned_machine import OwnedMachine
from gpuplan.catalog.model.price_kinds import PriceKind, price_kinds
from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.planner.model.job import TrainingJob
from gpuplan.planner.model.quota import Quota
from gpuplan.planner.model.settings import PlannerSettings
from gpuplan.planner.verify.eligibility_check import (
    breaks_of_kind,
    breaks_of_place,
    breaks_of_type,
    cannot_be_had,
    is_of_family,
    negotiated_micros,
)

Place = tuple[str, str]
_NO_LIMIT = 1 << 30


#: The properties that decide the speed of a machine: instance types with equal properties count as one machine.
Shape = tuple[str, int, float, float, float, int, float, bool, MeasuredRates | None]


class Machine(NamedTuple):
    """An instance type, its available nodes, the cost of power per node-hour in addition to the price, and its shape.

    `owned` is set for the user's machines.
    """

    type: InstanceType
    limit: int
    power_usd_per_hour: float
    owned: OwnedMachine | None
    shape: Shape

    @classmethod
    def of(
        cls, type_: InstanceType, limit: int, power_usd_per_hour: float = 0.0, owned: OwnedMachine | None = None
    ) -> "Machine":
        """The machine with its shape, which is looked up once for each of its offers."""
        return cls(type_, limit, power_usd_per_hour, owned, _shape_of(type_, None if owned is None else owned.measured))

    @property
    def measured(self) -> MeasuredRates | None:
        """Rates measured on the machine; None where there are none."""
        return None if self.owned is None else self.owned.measured


def _shape_of(instance_type: InstanceType, measured: MeasuredRates | None) -> Shape:
    """The shape of a machine; unknown rates are -1."""
    share = min(1.0, float(instance_type.accelerator_count))
    memory = instance_type.accelerator_memory_mib or accelerators()[instance_type.accelerator].device_memory_mib * share
    return (
        instance_type.accelerator,
        instance_type.devices,
        share,
        float(memory),
        -1.0 if instance_type.intranode_gbs is None else instance_type.intranode_gbs,
        instance_type.scaleup_domain,
        -1.0 if instance_type.network_gbps is None else instance_type.network_gbps,
        instance_type.clusters,
        measured,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferGroup:
    """Equal offers at the price of the cheapest: `size` of them, the next at `second` micro-dollars (None: only one).

    `source_number` numbers the source: 0 for the snapshot, then one per node count of the existing commitments, then
    own machines. `first` is the index of the cheapest in the snapshot. `rate` is interruptions per node-hour, 0 for
    price kinds that are not interruptible; `zones` of the region list the machine at its price kind. `reason` says why it is not eligible, `broken` which requirements it
    breaks. `quota_nodes` are the most nodes that the known quotas allow.
    """

    source_number: int
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
    quota_nodes: float = math.inf
    zones: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenOffers:
    """All offer groups, and the number of offers in them."""

    offer_groups: tuple[OfferGroup, ...]
    offers: int


def open_offers(
    columns: Columns, owned: tuple[OwnedMachine, ...], settings: PlannerSettings, job: TrainingJob
) -> OpenOffers:
    """Every offer group of the snapshot, of existing commitments and of own machines."""
    offer_groups = [*_of_snapshot(columns, settings, job)]
    committed_groups = [*_committed_groups(offer_groups, settings, named=bool(job.constraints.price_kinds))]
    owned_groups = [
        *_owned_groups(owned, settings, job, source_number=1 + len({commitment.nodes for commitment in settings.held}))
    ]
    offer_groups = [*offer_groups, *committed_groups, *owned_groups]
    return OpenOffers(offer_groups=tuple(offer_groups), offers=sum(offer_group.size for offer_group in offer_groups))


def _of_snapshot(columns: Columns, settings: PlannerSettings, job: TrainingJob) -> Iterator[OfferGroup]:
    """The offer groups of the snapshot, from one pass over its offers."""
    quotas = () if job.constraints.quotas == "ignore" else settings.quotas
    prices_by_key: dict[tuple[int, int, int, float | None, bool, bool], list[tuple[int, int]]] = {}
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
        prices_by_key.setdefault(key, []).append((micros, number))
    zones = Counter[tuple[int, int, int]]()
    for (type_, region, kind, *_), prices in prices_by_key.items():
        zones[type_, region, kind] += len(prices)
    # What a type, a place and a price kind break, each by itself.
    by_type = [breaks_of_type(instance_type, job) for instance_type in columns.instance_types]
    by_place = [breaks_of_place(place, job) for place in columns.regions]
    by_kind = [breaks_of_kind(price_kinds()[name], job) for name in columns.kinds]
    machines = [Machine.of(instance_type, _NO_LIMIT) for instance_type in columns.instance_types]
    kinds = [price_kinds()[name] for name in columns.kinds]
    for (type_, region, kind, rate, whole, verified), prices in prices_by_key.items():
        machine, place, paid_by = machines[type_], columns.regions[region], kinds[kind]
        (cheapest, first), *others = sorted(prices)[:2]
        second = others[0][0] if others else None
        if settings.discounts:
            cheapest = negotiated_micros(cheapest, machine.type, place, paid_by.name, settings.discounts)
            second = (
                None
                if second is None
                else negotiated_micros(second, machine.type, place, paid_by.name, settings.discounts)
            )
        yield OfferGroup(
            source_number=0,
            first=first,
            machine=machine,
            place=place,
            kind=paid_by,
            rate=_rate(paid_by, rate, settings),
            micros=cheapest,
            size=len(prices),
            second=second,
            paid=False,
            reason=cannot_be_had(machine.type, paid_by, place, job.constraints, whole_price=whole, verified=verified),
            broken=by_type[type_] | by_place[region] | by_kind[kind],
            quota_nodes=_quota_nodes(machine.type, paid_by, place, quotas),
            zones=zones[type_, region, kind],
        )


def _quota_nodes(type_: InstanceType, kind: PriceKind, place: Place, quotas: tuple[Quota, ...]) -> float:
    """The most nodes of a type, kind and place that every quota on them allows together."""
    most = math.inf
    for quota in quotas:
        about = (
            (quota.instance_type, type_.name == quota.instance_type),
            (quota.accelerator, type_.accelerator == quota.accelerator),
            (quota.family, is_of_family(type_.name.lower(), quota.family.lower())),
            (quota.region, place[1] == quota.region),
            (quota.price_kind, kind.interruptible == (quota.price_kind == "spot")),
        )
        if place[0] != quota.provider or not all(is_met for stated, is_met in about if stated):
            continue
        of_node = type_.accelerator_count if quota.accelerators is not None else type_.vcpus
        allowed = quota.accelerators if quota.accelerators is not None else quota.vcpus
        if allowed is not None and of_node != 0:
            most = min(most, 0 if of_node is None else (allowed + 1e-6) // of_node)
    return most


def _rate(kind: PriceKind, rate: float | None, settings: PlannerSettings) -> float:
    """Interruptions per node-hour; the default where the source has none."""
    if not kind.interruptible:
        return 0.0
    return settings.default_interruptions_per_hour if rate is None else rate


def _committed_groups(
    offer_groups: list[OfferGroup], settings: PlannerSettings, *, named: bool
) -> Iterator[OfferGroup]:
    """Nodes under existing commitments, limited to the committed number, at no further cost.

    A job without price kinds of its own (`named` is False) may use them under any price kind.
    """
    sizes = sorted({commitment.nodes for commitment in settings.held})
    for commitment in settings.held:
        for offer_group in offer_groups:
            of = offer_group.machine.type
            if (of.provider, of.name, offer_group.kind.name) != (
                commitment.provider,
                commitment.instance_type,
                commitment.price_kind,
            ):
                continue
            if offer_group.place != (commitment.provider, commitment.region):
                continue
            yield OfferGroup(
                source_number=1 + sizes.index(commitment.nodes),
                first=offer_group.first,
                machine=offer_group.machine._replace(limit=commitment.nodes),
                place=offer_group.place,
                kind=offer_group.kind,
                rate=offer_group.rate,
                micros=0,
                size=offer_group.size,
                second=0 if offer_group.size > 1 else None,
                paid=True,
                reason=offer_group.reason,
                broken=offer_group.broken if named else offer_group.broken - {"constraints.price_kinds"},
            )


def _owned_groups(
    owned: tuple[OwnedMachine, ...], settings: PlannerSettings, job: TrainingJob, *, source_number: int
) -> Iterator[OfferGroup]:
    """Own machines at full cost (hours and power) or marginal cost (power only)."""
    kind = next(row for row in price_kinds().values() if row.owned)
    ordered = sorted(owned, key=lambda machine: (machine.instance_type.provider, machine.instance_type.name))
    for number, owned_machine in enumerate(ordered):
        power = owned_machine.power_watts / 1000.0 * owned_machine.pue * owned_machine.usd_per_kwh
        place = (owned_machine.instance_type.provider, owned_machine.region)
        yield OfferGroup(
            source_number=source_number,
            first=number,
            machine=Machine.of(owned_machine.instance_type, owned_machine.machines, power, owned_machine),
            place=place,
            kind=kind,
            rate=0.0,
            micros=round(owned_machine.usd_per_hour_full * 1e6) if settings.cost_basis == "full" else 0,
            size=1,
            second=None,
            paid=False,
            reason=cannot_be_had(
                owned_machine.instance_type, kind, place, job.constraints, whole_price=True, verified=True
            ),
            broken=breaks_of_type(owned_machine.instance_type, job, is_owned=True) | breaks_of_kind(kind, job),
        )
