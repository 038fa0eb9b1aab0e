"""A local AWS: EC2, the Price List API, Savings Plans, the spot advisor and the bulk price files on one address.

    cloud = AwsCloud(aws_catalogue())
    with cloud.running() as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)          # all of boto3's services
        Sources(aws_spot_advisor_url=server.url + ADVISOR_PATH, aws_price_files_url=server.url, paced=False)

Every price stands among the neighbours that it has at AWS, every list comes in pages.
"""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from functools import cached_property
from typing import Any
from urllib.parse import parse_qs

from gpuplan.catalog.model.interruption_rates import BAND_MAX_PCT, BAND_MIDDLE, interruptions_per_hour
from gpuplan.catalog.model.offer import Offer
from gpuplan.catalog.snapshots.snapshot import Snapshot
from tests.clouds import aws_prices
from tests.clouds.aws_catalogue import MICROS, machines_of
from tests.clouds.aws_ec2 import LocalEc2, start_of, token_for
from tests.clouds.server import CloudServer, Reply, Request

ADVISOR_PATH = "/spot-advisor-data.json"
OFFERS_PATH = "/offers/v1.0/aws/AmazonEC2"
AMZ_JSON = "application/x-amz-json-1.1"
SECONDS_PER_HOUR = 3600
NOT_THERE = Reply(status=404, body=b"<Error><Code>NoSuchKey</Code></Error>", content_type="application/xml")
PLAN_HOURS = {"savings_plan_1y": 8760, "savings_plan_3y": 26280}


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
        self.knows_filters = knows_filters
        self._offers: dict[str, dict[str, list[Offer]]] = defaultdict(lambda: defaultdict(list))
        for offer in snapshot.offers:
            if offer.provider == "aws":
                self._offers[offer.region][offer.instance_type].append(offer)
        self.ec2 = LocalEc2(
            self._offers,
            machines_of(snapshot),
            page_size=page_size,
            not_enabled=frozenset(not_enabled),
            ordinary_types=ordinary_types,
            knows_filters=knows_filters,
        )

    def _answer(self, request: Request) -> Reply:
        if request.headers.get("x-amz-target") == "AWSPriceListService.GetProducts":
            return Reply(body=self._products(json.loads(request.body)), content_type=AMZ_JSON)
        if request.path == "/DescribeSavingsPlansOfferingRates":
            return Reply(body=self._plan_rates(json.loads(request.body)))
        if request.path == ADVISOR_PATH:
            return Reply(body=json.dumps(self._advice()).encode())
        if request.path.startswith(OFFERS_PATH):
            return self._file(request.path.removeprefix(OFFERS_PATH))
        if request.method == "GET":
            return NOT_THERE
        return self.ec2.answer(region_of(request), parse_qs(request.body.decode(), keep_blank_values=True))

    @cached_property
    def _documents(self) -> dict[str, list[dict[str, Any]]]:
        """By instance type, over all regions."""
        result: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for region, types in sorted(self._offers.items()):
            for name, offers in sorted(types.items()):
                result[name] += aws_prices.documents_of(name, region, offers)
        result["g4dn.2xlarge"].append(aws_prices.wavelength_product("g4dn.2xlarge"))
        result[""].append(aws_prices.free_tier())
        return result

    def _all_documents(self) -> Iterator[dict[str, Any]]:
        for documents in self._documents.values():
            yield from documents

    def _products(self, asked: dict[str, Any]) -> bytes:
        wanted = {item["Field"]: item["Value"] for item in asked.get("Filters", [])} if self.knows_filters else {}
        candidates = (
            self._documents.get(wanted["instanceType"], []) if "instanceType" in wanted else [*self._all_documents()]
        )
        rows = [
            candidate
            for candidate in candidates
            if all(candidate["product"]["attributes"].get(field) == value for field, value in wanted.items())
        ]
        start = start_of(asked.get("NextToken", ""))
        size = min(self.page_size, asked.get("MaxResults", 100))
        page = [json.dumps(row) for row in rows[start : start + size]]
        answer: dict[str, Any] = {"FormatVersion": "aws_v1", "PriceList": page}
        if start + size < len(rows):
            answer["NextToken"] = token_for(start + size)
        return json.dumps(answer).encode()

    def _plan_rates(self, asked: dict[str, Any]) -> bytes:
        """The EC2 Instance plan at the snapshot's rate, the Compute plan a tenth above, and Windows below both."""
        wanted = next((item["values"] for item in asked.get("filters", []) if item["name"] == "instanceType"), None)
        rows = [
            (offer, plan, micros, windows)
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
        start = start_of(asked.get("nextToken", ""))
        size = min(self.page_size * 5, asked.get("maxResults", 1000))
        extra = start + size < len(rows)
        page = [
            _plan_rate(offer, plan, micros, windows=windows)
            for offer, plan, micros, windows in rows[start : start + size]
        ]
        return json.dumps({"searchResults": page, "nextToken": token_for(start + size) if extra else ""}).encode()

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
            return NOT_THERE
        documents = [all_document for all_document in self._all_documents() if _is_in_file(all_document, match[1])]
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
