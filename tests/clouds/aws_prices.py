"""The AWS price list as GetProducts and the bulk files tell it, with every neighbour that a plain price has there."""

import csv
import hashlib
import io
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any

from gpuplan.catalog.model.offer import Offer
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.providers.aws.price_rows import LOCAL_ZONE, OFFER_TERM_CODES, RESERVED_KINDS
from tests.clouds.aws_catalogue import MICROS, upfront_usd

VERSION = "20261120195514"
ON_DEMAND_CODE = "JRTCKXETXF"
HOURLY_RATE, UPFRONT_RATE = "6YS6EN2CT7", "2TG2D8R56U"
_CODES = {kind: code for code, kind in OFFER_TERM_CODES.items()}
_TERMS = {kind: term for term, kind in RESERVED_KINDS.items()}
#: No prefix in us-east-1, an old one in eu-west-1: region codes do not foretell them.
_PREFIXES = {"us-east-1": "", "eu-west-1": "EU-"}
PREAMBLE = (
    '"FormatVersion","v1.0"',
    '"Disclaimer","This pricing list is for informational purposes only."',
    '"Publication Date","2026-11-20T19:55:14Z"',
    f'"Version","{VERSION}"',
    '"OfferCode","AmazonEC2"',
)
#: Columns of the CSV file against the attribute of the JSON that they hold.
COLUMNS = {
    "Product Family": "productFamily",
    "serviceCode": "servicecode",
    "Location": "location",
    "Location Type": "locationType",
    "Instance Type": "instanceType",
    "vCPU": "vcpu",
    "Memory": "memory",
    "Tenancy": "tenancy",
    "Operating System": "operatingSystem",
    "License Model": "licenseModel",
    "usageType": "usagetype",
    "operation": "operation",
    "CapacityStatus": "capacitystatus",
    "GPU": "gpu",
    "GPU Memory": "gpuMemory",
    "Instance Family": "instanceFamily",
    "MarketOption": "marketoption",
    "Pre Installed S/W": "preInstalledSw",
    "Region Code": "regionCode",
    "serviceName": "servicename",
}
TERM_COLUMNS = [
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
    "RelatedTo",
    "LeaseContractLength",
    "PurchaseOption",
    "OfferingClass",
]
Document = dict[str, Any]


def documents_of(name: str, region: str, offers: Iterable[Offer]) -> Iterator[Document]:
    """The plain product of a type in a region with its terms, and its neighbours."""
    terms: dict[str, Document] = {"OnDemand": {}, "Reserved": {}}
    sku = _sku(name, region)
    for offer in offers:
        if offer.price_kind == "on_demand":
            terms["OnDemand"] |= _on_demand(sku, offer.usd_micros_per_hour)
        elif offer.price_kind in RESERVED_KINDS.values():
            terms["Reserved"] |= _reserved(sku, offer)
    if terms["OnDemand"]:
        yield _document(sku, _attributes(name, region), {kind: term for kind, term in terms.items() if term})
        yield from _neighbours(name, region)


def free_tier() -> Document:
    """A product that is no machine: no type, no region, a range that ends."""
    rate = {
        "unit": "Hrs",
        "beginRange": "0",
        "endRange": "750",
        "appliesTo": ["X"],
        "pricePerUnit": {"USD": "0.0000000000"},
    }
    term = {
        "offerTermCode": "A429C66SYZ",
        "termAttributes": {"Restriction": "FreeTier"},
        "priceDimensions": {"F": rate},
    }
    attributes = {"location": "Any", "locationType": "AWS Region", "regionCode": "", "operatingSystem": "Linux"}
    return _document("R3WPVNCD34N9W7UV", {**attributes, "tenancy": "Shared"}, {"OnDemand": {"F.A429C66SYZ": term}})


def wavelength_product(name: str) -> Document:
    """A machine inside a carrier's network."""
    attributes = {**_attributes(name, "us-east-1-wl1-bos1"), "locationType": "AWS Wavelength Zone"}
    sku = _sku(name, "us-east-1-wl1-bos1")
    return _document(sku, attributes, {"OnDemand": _on_demand(sku, 9_000_000)})


def bulk_json(documents: Iterable[Document]) -> Document:
    """One offer file: products and terms apart, joined by SKU."""
    products: Document = {}
    terms: dict[str, Document] = {"OnDemand": {}, "Reserved": {}}
    for document in documents:
        sku = document["product"]["sku"]
        products[sku] = document["product"]
        for kind, item in document["terms"].items():
            terms[kind][sku] = item
    head = {"formatVersion": "v1.0", "offerCode": "AmazonEC2", "version": VERSION}
    return {**head, "publicationDate": "2026-11-20T19:55:14Z", "products": products, "terms": terms}


def bulk_csv(documents: Iterable[Document]) -> str:
    """The same as CSV: a preamble, then one line per price dimension."""
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow([*TERM_COLUMNS, *COLUMNS])
    for document in documents:
        product = document["product"]
        attributes = {**product["attributes"], "productFamily": product["productFamily"]}
        for kind, term in ((kind, term) for kind, terms in document["terms"].items() for term in terms.values()):
            for code, rate in term["priceDimensions"].items():
                about = term["termAttributes"]
                writer.writerow(
                    [
                        product["sku"],
                        term["offerTermCode"],
                        code,
                        kind,
                        rate.get("description", ""),
                        "2026-09-01",
                        rate.get("beginRange", ""),
                        rate.get("endRange", ""),
                        rate["unit"],
                        rate["pricePerUnit"]["USD"],
                        "USD",
                        "",
                        *(about.get(name, "") for name in ("LeaseContractLength", "PurchaseOption", "OfferingClass")),
                        *(attributes.get(attribute, "") for attribute in COLUMNS.values()),
                    ]
                )
    return "\n".join(PREAMBLE) + "\n" + text.getvalue()


def _neighbours(name: str, region: str) -> Iterator[Document]:
    """What else the list has of the same machine: another system, tenancy, reserved capacity, a block at no price."""
    plain = _attributes(name, region)
    usage = plain["usagetype"]
    others: tuple[tuple[dict[str, str], int], ...] = (
        ({"operatingSystem": "Windows", "operation": "RunInstances:0002"}, 7_000_000),
        (
            {"operatingSystem": "Windows", "operation": "RunInstances:0800", "licenseModel": "Bring your own license"},
            6_000_000,
        ),
        ({"preInstalledSw": "SQL Web", "operation": "RunInstances:0200"}, 8_000_000),
        ({"tenancy": "Dedicated", "usagetype": usage.replace("Box", "Dedicated")}, 5_500_000),
        ({"capacitystatus": "AllocatedCapacityReservation", "usagetype": usage.replace("Box", "Reservation:Box")}, 0),
        ({"capacitystatus": "UnusedCapacityReservation", "usagetype": usage.replace("Box", "Unused:Box")}, 5_000_000),
        ({"marketoption": "CapacityBlock", "operation": "RunInstances:CB"}, 0),
    )
    for number, (changes, micros) in enumerate(others):
        sku = _sku(name, region, str(number))
        yield _document(sku, {**plain, **changes}, {"OnDemand": _on_demand(sku, micros)})


def _attributes(name: str, region: str) -> dict[str, str]:
    prefix = _PREFIXES.get(region, region.upper() + "-")
    is_local = bool(LOCAL_ZONE.search(region))
    return {
        "servicecode": "AmazonEC2",
        "servicename": "Amazon Elastic Compute Cloud",
        "location": region,
        "locationType": "AWS Local Zone" if is_local else "AWS Region",
        "regionCode": region,
        "instanceType": name,
        "instanceFamily": "Machine Learning ASIC Instances" if name.startswith(("trn", "inf")) else "GPU instance",
        "vcpu": "4",
        "memory": "16 GiB",
        "gpu": "1",
        "gpuMemory": "NA",
        "operatingSystem": "Linux",
        "tenancy": "Shared",
        "preInstalledSw": "NA",
        "licenseModel": "No License required",
        "capacitystatus": "Used",
        "marketoption": "OnDemand",
        "operation": "RunInstances",
        "usagetype": f"{prefix}BoxUsage:{name}",
    }


def _document(sku: str, attributes: dict[str, str], terms: Document) -> Document:
    is_metal = ".metal" in attributes.get("instanceType", "")
    family = "Compute Instance (bare metal)" if is_metal else "Compute Instance"
    product = {"productFamily": family, "sku": sku, "attributes": attributes}
    return {"product": product, "serviceCode": "AmazonEC2", "terms": terms, "version": VERSION}


def _on_demand(sku: str, micros: int) -> Document:
    return {f"{sku}.{ON_DEMAND_CODE}": _term(sku, ON_DEMAND_CODE, {}, hourly=Decimal(micros) / MICROS)}


def _reserved(sku: str, offer: Offer) -> Document:
    kind, code = price_kinds()[offer.price_kind], _CODES[offer.price_kind]
    years, offering, purchase = _TERMS[offer.price_kind]
    fee = upfront_usd(offer, kind) if kind.upfront_share else None
    hourly = Decimal(offer.usd_micros_per_hour) / MICROS - Decimal(fee or 0) / kind.term_hours
    about = {"LeaseContractLength": f"{years}yr", "OfferingClass": offering, "PurchaseOption": purchase.title()}
    return {f"{sku}.{code}": _term(sku, code, about, hourly=Decimal(0) if kind.upfront_share == 1 else hourly, fee=fee)}


def _term(sku: str, code: str, about: dict[str, str], *, hourly: Decimal, fee: int | None = None) -> Document:
    """Hours have a range; the fee upfront is another dimension without one, in whole dollars."""
    rates: Document = {
        f"{sku}.{code}.{HOURLY_RATE}": {
            "unit": "Hrs",
            "beginRange": "0",
            "endRange": "Inf",
            "description": "per hour",
            "appliesTo": [],
            "pricePerUnit": {"USD": f"{hourly:.10f}"},
        }
    }
    if fee is not None:
        upfront = {"unit": "Quantity", "description": "Upfront Fee", "appliesTo": [], "pricePerUnit": {"USD": str(fee)}}
        rates[f"{sku}.{code}.{UPFRONT_RATE}"] = upfront
    effective = {"sku": sku, "effectiveDate": "2026-09-01T00:00:00Z", "offerTermCode": code}
    return {**effective, "termAttributes": about, "priceDimensions": rates}


def _sku(name: str, region: str, what: str = "") -> str:
    return hashlib.sha256(f"{name}/{region}/{what}".encode()).hexdigest()[:16].upper()
