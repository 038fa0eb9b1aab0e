"""What EC2 answers locally: regions, zones, types, offerings, spot history, capacity blocks."""

import base64
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any

from gpuplan.catalog.model.offer import InstanceType, Offer
from gpuplan.catalog.model.regions import regions
from tests.clouds.aws_catalogue import MICROS, zone_id
from tests.clouds.aws_machines import odd_records, ordinary_record, record_of
from tests.clouds.aws_xml import ec2_answer, ec2_error
from tests.clouds.server import Reply

XML = "text/xml;charset=UTF-8"
#: When the newest spot prices of this server came into force.
SPOT_SINCE = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
#: How long after the time asked for a block of one machine starts; one of two machines starts twice as late.
BLOCK_NOTICE = timedelta(days=3)
USUAL_SCORE = 7
TYPES_FOR_A_SCORE = 3
Form = dict[str, list[str]]
OffersByRegion = Mapping[str, Mapping[str, list[Offer]]]


class LocalEc2:
    """The EC2 of an account; see `tests.clouds.aws.AwsCloud` for what may be set."""

    def __init__(
        self,
        offers: OffersByRegion,
        machines: Mapping[str, InstanceType],
        *,
        page_size: int,
        not_enabled: frozenset[str],
        ordinary_types: int,
        knows_filters: bool,
    ) -> None:
        self._offers = offers
        self._machines = machines
        self._page_size = page_size
        self._not_enabled = not_enabled
        self._ordinary = tuple(f"m7i-{number}.2xlarge" for number in range(ordinary_types))
        self._knows_filters = knows_filters
        #: Scores by zone id, the usual one where a zone has none; a set of fewer than three types gets 1.
        self.scores: dict[str, int] = {}
        places = {name: regions().get(("aws", name)) for name in offers}
        self.regions = sorted(
            name for name, at in places.items() if at is None or (at.partition == "commercial" and not at.parent_region)
        )
        self._actions: dict[str, Callable[[str, Form], dict[str, Any]]] = {
            "DescribeRegions": self._regions,
            "DescribeAvailabilityZones": self._zones,
            "DescribeInstanceTypes": self._types,
            "DescribeInstanceTypeOfferings": self._offerings,
            "DescribeSpotPriceHistory": self._spot_history,
            "DescribeCapacityBlockOfferings": self._blocks,
            "GetSpotPlacementScores": self._scores,
        }

    def answer(self, region: str, form: Form) -> Reply:
        """The reply to a call that was signed for `region`."""
        action = form.get("Action", [""])[0]
        if action not in self._actions:
            return Reply(
                status=400, body=ec2_error("InvalidAction", f"The action {action} is not valid"), content_type=XML
            )
        if region not in self.regions or region in self._not_enabled:
            refused = ec2_error("AuthFailure", "AWS was not able to validate the provided access credentials")
            return Reply(status=401, body=refused, content_type=XML)
        return Reply(body=ec2_answer(action, self._actions[action](region, form)), content_type=XML)

    def sold(self, region: str) -> set[str]:
        """Every type that is on sale in a region."""
        return {*self._offers.get(region, {}), *self._ordinary, "f2.6xlarge", "vt1.3xlarge"}

    def _regions(self, _: str, form: Form) -> dict[str, Any]:
        rows = [
            {
                "RegionName": name,
                "Endpoint": f"ec2.{name}.amazonaws.com",
                "OptInStatus": "not-opted-in" if name in self._not_enabled else "opt-in-not-required",
            }
            for name in self.regions
        ]
        everything = form.get("AllRegions") == ["true"]
        return {"Regions": [row for row in rows if everything or row["OptInStatus"] != "not-opted-in"]}

    def _zones(self, region: str, _: Form) -> dict[str, Any]:
        rows = []
        for position, zone in enumerate(self._zone_ids(region)):
            is_local = not re.fullmatch(r"[a-z]+\d-az\d+", zone)
            rows.append(
                {
                    "ZoneName": f"{region}-atl-2a" if is_local else f"{region}{chr(ord('a') + position)}",
                    "ZoneId": zone,
                    "ZoneType": "local-zone" if is_local else "availability-zone",
                    "GroupName": f"{region}-atl-2" if is_local else region,
                    "RegionName": region,
                    "OptInStatus": "opt-in-not-required",
                }
            )
        for code in self._local_zones(region):
            group = {"ZoneName": f"{code}a", "ZoneId": f"{code}-az1", "ZoneType": "local-zone", "GroupName": code}
            rows.append({**group, "RegionName": region, "OptInStatus": "not-opted-in"})
        name = f"{region}-wl1-bos-wlz-1"
        carrier = {"ZoneName": name, "ZoneId": f"{zone_id(region, 1)}-wlz1", "ZoneType": "wavelength-zone"}
        return {"AvailabilityZones": [*rows, {**carrier, "GroupName": f"{region}-wl1", "RegionName": region}]}

    def _zone_ids(self, region: str) -> list[str]:
        stated = {offer.zone for offers in self._offers[region].values() for offer in offers if offer.zone}
        return sorted(stated | {zone_id(region, 1), zone_id(region, 2)}, reverse=True)

    def _zone_name(self, region: str, zone: str) -> str:
        return next(
            str(row["ZoneName"]) for row in self._zones(region, {})["AvailabilityZones"] if row["ZoneId"] == zone
        )

    def _local_zones(self, region: str) -> list[str]:
        places = {name: regions().get(("aws", name)) for name in self._offers}
        return [name for name, at in places.items() if at is not None and at.parent_region == region]

    @cached_property
    def _records(self) -> dict[str, dict[str, Any]]:
        blocks = {
            name
            for types in self._offers.values()
            for name, offers in types.items()
            if any(offer.price_kind == "capacity_block" for offer in offers)
        }
        made = [record_of(machine, in_blocks=name in blocks) for name, machine in self._machines.items()]
        rows = [*(item for item in made if item), *odd_records(), *map(ordinary_record, self._ordinary)]
        return {row["InstanceType"]: row for row in rows}

    def _types(self, region: str, form: Form) -> dict[str, Any]:
        named = [value for key, (value, *_) in form.items() if key.startswith(("InstanceType.", "Filter.1.Value."))]
        sold = self.sold(region)
        rows = [row for name, row in sorted(self._records.items()) if name in sold]
        if named and self._knows_filters:
            rows = [row for row in rows if row["InstanceType"] in named]
        return self._page(rows, form, "InstanceTypes")

    def _offerings(self, region: str, form: Form) -> dict[str, Any]:
        kind = form.get("LocationType", ["region"])[0]
        rows = [
            {"InstanceType": name, "LocationType": kind, "Location": location}
            for name in sorted(self.sold(region))
            for location in ([region] if kind == "region" else self._zones_of(region, name))
        ]
        return self._page(rows, form, "InstanceTypeOfferings")

    def _zones_of(self, region: str, name: str) -> list[str]:
        return sorted({offer.zone for offer in self._offers[region].get(name, []) if offer.zone}) or [
            zone_id(region, 1)
        ]

    def _spot_history(self, region: str, form: Form) -> dict[str, Any]:
        """Newest first, other systems among them; a price that is no longer in force follows each."""
        types = [value for key, (value, *_) in form.items() if key.startswith("InstanceType.")]
        systems = [value for key, (value, *_) in form.items() if key.startswith("ProductDescription.")]
        rows: list[dict[str, Any]] = []
        for name, offers in sorted(self._offers[region].items()):
            for offer in (offer for offer in offers if offer.price_kind == "spot"):
                linux = "Linux/UNIX" if len(name) % 2 else "Linux/UNIX (Amazon VPC)"
                price = Decimal(offer.usd_micros_per_hour) / MICROS
                for hours, system, factor in (
                    (0, linux, 1),
                    (1, "Windows", 3),
                    (0, "Red Hat Enterprise Linux", 2),
                    (5, linux, 5),
                ):
                    rows.append(
                        {
                            "InstanceType": name,
                            "ProductDescription": system,
                            "SpotPrice": f"{price * factor:.6f}",
                            "Timestamp": SPOT_SINCE - timedelta(hours=hours),
                            "AvailabilityZone": self._zone_name(region, offer.zone),
                            **({"AvailabilityZoneId": offer.zone} if len(name) % 3 else {}),
                        }
                    )
        if self._knows_filters:
            rows = [row for row in rows if row["InstanceType"] in types and row["ProductDescription"] in systems]
        rows.sort(key=lambda row: row["Timestamp"], reverse=True)
        return self._page(rows, form, "SpotPriceHistory")

    def _blocks(self, region: str, form: Form) -> dict[str, Any]:
        """A dearer block, the one of the snapshot, and one of two machines for as long: fees are totals."""
        asked, hours = form["InstanceType"][0], int(form["CapacityDurationHours"][0])
        rows = []
        for offer in self._offers[region].get(asked, []):
            if offer.price_kind != "capacity_block":
                continue
            for machines, factor in ((1, Fraction(5, 4)), (1, Fraction(1)), (2, Fraction(3, 2))):
                fee = Fraction(offer.usd_micros_per_hour, MICROS) * hours * machines * factor
                rows.append(
                    {
                        "CapacityBlockOfferingId": "cbro-1",
                        "InstanceType": asked,
                        "AvailabilityZone": self._zone_name(region, offer.zone),
                        "InstanceCount": machines,
                        "StartDate": datetime.fromisoformat(form["StartDateRange"][0]) + BLOCK_NOTICE * machines,
                        "CapacityBlockDurationHours": hours,
                        "UpfrontFee": f"{float(fee):.6f}",
                        "CurrencyCode": "USD",
                        "Tenancy": "default",
                    }
                )
        return self._page(rows, form, "CapacityBlockOfferings")

    def _scores(self, _: str, form: Form) -> dict[str, Any]:
        """By zone, or by region with the best score of its zones; Local Zones are left out."""
        types = {value for key, (value, *_) in form.items() if key.startswith("InstanceType.")}
        regions_asked = [value for key, (value, *_) in form.items() if key.startswith("RegionName.")]
        rows = []
        for region in regions_asked:
            for zone in (item for item in self._zone_ids(region) if re.fullmatch(r"[a-z]+\d-az\d+", item)):
                score = self.scores.get(zone, USUAL_SCORE) if len(types) >= TYPES_FOR_A_SCORE else 1
                rows.append({"Region": region, "AvailabilityZoneId": zone, "Score": score})
        return self._page(rows, form, "SpotPlacementScores")

    def _page(self, rows: list[dict[str, Any]], form: Form, key: str) -> dict[str, Any]:
        start = start_of(form.get("NextToken", [""])[0])
        size = min(self._page_size, int(form.get("MaxResults", [str(self._page_size)])[0]))
        return {
            key: rows[start : start + size],
            "NextToken": token_for(start + size) if start + size < len(rows) else "",
        }


def token_for(position: int) -> str:
    """An opaque token of the page that starts there."""
    return base64.b64encode(f"page from {position}".encode()).decode()


def start_of(token: str) -> int:
    """Where the page of a token starts."""
    return int(base64.b64decode(token).decode().removeprefix("page from ")) if token else 0
