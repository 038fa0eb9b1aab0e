"""Where an account may rent: regions with their opt-in state, zones by name and id, types on sale per zone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpuplan.catalog.model.regions import regions as known_regions
from gpuplan.providers.aws.api_calls import CallFailed, Calls

#: OptInStatus of a region or zone that this account must enable first.
NOT_ENABLED = "not-opted-in"
AVAILABILITY_ZONE = "availability-zone"
LOCAL_ZONE = "local-zone"
WAVELENGTH_ZONE = "wavelength-zone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Zone:
    """One availability zone: names differ by account, ids do not. `group` is the place of a Local Zone."""

    name: str
    id: str
    kind: str
    group: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """EC2's description of one region, before any prices.

    `enabled` False: the account has not opted in, and nothing more was requested. `offered` holds the instance types on
    sale in the region, `offered_in` those by zone id; None if unknown. `failures` are by call; `unreachable` means that
    further calls would fail too.
    """

    region: str
    enabled: bool = True
    zones: Mapping[str, Zone] | None = None
    offered: frozenset[str] | None = None
    offered_in: Mapping[str, frozenset[str]] | None = None
    failures: tuple[str, ...] = ()
    unreachable: bool = False

    def zone_id(self, name: str) -> str:
        """The id of a zone by name or id, "" if there is no such zone.

        If EC2 does not list the zones, the account's name is returned unchanged.
        """
        if self.zones is None:
            return name
        for zone in self.zones.values():
            if name in (zone.name, zone.id):
                return zone.id
        return ""

    @property
    def wavelength_zones(self) -> frozenset[str]:
        """Names and ids of the zones inside carriers' networks."""
        zones = [zone for zone in (self.zones or {}).values() if zone.kind == WAVELENGTH_ZONE]
        return frozenset(name for zone in zones for name in (zone.name, zone.id))

    @property
    def local_zone_groups(self) -> frozenset[str]:
        """The Local Zones by the region names that the price list uses."""
        return frozenset(zone.group for zone in (self.zones or {}).values() if zone.kind == LOCAL_ZONE and zone.group)


def listed_regions(calls: Calls, seed: str) -> dict[str, bool]:
    """Every region of the account's partition and whether it is enabled. Raises `CallFailed`."""
    rows = calls.every("ec2", seed, "describe_regions", "Regions", AllRegions=True)
    return {row["RegionName"]: row.get("OptInStatus") != NOT_ENABLED for row in rows if row.get("RegionName")}


def regions_of_the_table() -> dict[str, bool]:
    """The known commercial regions, for use if EC2 does not list any; all are assumed enabled."""
    return {
        region.name: True
        for region in known_regions().values()
        if region.provider == "aws" and region.partition == "commercial" and not region.parent_region
    }


def read_place(calls: Calls, region: str) -> Place:
    """Zones and types on sale in an enabled region; a failed call is recorded and leaves the others."""
    failures: list[str] = []
    zones = offered = offered_in = None
    try:
        zones = read_zones(calls, region)
    except CallFailed as failure:
        if failure.is_for_all and failure.code not in ("UnauthorizedOperation", "AccessDenied"):
            return Place(
                region=region,
                failures=(f"{failure}; its spot prices and capacity blocks stay as they were",),
                unreachable=True,
            )
        failures.append(
            f"{failure}; zones are known by the ids that spot prices carry, else by this account's own names"
        )
    try:
        offered = _offered(calls, region)
        offered_in = _offered_by_zone(calls, region, zones)
    except CallFailed as failure:
        if failure.unreachable:
            return Place(
                region=region,
                zones=zones,
                failures=(f"{failure}; its spot prices and capacity blocks stay as they were",),
                unreachable=True,
            )
        failures.append(f"{failure}; what is on sale there is not verified")
    return Place(region=region, zones=zones, offered=offered, offered_in=offered_in, failures=tuple(failures))


def read_zones(calls: Calls, region: str) -> dict[str, Zone]:
    """Every zone of an enabled region, by id. Raises `CallFailed`."""
    return _zones(
        calls.every("ec2", region, "describe_availability_zones", "AvailabilityZones", AllAvailabilityZones=True)
    )


def _zones(rows: Sequence[Mapping[str, Any]]) -> dict[str, Zone]:
    zones = {}
    for row in rows:
        name, zone_id = str(row.get("ZoneName") or ""), str(row.get("ZoneId") or "")
        if name and zone_id:
            kind, group = str(row.get("ZoneType") or AVAILABILITY_ZONE), str(row.get("GroupName") or "")
            zones[zone_id] = Zone(name=name, id=zone_id, kind=kind, group=group)
    return zones


def _offered(calls: Calls, region: str) -> frozenset[str] | None:
    """None for an empty list, which cannot be right: every region has machines."""
    return frozenset(row["InstanceType"] for row in _offerings(calls, region, "region")) or None


def _offered_by_zone(calls: Calls, region: str, zones: Mapping[str, Zone] | None) -> dict[str, frozenset[str]]:
    """By zone id, also from an answer with zone names; ignores rows for the whole region."""
    ids = {zone.name: zone.id for zone in (zones or {}).values()}
    types_by_zone: dict[str, set[str]] = {}
    for row in _offerings(calls, region, "availability-zone-id"):
        location = str(row.get("Location") or region)
        if location != region:
            types_by_zone.setdefault(ids.get(location, location), set()).add(row["InstanceType"])
    return {zone: frozenset(types) for zone, types in types_by_zone.items()}


def _offerings(calls: Calls, region: str, location_type: str) -> list[Mapping[str, Any]]:
    rows = calls.every(
        "ec2",
        region,
        "describe_instance_type_offerings",
        "InstanceTypeOfferings",
        LocationType=location_type,
        MaxResults=1000,
    )
    return [row for row in rows if row.get("InstanceType")]
