"""A snapshot arranged for planning: distinct machine shapes, and offers sorted into cells and groups.

Offers whose instance types have the same shape train equally fast, so a *cell* is (shape, price kind, provider); inside a
cell offers are sorted by price. Built once per snapshot and cached.
"""

from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.accelerators import Accelerator, accelerators
from gpuplan.catalog.model.measured_rates import MeasuredRates, as_measured
from gpuplan.catalog.model.offer import InstanceType
from gpuplan.catalog.parsing.quantities import shown
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.planner.candidates.eligibility import eligibility_of_offers

Ints = NDArray[np.int32]
Floats = NDArray[np.float64]
#: Measured rates per instance type, None where not measured; empty if no type was measured.
Measured = tuple[MeasuredRates | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shapes:
    """Columns of the distinct machine shapes, and which shape each instance type has.

    `fixed_nodes` is 0 where the number of nodes is free. Shapes with the same `alone` differ only in their network: one
    node of them is the same machine. `of_type` has one element per instance type, the index of its shape.
    """

    accelerators: tuple[Accelerator, ...]
    accelerator: Ints
    devices: Ints
    fraction: Floats
    device_memory_mib: Floats
    intranode_gbs: Floats
    scaleup_domain: Ints
    internode_gbps: Floats
    clusters: NDArray[np.bool_]
    fixed_nodes: Ints
    alone: Ints
    of_type: Ints

    def __len__(self) -> int:
        """The number of distinct shapes."""
        return len(self.accelerator)

    def accelerator_of_type(self, type_index: int) -> Accelerator:
        """The accelerator of an instance type, with its measured rates if there are any."""
        return self.accelerators[int(self.accelerator[self.of_type[type_index]])]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Arranged:
    """A snapshot's offers in cell order. `original[i]` is the element of `columns` at place i.

    Interruption rates take few distinct values: `rate_levels[rate_level[i]]` is that of place i (nan: unknown).
    `zones[i]` is in how many zones of its region the machine of place i is listed at its price kind.
    Offers equal in all but zone and price form a group: `group[i]` is that of place i, `lead[g]` the place of its cheapest
    offer, which dominates the others for every job, and `group_size[g]` their number. Groups are numbered in order of
    their leads.
    """

    columns: Columns
    shapes: Shapes
    original: NDArray[np.int64]
    cell: Ints
    type_index: Ints
    region_index: Ints
    kind_index: Ints
    usd_per_hour: Floats
    rate_levels: Floats
    rate_level: Ints
    eligibility: NDArray[np.int8]
    zones: NDArray[np.int64]
    group: Ints
    lead: NDArray[np.int64]
    group_size: NDArray[np.int64]


@cache
def _known_accelerators() -> tuple[Accelerator, ...]:
    """One tuple for all catalogues without measured machines, because constants of chips are cached by its identity."""
    return tuple(accelerators().values())


@lru_cache(maxsize=8)
def shapes_of(instance_types: tuple[InstanceType, ...], measured: Measured = ()) -> Shapes:
    """The distinct shapes of these instance types, in order of first appearance: one object whatever their prices.

    Snapshots at the prices of different days share their shapes, and so the cached estimates. `measured`, if given, has one element per instance type; a measured type gets an accelerator of its own. Raises
    `UnusableInput` at `snapshot` for an unknown accelerator, which a newer release wrote.
    """
    table = _known_accelerators()
    at = {accelerator.name: i for i, accelerator in enumerate(table)}
    distinct: dict[tuple[float, ...], int] = {}
    of_type = []
    for number, instance_type in enumerate(instance_types):
        if instance_type.accelerator not in at:
            raise UnusableInput.at(
                "snapshot",
                message=f"holds {instance_type.name} with the accelerator {shown(instance_type.accelerator)}, which this release of gpuplan "
                "does not know; use the release that wrote it, or plan on another snapshot",
            )
        index = at[instance_type.accelerator]
        rates = measured[number] if measured else None
        if rates is not None:
            table, index = (*table, as_measured(table[index], rates)), len(table)
        of_type.append(distinct.setdefault(_shape(instance_type, index), len(distinct)))
    single: dict[tuple[float, ...], int] = {}
    alone = [single.setdefault(shape[:_OF_ONE_NODE], len(single)) for shape in distinct]
    # reshape keeps one column per property if there are no shapes.
    values = np.array(list(distinct), dtype=np.float64).reshape(len(distinct), 9)
    unknown_as_nan = np.where(values < 0, np.nan, values)
    return Shapes(
        accelerators=table,
        accelerator=values[:, 0].astype(np.int32),
        devices=values[:, 1].astype(np.int32),
        fraction=values[:, 2],
        device_memory_mib=values[:, 3],
        intranode_gbs=unknown_as_nan[:, 4],
        scaleup_domain=values[:, 5].astype(np.int32),
        internode_gbps=unknown_as_nan[:, 6],
        clusters=values[:, 7] > 0,
        fixed_nodes=values[:, 8].astype(np.int32),
        alone=np.array(alone, dtype=np.int32),
        of_type=np.array(of_type, dtype=np.int32),
    )


#: Number of leading properties of a shape that matter to a single node; the others describe its network.
_OF_ONE_NODE = 5


def _shape(instance_type: InstanceType, index: int) -> tuple[float, ...]:
    """The properties that decide how fast a machine trains; -1 means unknown, so that equal shapes compare equal."""
    memory = instance_type.accelerator_memory_mib or _memory_mib(instance_type)
    return (
        index,
        instance_type.devices,
        min(1.0, float(instance_type.accelerator_count)),
        memory,
        -1.0 if instance_type.intranode_gbs is None else instance_type.intranode_gbs,
        instance_type.scaleup_domain,
        -1.0 if instance_type.network_gbps is None else instance_type.network_gbps,
        instance_type.clusters,
        instance_type.fixed_nodes or 0,
    )


def _memory_mib(instance_type: InstanceType) -> float:
    """Memory of one device in MiB where the instance type does not state it: the card's, or its share of it."""
    return accelerators()[instance_type.accelerator].device_memory_mib * min(
        1.0, float(instance_type.accelerator_count)
    )


@lru_cache(maxsize=4)
def arranged(columns: Columns, measured: Measured = ()) -> Arranged:
    """The snapshot in cell order, cached for the last few snapshots. `measured` is that of `shapes_of`."""
    shapes = shapes_of(columns.instance_types, measured)
    providers = sorted({provider for provider, _ in columns.regions})
    provider_of_region = np.array([providers.index(provider) for provider, _ in columns.regions], dtype=np.int32)
    shape = shapes.of_type[columns.type_index] if len(columns) else np.zeros(0, np.int32)
    provider = provider_of_region[columns.region_index] if len(columns) else np.zeros(0, np.int32)
    cell = (shape * len(columns.kinds) + columns.kind_index) * max(1, len(providers)) + provider
    # lexsort is stable, so equal prices keep the snapshot's own order of keys.
    order = np.lexsort((columns.usd_per_hour, cell))
    rate_levels, rate_level = np.unique(columns.interruptions_per_hour, return_inverse=True)
    eligibility, level = eligibility_of_offers(columns)[order], rate_level.reshape(-1)[order].astype(np.int32)
    alike = columns.type_index[order].astype(np.int64)
    for part in (columns.region_index[order], columns.kind_index[order]):
        alike = alike * (int(part.max(initial=0)) + 1) + part
    _, sold, zones = np.unique(alike, return_inverse=True, return_counts=True)
    for bits in (eligibility, level):
        alike = alike * (int(bits.max(initial=0)) + 1) + bits
    _, first, group, size = np.unique(alike, return_index=True, return_inverse=True, return_counts=True)
    # Groups are numbered by the place of their cheapest offer, which is the first in cell order.
    rank = np.argsort(first)
    number = np.empty(len(rank), np.int32)
    number[rank] = np.arange(len(rank), dtype=np.int32)
    return Arranged(
        columns=columns,
        shapes=shapes,
        original=order,
        cell=cell[order].astype(np.int32),
        type_index=columns.type_index[order],
        region_index=columns.region_index[order],
        kind_index=columns.kind_index[order],
        usd_per_hour=columns.usd_per_hour[order],
        rate_levels=rate_levels,
        rate_level=level,
        eligibility=eligibility,
        zones=zones[sold.reshape(-1)],
        group=number[group.reshape(-1)],
        lead=first[rank],
        group_size=size[rank],
    )
