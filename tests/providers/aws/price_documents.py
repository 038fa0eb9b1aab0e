"""AWS price list products as GetProducts gives them, and as the lines and objects of the public files."""

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

ATTRIBUTES = {
    "instanceType": "p4d.24xlarge",
    "regionCode": "us-east-1",
    "location": "US East (N. Virginia)",
    "locationType": "AWS Region",
    "operatingSystem": "Linux",
    "tenancy": "Shared",
    "preInstalledSw": "NA",
    "capacitystatus": "Used",
    "marketoption": "OnDemand",
    "licenseModel": "No License required",
    "usagetype": "BoxUsage:p4d.24xlarge",
    "operation": "RunInstances",
    "gpu": "8",
    "gpuMemory": "320 GB HBM2",
}
#: The columns of index.csv that differ in more than case from the attributes of index.json.
COLUMNS = {
    "instanceType": "Instance Type",
    "regionCode": "Region Code",
    "location": "Location",
    "locationType": "Location Type",
    "operatingSystem": "Operating System",
    "tenancy": "Tenancy",
    "preInstalledSw": "Pre Installed S/W",
    "capacitystatus": "CapacityStatus",
    "marketoption": "MarketOption",
    "licenseModel": "License Model",
    "usagetype": "usageType",
    "operation": "operation",
    "gpu": "GPU",
    "gpuMemory": "GPU Memory",
}
TERM_COLUMNS = (
    "SKU",
    "OfferTermCode",
    "RateCode",
    "TermType",
    "PriceDescription",
    "EffectiveDate",
    "StartingRange",
    "EndingRange",
    "Unit",
    "PricePerUnit",
    "Currency",
    "LeaseContractLength",
    "PurchaseOption",
    "OfferingClass",
    "Product Family",
)
#: As the files begin: no price stands in the first lines.
PREAMBLE = (
    ("FormatVersion", "v1.0"),
    ("Disclaimer", "for information, see http://aws.amazon.com"),
    ("Publication Date", "2026-11-20T00:00:00Z"),
    ("Version", "20261120000000"),
    ("OfferCode", "AmazonEC2"),
)


def dimension(usd: Any, unit: str = "Hrs", currency: str = "USD") -> dict[str, Any]:
    ranges = {"beginRange": "0", "endRange": "Inf"} if unit == "Hrs" else {}
    return {"unit": unit, "pricePerUnit": {currency: usd}, "appliesTo": [], **ranges}


def on_demand(usd: Any = "21.9576420000", **about: str) -> dict[str, Any]:
    return {"offerTermCode": "JRTCKXETXF", "termAttributes": {}, "priceDimensions": {"RATE": dimension(usd, **about)}}


def reserved(
    code: str, lease: str, offering: str, purchase: str, *, hourly: Any = None, fee: Any = None
) -> dict[str, Any]:
    dimensions = {}
    if fee is not None:
        dimensions["2TG2D8R56U"] = dimension(fee, unit="Quantity")
    if hourly is not None:
        dimensions["6YS6EN2CT7"] = dimension(hourly)
    about = {"LeaseContractLength": lease, "OfferingClass": offering, "PurchaseOption": purchase}
    return {"offerTermCode": code, "termAttributes": about, "priceDimensions": dimensions}


def product(
    *,
    sku: str = "H7NGEAC6UEHNTKSJ",
    family: str = "Compute Instance",
    usd: Any = "21.9576420000",
    on_demand_terms: Sequence[dict[str, Any]] | None = None,
    reserved_terms: Sequence[dict[str, Any]] = (),
    without: Iterable[str] = (),
    **attributes: str,
) -> dict[str, Any]:
    """A whole document; `attributes` replace those of a p4d.24xlarge in us-east-1, `without` takes some away."""
    if "instanceType" in attributes:
        attributes.setdefault("usagetype", f"BoxUsage:{attributes['instanceType']}")
    remaining = {name: value for name, value in (ATTRIBUTES | attributes).items() if name not in set(without)}
    terms = [on_demand(usd)] if on_demand_terms is None else on_demand_terms
    return {
        "product": {"sku": sku, "productFamily": family, "attributes": remaining},
        "serviceCode": "AmazonEC2",
        "terms": {
            "OnDemand": {f"{sku}.{term['offerTermCode']}": term for term in terms},
            "Reserved": {f"{sku}.{term['offerTermCode']}": term for term in reserved_terms},
        },
    }


def csv_file(documents: Iterable[Mapping[str, Any]], *, preamble: Iterable[Sequence[str]] = PREAMBLE) -> bytes:
    """The documents as index.csv: a preamble, the names of the columns, a line per price dimension."""
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerows(preamble)
    writer.writerow([*TERM_COLUMNS, *COLUMNS.values()])
    for document in documents:
        for term_type, offers in document["terms"].items():
            for offer in offers.values():
                for rate, price in offer["priceDimensions"].items():
                    writer.writerow(_cells(document["product"], term_type, offer, rate, price))
    return text.getvalue().encode()


def _cells(
    about: Mapping[str, Any], term_type: str, offer: Mapping[str, Any], rate: str, price: Mapping[str, Any]
) -> list[Any]:
    (currency, amount), term = next(iter(price["pricePerUnit"].items())), offer["termAttributes"]
    code = f"{about['sku']}.{offer['offerTermCode']}.{rate}"
    ranges = [price.get("beginRange", ""), price.get("endRange", "")]
    return [
        *(about["sku"], offer["offerTermCode"], code, term_type, "a price", "2026-11-01", *ranges),
        *(price["unit"], amount, currency, term.get("LeaseContractLength", ""), term.get("PurchaseOption", "")),
        *(term.get("OfferingClass", ""), about["productFamily"]),
        *(about["attributes"].get(name, "") for name in COLUMNS),
    ]


def json_file(documents: Sequence[Mapping[str, Any]]) -> bytes:
    """The documents as index.json: products first, then terms by type and SKU."""
    terms: dict[str, dict[str, Any]] = {"OnDemand": {}, "Reserved": {}}
    for document in documents:
        for term_type, offers in document["terms"].items():
            terms[term_type][document["product"]["sku"]] = offers
    products = {document["product"]["sku"]: document["product"] for document in documents}
    return json.dumps({"formatVersion": "v1.0", "products": products, "terms": terms}).encode()
