"""Machines that EC2 describes: each new name requested once, in any region, and joined with gpuplan's table.

All regions together sell under a thousand types, and one region sells most of them; requesting each region's whole list
would read the same records thirty times.
"""

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import batched
from typing import Any

from gpuplan.catalog.model.ec2_hardware import ec2_instance_type, has_accelerators
from gpuplan.catalog.model.offer import Implausible, InstanceType
from gpuplan.catalog.model.unavailable_machines import left_out
from gpuplan.catalog.snapshots.embedded_snapshot import embedded_instance_types
from gpuplan.providers.aws.api_calls import CallFailed, Calls
from gpuplan.providers.aws.regions_and_zones import Place
from gpuplan.providers.contract import Quarantined

#: Names in one filter; EC2 takes 200. A filter, unlike the parameter InstanceTypes, supports paging and does not fail the
#: whole call for one name that a region lacks.
NAMES_PER_CALL = 100
PAGE = 100
AT_ONCE = 8
SOURCE = "EC2 DescribeInstanceTypes"
CAPACITY_BLOCK = "capacity-block"
ON_DEMAND = "on-demand"
SPOT = "spot"
#: Fields that EC2 states; the rest of a row (link, link domain, retirement) is from gpuplan's table.
_STATED = (
    "accelerator",
    "accelerator_count",
    "accelerator_memory_mib",
    "vcpus",
    "ram_gib",
    "local_disk_gb",
    "network_gbps",
)


@dataclass(slots=True, kw_only=True)
class Machines:
    """Accelerated types by name, and failures for others.

    `in_blocks` are those that EC2 also sells as capacity blocks, or whose sale EC2 does not state; `on_demand` and
    `on_spot` are those that EC2 states as such. `undescribed` are those of gpuplan's table that a complete description by
    EC2 lacks for this account.
    """

    types: dict[str, InstanceType] = field(default_factory=dict)
    in_blocks: set[str] = field(default_factory=set)
    on_demand: set[str] = field(default_factory=set)
    on_spot: set[str] = field(default_factory=set)
    undescribed: set[str] = field(default_factory=set)
    quarantined: list[Quarantined] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


def read_machines(calls: Calls, places: Iterable[Place], *, as_of: str) -> Machines:
    """Every accelerated type on sale in the places, and every type of gpuplan's table."""
    records, failures = _records(calls, [place for place in places if place.enabled and not place.unreachable])
    machines = Machines(failures=failures)
    machines.types.update(_account_types())
    for _, record in sorted(records.items()):
        take_record(machines, record, as_of=as_of)
    if records and not failures:
        machines.undescribed.update(machines.types.keys() - records.keys())
    return machines


def take_record(machines: Machines, record: Mapping[str, Any], *, as_of: str) -> None:
    """Add the machine of one record; a machine with an unknown device is quarantined and noted."""
    name = str(record.get("InstanceType"))
    if name in left_out() or not has_accelerators(record):
        return
    known_type = machines.types.get(name)
    try:
        live = ec2_instance_type(record, source=SOURCE, as_of=as_of)
    except Implausible as problem:
        if known_type is None:
            machines.quarantined.append(Quarantined(what=name, reason=str(problem)))
            machines.notes.append(str(problem))
            return
        machines.notes.append(f"{problem}; its hardware is taken from gpuplan's own table")
        live = known_type
    machines.types[name] = _joined(known_type, live) if known_type else live
    classes = record.get("SupportedUsageClasses") or ()
    for use, names in ((CAPACITY_BLOCK, machines.in_blocks), (ON_DEMAND, machines.on_demand), (SPOT, machines.on_spot)):
        if use in classes:
            names.add(name)
    if not classes:
        machines.in_blocks.add(name)


def confirm_on_demand(machines: Machines, priced: Iterable[str], *, as_of: str) -> None:
    """Confirm on-demand sale for types that EC2 states as on demand and that have an on-demand price; capacity blocks have
    only one of the two.
    """
    for name in machines.on_demand & set(priced):
        machine = machines.types[name]
        if not machine.sold_on_demand:
            source = f"{SOURCE}; sold on demand according to it and to the price list"
            machines.types[name] = replace(machine, sold_on_demand=True, source=source, as_of=as_of)


def _joined(instance_type: InstanceType, live: InstanceType) -> InstanceType:
    """The table's row with EC2's figures where EC2 states them, unchanged if they agree.

    A different accelerator, or a different count, makes it another machine whose links are unknown.
    """
    if (instance_type.accelerator, instance_type.accelerator_count) != (live.accelerator, live.accelerator_count):
        return live
    stated = {name: getattr(live, name) for name in _STATED if getattr(live, name) is not None}
    joined = replace(instance_type, **stated, sold_on_demand=instance_type.sold_on_demand and live.sold_on_demand)
    return instance_type if joined == instance_type else replace(joined, source=live.source, as_of=live.as_of)


def _account_types() -> dict[str, InstanceType]:
    return {
        instance_type.name: instance_type
        for instance_type in embedded_instance_types()
        if instance_type.provider == "aws"
    }


def _records(calls: Calls, places: list[Place]) -> tuple[dict[str, Mapping[str, Any]], list[str]]:
    """EC2's records by name, and failed calls that no other region could replace."""
    types_by_name: dict[str, Mapping[str, Any]] = {}
    failures: list[str] = []
    answered: set[str] = set()
    offering = {place.region: place.offered for place in places if place.offered is not None}
    blind = [place.region for place in places if place.offered is None]
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="aws-types") as pool:
        for records, failure in pool.map(lambda region: _described(calls, region, ()), blind):
            types_by_name.update(records)
            failures += [failure] if failure else []
        while batches := _batches(offering, answered | types_by_name.keys()):
            answers = list(pool.map(lambda batch: _described(calls, *batch), batches))
            for (region, names), (records, failure) in zip(batches, answers, strict=True):
                types_by_name.update(records)
                if failure:
                    offering.pop(region, None)
                    failures.append(failure)
                else:
                    answered.update(names)
    on_sale = {name for place in places for name in place.offered or ()}
    if on_sale and not types_by_name and not failures:
        failures.append("ec2 describe_instance_types: no machine, although EC2 has some on sale")
        answered.clear()
    unsaid = on_sale - answered - types_by_name.keys()
    return types_by_name, _summed_up(failures, unsaid) if unsaid or not types_by_name else []


def _batches(offering: Mapping[str, frozenset[str]], known: Iterable[str]) -> list[tuple[str, tuple[str, ...]]]:
    """(region, names) such that each unknown name is requested once, in a region that sells it."""
    taken = set(known)
    batches: list[tuple[str, tuple[str, ...]]] = []
    for region, names in sorted(offering.items(), key=lambda item: (-len(item[1]), item[0])):
        mine = sorted(names - taken)
        taken.update(mine)
        batches += [(region, names) for names in batched(mine, NAMES_PER_CALL)]
    return batches


def _described(calls: Calls, region: str, names: tuple[str, ...]) -> tuple[dict[str, Mapping[str, Any]], str]:
    """Records of these names, or of all that the region sells if none are given; a line if the call failed."""
    narrowed = {"Filters": [{"Name": "instance-type", "Values": list(names)}]} if names else {}
    try:
        rows = calls.every("ec2", region, "describe_instance_types", "InstanceTypes", MaxResults=PAGE, **narrowed)
    except CallFailed as failure:
        return {}, f"{failure} (in {region})"
    return {row["InstanceType"]: row for row in rows if row.get("InstanceType")}, ""


def _summed_up(failures: list[str], unsaid: set[str]) -> list[str]:
    if not failures:
        return []
    others = f" (and {len(failures) - 1} more such calls)" if len(failures) > 1 else ""
    lost = f"; {len(unsaid)} types are not described" if unsaid else ""
    return [f"{failures[0]}{others}{lost}; hardware is taken from gpuplan's own table where that has it"]
