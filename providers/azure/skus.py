"""The SKU list of Azure Resource Manager as facts about sizes: pure.

The list names neither the GPU nor its memory, says every value as text, holds disks and snapshots
among the machines, one entry per size and region, and sizes that the subscription may not use.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from providers.azure.names import folded, is_accelerated, region_name

_MIB_PER_GB = 1e9 / 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Sku:
    """What the list says of one size in one region; unknown is None.

    `spot` is False where the size has no Spot; `closed` is the reason why the subscription may not
    use it there, or empty. `gpus` counts devices as they are shown to a machine: 1 for a share of a card.
    """

    name: str
    family: str = ""
    gpus: int | None = None
    vcpus: float | None = None
    ram_gib: float | None = None
    local_disk_gb: float | None = None
    infiniband: bool = False
    spot: bool = True
    closed: str = ""


@dataclass(slots=True, kw_only=True)
class Skus:
    """The accelerated sizes by (region, folded name), and every region of which the list speaks."""

    by_place: dict[tuple[str, str], Sku] = field(default_factory=dict)
    regions: set[str] = field(default_factory=set)

    def at(self, region: str, size: str) -> Sku | None:
        """What is said of a size in a region, if anything."""
        return self.by_place.get((region, folded(size)))

    def anywhere(self, size: str) -> Sku | None:
        """What is said of a size in the first region that has it: its hardware is the same in all."""
        return next((sku for (_, name), sku in sorted(self.by_place.items()) if name == folded(size)), None)


def skus_of(resources: Iterable[object]) -> Skus:
    """The accelerated machines among `resources`, which may be of any kind and shape."""
    found = Skus()
    for resource in resources:
        if not isinstance(resource, Mapping) or str(resource.get("resourceType")).lower() != "virtualmachines":
            continue
        places = {region_name(place) for place in _list(resource.get("locations"))} - {""}
        found.regions |= places
        name = resource.get("name")
        if not isinstance(name, str) or not is_accelerated(name):
            continue
        said = {str(each.get("name")): each.get("value") for each in _objects(resource.get("capabilities"))}
        for region in places:
            sku = Sku(
                name=name.strip(),
                family=str(resource.get("family") or ""),
                gpus=_whole(said.get("GPUs")),
                vcpus=_size(said.get("vCPUs")),
                ram_gib=_size(said.get("MemoryGB")),
                local_disk_gb=_disk_gb(said),
                infiniband=_yes(said.get("RdmaEnabled")),
                spot=str(said.get("LowPriorityCapable")).strip().lower() != "false",
                closed=_closed(resource.get("restrictions"), region),
            )
            found.by_place.setdefault((region, folded(name)), sku)
    return found


def _closed(restrictions: object, region: str) -> str:
    """Why nobody of the subscription may use the size in the region.

    A restriction on zones leaves machines that ask for no zone, which is what prices are for.
    """
    for each in _objects(restrictions):
        if str(each.get("type") or "Location").lower() != "location":
            continue
        info = each.get("restrictionInfo")
        named = [*_list(each.get("values")), *_list(info.get("locations") if isinstance(info, Mapping) else None)]
        if not named or region in {region_name(place) for place in named}:
            return str(each.get("reasonCode") or "restricted")
    return ""


def _disk_gb(said: Mapping[str, object]) -> float | None:
    """The local NVMe disks if there are any, else the temporary disk, in GB as the documentation gives it."""
    mib = _size(said.get("NvmeDiskSizeInMiB")) or _size(said.get("MaxResourceVolumeMB"))
    return round(mib / _MIB_PER_GB, 1) if mib else None


def _whole(value: object) -> int | None:
    size = _size(value)
    return int(size) if size is not None and size == int(size) else None


def _size(value: object) -> float | None:
    """A positive number from text; None for anything else."""
    try:
        size = float(str(value))
    except ValueError:
        return None
    return size if 0 < size < 1e8 else None


def _yes(value: object) -> bool:
    return str(value).strip().lower() == "true"


def _list(value: object) -> list[object]:
    return list(value) if isinstance(value, list | tuple) else []


def _objects(value: object) -> list[Mapping[str, object]]:
    return [each for each in _list(value) if isinstance(each, Mapping)]
