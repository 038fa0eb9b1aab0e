"""The most nodes of each offer that known quotas allow, and which quota allows the fewest."""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.offer import InstanceType
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.planner.candidates.machine_shapes import Arranged
from gpuplan.planner.cost.negotiated_discounts import is_of_family
from gpuplan.planner.model.quota import SPOT, Quota

Floats = NDArray[np.float64]


def names_type(quota: Quota, instance_type: InstanceType) -> bool:
    """Whether the quota limits this instance type somewhere."""
    if instance_type.provider != quota.provider:
        return False
    if quota.instance_type:
        return instance_type.name == quota.instance_type
    if quota.accelerator:
        return instance_type.accelerator == quota.accelerator
    return not quota.family or is_of_family(instance_type.name, quota.family)


def limits_place(quota: Quota, place: tuple[str, str]) -> bool:
    """Whether the quota limits machines of this provider and region."""
    return place[0] == quota.provider and (not quota.region or place[1] == quota.region)


def limits_price_kind(quota: Quota, price_kind: str) -> bool:
    """Whether the quota limits machines paid in this way."""
    return not quota.price_kind or price_kinds()[price_kind].interruptible == (quota.price_kind == SPOT)


def units_per_node(quota: Quota, instance_type: InstanceType) -> float:
    """Units of the quota that a node takes; nan if its vCPUs are unknown."""
    if quota.accelerators is not None:
        return float(instance_type.accelerator_count)
    return math.nan if instance_type.vcpus is None else float(instance_type.vcpus)


def nodes_within(quota: Quota, instance_type: InstanceType) -> float:
    """The most nodes of a type that it limits: none where the vCPUs of a node are unknown."""
    units = units_per_node(quota, instance_type)
    return 0.0 if math.isnan(units) else math.inf if units == 0 else math.floor(quota.limit / units + 1e-9)


def binding(quotas: tuple[Quota, ...], instance_type: InstanceType, region: str, price_kind: str) -> Quota | None:
    """The quota that allows the fewest nodes; None if none limits this machine, place and price kind."""
    place = (instance_type.provider, region)
    limiting = [
        quota
        for quota in quotas
        if names_type(quota, instance_type) and limits_place(quota, place) and limits_price_kind(quota, price_kind)
    ]
    return min(limiting, key=lambda quota: nodes_within(quota, instance_type), default=None)


@lru_cache(maxsize=8)
def quota_nodes(snapshot: Arranged, quotas: tuple[Quota, ...]) -> Floats:
    """The most nodes of each arranged place; infinite where no quota is known. Callers must not write to it."""
    columns = snapshot.columns
    most = np.full(len(snapshot.type_index), np.inf)
    for quota in quotas:
        types = columns.instance_types
        of_type = np.array(
            [nodes_within(quota, type_) if names_type(quota, type_) else np.inf for type_ in types], np.float64
        )
        in_region = np.array([limits_place(quota, place) for place in columns.regions], np.bool_)
        for_kind = np.array([limits_price_kind(quota, kind) for kind in columns.kinds], np.bool_)
        limited = in_region[snapshot.region_index] & for_kind[snapshot.kind_index]
        np.minimum(most, np.where(limited, of_type[snapshot.type_index], np.inf), out=most)
    return most
