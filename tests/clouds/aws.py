"""A local AWS: EC2, the Price List API, Savings Plans, the spot advisor and the bulk price files on one address.

    cloud = AwsCloud(aws_catalogue())
    with cloud.running() as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)          # all of boto3's services
        Sources(aws_spot_advisor_url=server.url + ADVISOR_PATH, aws_price_files_url=server.url, paced=False)

Every price stands among the neighbours that it has at AWS, every list comes in pages.
"""

import base64
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any
from urllib.parse import parse_qs

from catalog.interruptions import BAND_MAX_PCT, BAND_MIDDLE, interruptions_per_hour
from catalog.offer import Offer
from catalog.regions import regions
from catalog.snapshot import Snapshot
from tests.clouds import aws_prices
from tests.clouds.aws_catalogue import MICROS, machines_of, zone_id
from tests.clouds.aws_machines import odd_records, ordinary_record, record_of
from tests.clouds.aws_xml import ec2_answer, ec2_error
from tests.clouds.server import CloudServer, Reply, Request

ADVISOR_PATH = "/spot-advisor-data.json"
OFFERS_PATH = "/offers/v1.0/aws/AmazonEC2"
XML = "text/xml;charset=UTF-8"
AMZ_JSON = "application/x-amz-json-1.1"
#: When the newest spot prices of this server came into force.
SPOT_SINCE = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
SECONDS_PER_HOUR = 3600
PLAN_HOURS = {"savings_plan_1y": 8760, "savings_plan_3y": 26280}
Form = dict[str, list[str]]


class AwsCloud(CloudServer):
    """Serves the AWS rows of a snapshot to boto3 and to plain HTTPS readers, whatever the account's keys.

    Its regions are those of the snapshot that lie in the commercial partition; the others (Local
    Zones, GovCloud) stand in the price list alone. `not_enabled` regions are listed and answer every
    EC2 call with 401; `page_size` caps every list, as services may; `ordinary_types` machines without
    accelerators are on sale everywhere; with `knows_filters` False no list is narrowed.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        *,
        latency_seconds: float = 0.0,
        page_size: int = 100,
        not_enabled: Iterable[str] = (),
        ordinary_types: int = 20,
        knows_filters: bool = True,
    ) -> None:
        super().__init__(self._answer, latency_seconds=latency_seconds)
        self.page_size = page_size
        self.not_enabled = frozenset(not_enabled)
        self.knows_filters = knows_filters
        self._ordinary = tuple(f"m7i-{number}.2xlarge" for number in range(ordinary_types))
        self._machines = machines_of(snapshot)
        self._offers: dict[str, dict[str, list[Offer]]] = defaultdict(lambda: defaultdict(list))
        for offer in snapshot.offers:
            if offer.provider == "aws":
                self._offers[offer.region][offer.instance_type].append(offer)
        places = {name: regions().get(("aws", name)) for name in self._offers}
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
        }

    def _answer(self, request: Request) -> Reply:
        if request.headers.get("x-amz-target") == "AWSPriceListService.GetProducts":
            return Reply(body=self._products(json.loads(request.body)), content_type=AMZ_JSON)
        if request.path == "/DescribeSavingsPlansOfferingRates":
            return Reply(body=self._plan_rates(json.loads(request.body)))
        if request.path == ADVISOR_PATH:
            return Reply(body=json.dumps(self._advice()).encode())
        if request.path.startswith(OFFERS_PATH):
            return self._file(request.path.removeprefix(OFFERS_PATH))
        return self._ec2(request)

    # EC2

    def _ec2(self, request: Request) -> Reply:
        form = parse_qs(request.body.decode(), keep_blank_values=True)
        action = form.get("Action", [""])[0]
        region = region_of(request)
        if action not in self._actions:
            return Reply(
                status=400, body=ec2_error("InvalidAction", f"The action {action} is not valid"), content_type=XML
            )
        if region not in self.regions or region in self.not_enabled:
            refused = ec2_error("AuthFailure", "AWS was not able to validate the provided access credentials")
            return Reply(status=401, body=refused, content_type=XML)
        return Reply(body=ec2_answer(action, self._actions[action](region, form)), content_type=XML)

    def _regions(self, _: str, form: Form) -> dict[str, Any]:
        rows = [
            {
                "RegionName": name,
                "Endpoint": f"ec2.{name}.amazonaws.com",
                "OptInStatus": "not-opted-in" if name in self.not_enabled else "opt-in-not-required",
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
        rows = [*(each for each in made if each), *odd_records(), *map(ordinary_record, self._ordinary)]
        return {row["InstanceType"]: row for row in rows}

    def _types(self, region: str, form: Form) -> dict[str, Any]:
        named = [value for key, (value, *_) in form.items() if key.startswith(("InstanceType.", "Filter.1.Value."))]
        sold = self._sold(region)
        rows = [row for name, row in sorted(self._records.items()) if name in sold]
        if named and self.knows_filters:
            rows = [row for row in rows if row["InstanceType"] in named]
        return self._page(rows, form, "InstanceTypes")

    def _sold(self, region: str) -> set[str]:
        return {*self._offers[region], *self._ordinary, "f2.6xlarge", "vt1.3xlarge"}

    def _offerings(self, region: str, form: Form) -> dict[str, Any]:
        kind = form.get("LocationType", ["region"])[0]
        rows = [
            {"InstanceType": name, "LocationType": kind, "Location": location}
            for name in sorted(self._sold(region))
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
            for offer in (each for each in offers if each.price_kind == "spot"):
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
        if self.knows_filters:
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
                        "CapacityBlockDurationHours": hours,
                        "UpfrontFee": f"{float(fee):.6f}",
                        "CurrencyCode": "USD",
                        "Tenancy": "default",
                    }
                )
        return self._page(rows, form, "CapacityBlockOfferings")

    def _page(self, rows: list[dict[str, Any]], form: Form, key: str) -> dict[str, Any]:
        start = _start(form.get("NextToken", [""])[0])
        size = min(self.page_size, int(form.get("MaxResults", [str(self.page_size)])[0]))
        return {key: rows[start : start + size], "NextToken": _token(start + size) if start + size < len(rows) else ""}

    # Prices

    @cached_property
    def _documents(self) -> dict[str, list[dict[str, Any]]]:
        """By instance type, over all regions."""
        found: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for region, types in sorted(self._offers.items()):
            for name, offers in sorted(types.items()):
                found[name] += aws_prices.documents_of(name, region, offers)
        found["g4dn.2xlarge"].append(aws_prices.wavelength_product("g4dn.2xlarge"))
        found[""].append(aws_prices.free_tier())
        return found

    def _all_documents(self) -> Iterator[dict[str, Any]]:
        for documents in self._documents.values():
            yield from documents

    def _products(self, asked: dict[str, Any]) -> bytes:
        wanted = {each["Field"]: each["Value"] for each in asked.get("Filters", [])} if self.knows_filters else {}
        candidates = (
            self._documents.get(wanted["instanceType"], []) if "instanceType" in wanted else [*self._all_documents()]
        )
        rows = [
            json.dumps(each)
            for each in candidates
            if all(each["product"]["attributes"].get(field) == value for field, value in wanted.items())
        ]
        start = _start(asked.get("NextToken", ""))
        size = min(self.page_size, asked.get("MaxResults", 100))
        answer: dict[str, Any] = {"FormatVersion": "aws_v1", "PriceList": rows[start : start + size]}
        if start + size < len(rows):
            answer["NextToken"] = _token(start + size)
        return json.dumps(answer).encode()

    def _plan_rates(self, asked: dict[str, Any]) -> bytes:
        """The EC2 Instance plan at the snapshot's rate, the Compute plan a tenth above, and Windows below both."""
        wanted = next((each["values"] for each in asked.get("filters", []) if each["name"] == "instanceType"), None)
        rows = [
            _plan_rate(offer, plan, micros, windows=windows)
            for types in self._offers.values()
            for name, offers in types.items()
            if wanted is None or name in wanted or not self.knows_filters
            for offer in offers
            if offer.price_kind in PLAN_HOURS
            for plan, windows, micros in (
                ("Compute", False, offer.usd_micros_per_hour * 11 // 10),
                ("EC2Instance", False, offer.usd_micros_per_hour),
                *(() if self.knows_filters else (("EC2Instance", True, offer.usd_micros_per_hour // 2),)),
            )
        ]
        start = _start(asked.get("nextToken", ""))
        size = min(self.page_size * 10, asked.get("maxResults", 1000))
        more = start + size < len(rows)
        return json.dumps(
            {"searchResults": rows[start : start + size], "nextToken": _token(start + size) if more else ""}
        ).encode()

    # Public files

    def _advice(self) -> dict[str, Any]:
        """Bands by their position among the ranges; a type that AWS has no band for is missing."""
        bands = {interruptions_per_hour(band): position for position, band in enumerate(BAND_MIDDLE)}
        ranges = [
            {"index": at, "label": band, "dots": at, "max": BAND_MAX_PCT[band]} for at, band in enumerate(BAND_MIDDLE)
        ]
        advice: dict[str, Any] = {}
        for region, types in self._offers.items():
            rows = {
                offer.instance_type: {"s": 60, "r": bands[offer.interruptions_per_hour]}
                for offers in types.values()
                for offer in offers
                if offer.interruptions_per_hour in bands and not offer.modelled
            }
            advice[region] = {"Linux": rows, "Windows": {name: {"s": 10, "r": 0} for name in rows}}
        return {"ranges": ranges, "global_rate": "<10%", "instance_types": {}, "spot_advisor": advice}

    def _file(self, path: str) -> Reply:
        if path == "/current/region_index.json":
            index = {
                name: {"regionCode": name, "currentVersionUrl": f"{OFFERS_PATH}/{aws_prices.VERSION}/{name}/index.json"}
                for name in self._offers
            }
            head = {"formatVersion": "v1.0", "publicationDate": "2026-11-20T19:55:14Z"}
            return Reply(body=json.dumps({**head, "regions": index}).encode())
        match = re.fullmatch(rf"/(?:current|{aws_prices.VERSION})/([a-z0-9-]+)/index\.(csv|json)", path)
        if match is None or match[1] not in self._offers:
            return Reply(status=404, body=b"<Error><Code>NoSuchKey</Code></Error>", content_type="application/xml")
        documents = [each for each in self._all_documents() if _is_in_file(each, match[1])]
        if match[2] == "csv":
            return Reply(body=aws_prices.bulk_csv(documents).encode(), content_type="text/csv")
        return Reply(body=json.dumps(aws_prices.bulk_json(documents)).encode())


def region_of(request: Request) -> str:
    """The region that a request was signed for; "" if it was not signed."""
    match = re.search(r"Credential=[^/]+/\d+/([a-z0-9-]+)/", request.headers.get("authorization", ""))
    return match[1] if match else ""


def asks(action: str, region: str = "") -> Callable[[Request], bool]:
    """Picks calls for `CloudServer.break_with`: an EC2 action, GetProducts or DescribeSavingsPlansOfferingRates."""

    def matches(request: Request) -> bool:
        named = (
            f"Action={action}&" in request.body.decode(errors="replace")
            or request.headers.get("x-amz-target", "").endswith(f".{action}")
            or request.path == f"/{action}"
        )
        return named and region in ("", region_of(request))

    return matches


def _is_in_file(document: dict[str, Any], region: str) -> bool:
    """A region's file holds its Local Zones too."""
    code = document["product"]["attributes"]["regionCode"]
    return code in ("", region) or code.startswith(f"{region}-")


def _plan_rate(offer: Offer, plan: str, micros: int, *, windows: bool) -> dict[str, Any]:
    properties = {
        "region": offer.region,
        "instanceFamily": offer.instance_type.partition(".")[0],
        "instanceType": offer.instance_type,
        "productDescription": "Windows" if windows else "Linux/UNIX",
        "tenancy": "shared",
    }
    return {
        "savingsPlanOffering": {
            "offeringId": "00000000-0000-0000-0000-000000000000",
            "paymentOption": "No Upfront",
            "planType": plan,
            "durationSeconds": PLAN_HOURS[offer.price_kind] * SECONDS_PER_HOUR,
            "currency": "USD",
        },
        "rate": f"{Decimal(micros) / MICROS:.6f}",
        "unit": "Hrs",
        "productType": "EC2",
        "serviceCode": "AmazonEC2",
        "usageType": f"BoxUsage:{offer.instance_type}",
        "operation": "RunInstances:0002" if windows else "RunInstances",
        "properties": [{"name": name, "value": value} for name, value in properties.items()],
    }


def _token(position: int) -> str:
    return base64.b64encode(f"page from {position}".encode()).decode()


def _start(token: str) -> int:
    return int(base64.b64decode(token).decode().removeprefix("page from ")) if token else 0
