"""A local Azure: the Retail Prices API and the SKU list of Resource Manager, serving given machines and offers.

    cloud = azure_cloud(offers=azure_offers(), page_size=1000)
    with cloud.running() as server:
        Sources(azure_retail_endpoint=server.url, azure_arm_endpoint=server.url,
                azure_subscription_id=SUBSCRIPTION, anonymous=True)

Every offer stands among the neighbours that the real list has: Windows, Low Priority, platform
services, developer prices, other tiers and times, test regions, sizes that are no accelerators.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any
from urllib.parse import urlencode

from gpuplan.catalog.model.offer import InstanceType, Offer
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.catalog.snapshots.embedded_snapshot import embedded_instance_types, embedded_snapshot
from tests.clouds.server import CloudServer, Reply, Request

SUBSCRIPTION = "00000000-1111-2222-3333-444444444444"
RETAIL_PATH = "/api/retail/prices"
Json = dict[str, Any]

_TERM = {8760: "1 Year", 26280: "3 Years"}
_NESTED = frozenset(("savings_plan_1y", "savings_plan_3y"))
_CLAUSE = re.compile(r"\s*(?:contains\((\w+),\s*'([^']*)'\)|(\w+) eq '([^']*)')\s*")
#: Families as the SKU list spells them, blanks and cases included.
_FAMILY = {
    "T4": "Standard NCASv3_T4 Family",
    "A100-40GB-SXM": "StandardNDASv4_A100Family",
    "A100-80GB-SXM": "standardNDAMSv4_A100Family",
    "H100-80GB-SXM": "standardNDSH100v5Family",
    "H100-94GB-NVL": "StandardNCadsH100v5Family",
    "MI25": "standardNVSv4Family",
}


@cache
def azure_machines() -> tuple[InstanceType, ...]:
    """Azure's part of the embedded catalogue."""
    return tuple(machine for machine in embedded_instance_types() if machine.provider == "azure")


@cache
def azure_offers() -> tuple[Offer, ...]:
    """Azure's part of the embedded catalogue, with a spot price, reservations and savings plans for every machine."""
    plain = [o for o in embedded_snapshot().offers if o.provider == "azure" and o.price_kind == "on_demand"]
    shares = {"spot": 31, "reserved_1y": 64, "reserved_3y": 43, "savings_plan_1y": 73, "savings_plan_3y": 51}
    made = [
        replace(
            offer,
            price_kind=kind,
            usd_micros_per_hour=offer.usd_micros_per_hour * percent // 100,
            interruptions_per_hour=0.1106 if kind == "spot" else None,
            modelled=("interruption_rate",) if kind == "spot" else (),
        )
        for offer in plain
        for kind, percent in shares.items()
    ]
    return (*plain, *made)


def azure_cloud(
    *,
    offers: Iterable[Offer] | None = None,
    machines: Iterable[InstanceType] | None = None,
    more_prices: Sequence[Json] = (),
    more_skus: Sequence[Json] = (),
    page_size: int = 1000,
    sku_page_size: int = 500,
    filters: str = "honoured",
    neighbours: bool = True,
    last_link: str | None = None,
    latency_seconds: float = 0.0,
) -> CloudServer:
    """The server, not yet running.

    `filters` is honoured, ignored or refused (HTTP 400 for `contains`). `more_prices` and `more_skus`
    are served after the rest as they are. `last_link` is what NextPageLink holds on a last page.
    """
    known = {machine.name: machine for machine in (azure_machines() if machines is None else machines)}
    served = list(azure_offers() if offers is None else offers)
    prices = [*price_rows(served), *(neighbours_of(served) if neighbours else ()), *more_prices]
    skus = [*_other_resources(), *(_sku(known[name], region) for region, name in _places(served)), *more_skus]
    retail = _Retail(prices, page_size=page_size, filters=filters, last_link=last_link)

    def answer(request: Request) -> Reply:
        if request.path == RETAIL_PATH:
            return retail.page(request)
        if request.path == f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Compute/skus":
            return _sku_page(skus, request, sku_page_size)
        return Reply(status=404, body=b'{"error":{"code":"NotFound","message":"no such path"}}')

    return CloudServer(answer, latency_seconds=latency_seconds)


def price_row(size: str, region: str, usd: float, **changes: Any) -> Json:
    """One row as the API gives it: Linux, pay as you go; `changes` replace or add fields, None removes one."""
    meter = size.removeprefix("Standard_")
    row: Json = {
        "currencyCode": "USD",
        "tierMinimumUnits": 0.0,
        "retailPrice": usd,
        "unitPrice": usd,
        "armRegionName": region,
        "location": region.upper(),
        "effectiveStartDate": "2023-12-01T00:00:00Z",
        "meterId": "03f48dbf-0000-5af8-9e6f-36e42dda07ec",
        "meterName": meter if "A100" in meter else meter.replace("_", " "),
        "productId": "DZH318Z0KN53",
        "skuId": "DZH318Z0KN53/0046",
        "productName": product_name(size),
        "skuName": meter.replace("_", " "),
        "serviceName": "Virtual Machines",
        "serviceId": "DZH313Z7MMC8",
        "serviceFamily": "Compute",
        "unitOfMeasure": "1 Hour",
        "type": "Consumption",
        "isPrimaryMeterRegion": True,
        "armSkuName": size,
        **changes,
    }
    return {name: value for name, value in row.items() if value is not None}


def product_name(size: str) -> str:
    """Product names follow no rule: NC A100 has neither the usual prefix nor the usual end."""
    if size.endswith("ads_A100_v4"):
        return "NCads A100 v4 Series Linux"
    if "MI300X" in size:
        return "Virtual Machines NDMI300Xv5 Srs"
    series = re.sub(r"^Standard_|\d+(?=[a-z])", "", size).split("_")[0]
    return f"Virtual Machines {series} Series"


def price_rows(offers: Iterable[Offer]) -> list[Json]:
    """The rows of the offers themselves: reservations as totals, savings plans nested, three years first."""
    nested: dict[tuple[str, str], list[Json]] = {}
    rest: list[Offer] = []
    for offer in offers:
        if offer.price_kind in _NESTED:
            usd = offer.usd_micros_per_hour / 1e6
            plan = {"unitPrice": usd, "retailPrice": usd, "term": _TERM[price_kinds()[offer.price_kind].term_hours]}
            nested.setdefault((offer.region, offer.instance_type), []).append(plan)
        else:
            rest.append(offer)
    rows = []
    for offer in rest:
        hours = price_kinds()[offer.price_kind].term_hours
        usd = offer.usd_micros_per_hour * (hours or 1) / 1e6
        changes: Json = {"type": "Reservation", "reservationTerm": _TERM[hours]} if hours else {}
        meter = offer.instance_type.removeprefix("Standard_").replace("_", " ")
        if offer.price_kind == "spot":
            changes = {"skuName": f"{meter} Spot", "meterName": f"{meter} Spot"}
        elif not hours:
            plans = nested.get((offer.region, offer.instance_type), [])
            changes = {"savingsPlan": sorted(plans, key=lambda plan: plan["term"], reverse=True) or None}
        rows.append(price_row(offer.instance_type, offer.region, usd, **changes))
    return rows


def neighbours_of(offers: Iterable[Offer]) -> list[Json]:
    """What stands beside the prices of `offers` in the real list and is no price of theirs."""
    rows: list[Json] = []
    for offer in offers:
        if offer.price_kind != "on_demand":
            continue
        size, region, usd = offer.instance_type, offer.region, offer.usd_micros_per_hour / 1e6
        meter = size.removeprefix("Standard_").replace("_", " ")
        windows = product_name(size) + (" Win" if size.endswith("v5") else " Windows")
        low = {"skuName": f"{meter} Low Priority", "meterName": f"{meter} Low Priority"}
        spot = {"skuName": f"{meter} Spot", "meterName": f"{meter} Spot"}
        rows += [
            price_row(size, region, usd * 0.2, **low),
            price_row(size, region, usd + 0.4, productName=windows),
            price_row(size, region, usd * 0.3, productName=windows, **spot),
            price_row(size, region, usd, productName=windows, type="DevTestConsumption"),
        ]
        if size.endswith(("v3", "v4")):
            rows.append(price_row(size, region, usd + 0.4, productName="NC Series Cloud Services"))
            rows.append(price_row(size, region, usd * 0.1, productName="NCSv3 Series CloudServices", **low))
        if size == "Standard_NC4as_T4_v3":
            rows += [
                price_row(size, region, usd * 2, effectiveStartDate="2021-01-01T00:00:00Z"),
                price_row(size, region, usd * 3, effectiveStartDate="2999-01-01T00:00:00Z"),
                price_row(
                    size,
                    region,
                    usd * 4,
                    effectiveStartDate="2024-01-01T00:00:00Z",
                    effectiveEndDate="2024-06-01T00:00:00Z",
                ),
                price_row(size, region, usd / 2, tierMinimumUnits=500.0),
                price_row(size, region, usd),
                price_row(f"{size}_Promo", region, usd / 3, skuName=f"{meter} Promo"),
                price_row("", region, 0.0, productName="Virtual Machines Licenses"),
                price_row("Standard_D2as_v5", region, 0.1),
                price_row("Standard_NP10s", region, 1.65),
            ]
    for region in ("", "Global", "eastus2euap", "centraluseuap", "brazilus", "eastusstg"):
        rows.append(price_row("Standard_NC4as_T4_v3", region, 0.01, productName=None))
    return rows


class _Retail:
    """The price list: rows picked by filter, in pages, each row turned to text once."""

    def __init__(self, rows: Sequence[Json], *, page_size: int, filters: str, last_link: str | None) -> None:
        self._rows = [(row, json.dumps(row)) for row in rows]
        self._by_region: dict[str, list[tuple[Json, str]]] = {}
        for row, text in self._rows:
            self._by_region.setdefault(str(row.get("armRegionName")), []).append((row, text))
        self._page_size, self._filters, self._last_link = page_size, filters, last_link

    def page(self, request: Request) -> Reply:
        filters = request.parameter("$filter")
        if self._filters == "refused" and "contains(" in filters:
            return Reply(
                status=400, body=b'{"Error":{"Code":"BadRequest","Message":"Invalid OData parameters supplied"}}'
            )
        texts = [text for _, text in self._rows] if self._filters == "ignored" else self._picked(filters)
        skip = int(request.parameter("$skip", "0"))
        page = texts[skip : skip + self._page_size]
        link = self._last_link
        if skip + self._page_size < len(texts):
            remaining = {name: values[0] for name, values in request.query.items()}
            query = urlencode({**remaining, "$skip": skip + self._page_size})
            link = f"https://prices.azure.com:443{RETAIL_PATH}?{query}"
        envelope = (
            '{"BillingCurrency":"USD","CustomerEntityId":"Default","CustomerEntityType":"Retail","Items":['
            f'{",".join(page)}],"NextPageLink":{json.dumps(link)},"Count":{len(page)}}}'
        )
        return Reply(body=envelope.encode())

    def _picked(self, filters: str) -> list[str]:
        """The rows for which every clause holds; values compare by case, as since 2023-01-01-preview."""
        clauses: list[tuple[str, str, bool]] = []
        for clause in filters.split(" and ") if filters else []:
            match = _CLAUSE.fullmatch(clause)
            if match is None:
                raise ValueError(f"no such filter here: {clause}")
            name = match[1] or match[3]
            clauses.append(("type" if name == "priceType" else name, match[2] or match[4] or "", bool(match[1])))
        region = next((value for name, value, _ in clauses if name == "armRegionName"), None)
        rows = self._rows if region is None else self._by_region.get(region, [])
        return [text for row, text in rows if all(_matches(row, *clause) for clause in clauses)]


def _matches(row: Mapping[str, Any], name: str, value: str, contains: bool) -> bool:
    stored = str(row.get(name, ""))
    return value in stored if contains else stored == value


def sku(name: str, region: str, **changes: Any) -> Json:
    """One entry of the SKU list in the shape of Resource Manager; `capabilities` is a dict, None leaves one out."""
    capabilities = {
        "MaxResourceVolumeMB": "360448",
        "vCPUs": "16",
        "MemoryGB": "110",
        "LowPriorityCapable": "True",
        "vCPUsAvailable": "16",
        "GPUs": "1",
        "RdmaEnabled": "False",
        **changes.pop("capabilities", {}),
    }
    return {
        "resourceType": "virtualMachines",
        "name": name,
        "tier": "Standard",
        "size": name.removeprefix("Standard_"),
        "family": "standardUnheardOfFamily",
        "locations": [region],
        "locationInfo": [
            {"location": region, "zones": ["1", "3"], "zoneDetails": [{"Name": ["1"], "capabilities": []}]}
        ],
        "capabilities": [{"name": key, "value": value} for key, value in capabilities.items() if value is not None],
        "restrictions": [],
        **changes,
    }


def restriction(region: str, *, kind: str = "Location", reason: str = "NotAvailableForSubscription") -> Json:
    """Why a subscription may not use a size: everywhere in the region, or in its zones."""
    info = {"locations": [region], **({"zones": ["1", "2", "3"]} if kind == "Zone" else {})}
    return {"type": kind, "values": [region], "restrictionInfo": info, "reasonCode": reason}


def _places(offers: Iterable[Offer]) -> list[tuple[str, str]]:
    return sorted({(offer.region, offer.instance_type) for offer in offers})


def _sku(machine: InstanceType, region: str) -> Json:
    """A known machine as the SKU list tells it: a share of a card counts as one GPU, disks are in MiB."""
    count = max(Fraction(1), machine.accelerator_count)
    disk = "" if machine.local_disk_gb is None else str(round(machine.local_disk_gb * 1e9 / 2**20))
    return sku(
        machine.name,
        region.capitalize().replace("us", "US"),
        family=_FAMILY.get(machine.accelerator, f"standard{machine.name[9:11]}Family"),
        capabilities={
            "GPUs": str(int(count)),
            "vCPUs": f"{machine.vcpus:g}",
            "vCPUsAvailable": f"{machine.vcpus:g}",
            "MemoryGB": f"{machine.ram_gib:g}",
            "MaxResourceVolumeMB": disk or None,
            "RdmaEnabled": None if machine.fabric != "InfiniBand" else "True",
        },
    )


def _other_resources() -> list[Json]:
    """Disks, snapshots and host groups stand in the same list, without most of a machine's fields."""
    return [
        {"resourceType": "disks", "name": "Premium_LRS", "tier": "Premium", "size": "P4", "locations": ["eastus"]},
        {"resourceType": "snapshots", "name": "Standard_LRS", "locations": ["EastUS"], "capabilities": None},
        {"resourceType": "hostGroups/hosts", "name": "NVASv4-Type1", "family": "NVasv4", "locations": ["westus2"]},
        {"resourceType": "virtualMachines", "name": "Standard_A0", "locations": ["westus"], "capabilities": []},
    ]


def _sku_page(skus: Sequence[Json], request: Request, page_size: int) -> Reply:
    place = re.fullmatch(r"location eq '(.*)'", request.parameter("$filter"))
    picked = [json for json in skus if place is None or place[1].lower() in str(json["locations"]).lower()]
    start = int(request.parameter("$skiptoken", "0"))
    document: Json = {"value": picked[start : start + page_size]}
    if start + page_size < len(picked):
        query = urlencode({"api-version": request.parameter("api-version"), "$skiptoken": start + page_size})
        document["nextLink"] = f"http://{request.headers['host']}{request.path}?{query}"
    return Reply(body=json.dumps(document).encode())
