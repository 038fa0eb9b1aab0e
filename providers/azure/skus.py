"""Parse the SKU list of Azure Resource Manager: pure.

The list names neither the GPU nor its memory, gives every value as text, mixes disks and snapshots with machines, has one
entry per size and region, and includes sizes that the subscription may not use.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gpuplan.providers.azure.mapping_tables import folded, is_accelerated, region_name

_MIB_PER_GB = 1e9 / 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Sku:
    """The list's facts about one size in one region; unknown is None.

    `spot` is False if the size has no Spot; `closed` is the reason why the subscription may not use it in the region, or
    empty. `gpus` counts devices as a machine sees them: 1 for a share of a card.
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
    """The accelerated sizes by (region, folded name), and every region of the list."""

    by_place: dict[tuple[str, str], Sku] = field(default_factory=dict)
    regions: set[str] = field(default_factory=set)

    def at(self, region: str, size: str) -> Sku | None:
        """The entry of a size in a region, if any."""
        return self.by_place.get((region, folded(size)))

    def anywhere(self, size: str) -> Sku | None:
        """The entry of a size in the first region that has it: its hardware is the same in all."""
        return next((sku for (_, name), sku in sorted(self.by_place.items()) if name == folded(size)), None)


def skus_of(resources: Iterable[object]) -> Skus:
    """The accelerated machines among `resources`, which may be of any kind and shape."""
    skus = Skus()
    for resource in resources:
        if not isinstance(resource, Mapping) or str(resource.get("resourceType")).lower() != "virtualmachines":
            continue
        places = {region_name(place) for place in _list(resource.get("locations"))} - {""}
        skus.regions |= places
        name = resource.get("name")
        if not isinstance(name, str) or not is_accelerated(name):
            continue
        capabilities = {
            str(capability.get("name")): capability.get("value")
            for capability in _objects(resource.get("capabilities"))
        }
        for region in places:
            sku = Sku(
                name=name.strip(),
                family=str(resource.get("family") or ""),
                gpus=_whole(capabilities.get("GPUs")),
                vcpus=_size(capabilities.get("vCPUs")),
                ram_gib=_size(capabilities.get("MemoryGB")),
                local_disk_gb=_disk_gb(capabilities),
                infiniband=_yes(capabilities.get("RdmaEnabled")),
                spot=str(capabilities.get("LowPriorityCapable")).strip().lower() != "false",
                closed=_closed(resource.get("restrictions"), region),
            )
            skus.by_place.setdefault((region, folded(name)), sku)
    return skus


def _closed(restrictions: object, region: str) -> str:
    """Why the subscription may not use the size in the region, or empty.

    A restriction on zones still allows machines without a zone, to which prices apply.
    """
    for restriction in _objects(restrictions):
        if str(restriction.get("type") or "Location").lower() != "location":
            continue
        info = restriction.get("restrictionInfo")
        named = [
            *_list(restriction.get("values")),
            *_list(info.get("locations") if isinstance(info, Mapping) else None),
        ]
        if not named or region in {region_name(place) for place in named}:
            return str(restriction.get("reasonCode") or "restricted")
    return ""


def _disk_gb(capabilities: Mapping[str, object]) -> float | None:
    """The local NVMe disks if there are any, else the temporary disk, in GB as in the documentation."""
    mib = _size(capabilities.get("NvmeDiskSizeInMiB")) or _size(capabilities.get("MaxResourceVolumeMB"))
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
    return [item for item in _list(value) if isinstance(item, Mapping)]
