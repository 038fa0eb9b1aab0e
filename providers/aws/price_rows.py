"""Convert one product of the AWS price list to prices per node-hour: pure, shared by the API and the files.

A product is one machine shape under one operating system, tenancy and market in one place; only the plain ones (shared
Linux, nothing pre-installed, bought on demand) are prices of a training node. The columns of the CSV files and the
attributes of the JSON are spelled differently ("Pre Installed S/W", "preInstalledSw"), so names are compared by letters and
digits only.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cache, lru_cache, partial
from typing import Any

from gpuplan.catalog.model.money import usd_micros
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.catalog.model.regions import regions
from gpuplan.providers.contract import Quarantined
from gpuplan.providers.error_redaction import redacted_text

#: Accepted values of each attribute of a plain product, by the letters of its name, in lower case. A missing attribute is
#: accepted: older files have no market option, a sparse server no tenancy.
PLAIN = {
    "operatingsystem": frozenset({"linux"}),
    "tenancy": frozenset({"shared"}),
    "preinstalledsw": frozenset({"na", ""}),
    "capacitystatus": frozenset({"used"}),
    "marketoption": frozenset({"ondemand"}),
    "licensemodel": frozenset({"no license required", "na", ""}),
    "operation": frozenset({"runinstances"}),
}
#: Plain compute is metered as BoxUsage, after a prefix that does not follow from the region code (none in us-east-1, EU- in
#: eu-west-1, USW2-LAX1- in a Local Zone). HostBoxUsage, UnusedBox, Reservation and DedicatedUsage are other products.
BOX_USAGE = re.compile(r"(?:^|-)boxusage(?::|$)")
#: Location types with generally rentable machines. Wavelength Zones (inside a carrier's network) and Outposts are not.
LOCAL_ZONE_TYPE = "aws local zone"
LOCATION_TYPES = frozenset({"aws region", LOCAL_ZONE_TYPE})
LOCAL_ZONE = re.compile(r"-\d+-[a-z]{3}-\d+$")
WAVELENGTH_ZONE = re.compile(r"-wl\d")
REGION = re.compile(r"^[a-z]{2,6}(?:-[a-z]+)+-\d+$")

#: Price kind by (years, offering class, purchase option).
RESERVED_KINDS = {
    (1, "standard", "no upfront"): "reserved_1y",
    (1, "standard", "partial upfront"): "reserved_1y_partial_upfront",
    (1, "standard", "all upfront"): "reserved_1y_all_upfront",
    (1, "convertible", "no upfront"): "reserved_1y_convertible",
    (1, "convertible", "partial upfront"): "reserved_1y_convertible_partial_upfront",
    (1, "convertible", "all upfront"): "reserved_1y_convertible_all_upfront",
    (3, "standard", "no upfront"): "reserved_3y",
    (3, "standard", "partial upfront"): "reserved_3y_partial_upfront",
    (3, "standard", "all upfront"): "reserved_3y_all_upfront",
    (3, "convertible", "no upfront"): "reserved_3y_convertible",
    (3, "convertible", "partial upfront"): "reserved_3y_convertible_partial_upfront",
    (3, "convertible", "all upfront"): "reserved_3y_convertible_all_upfront",
}
#: The codes under which AWS sells these terms everywhere; they only confirm a term's own attributes.
OFFER_TERM_CODES = {
    "4NA7Y494T4": "reserved_1y",
    "HU7G6KETJZ": "reserved_1y_partial_upfront",
    "6QCMYABX3D": "reserved_1y_all_upfront",
    "7NE97W5U4E": "reserved_1y_convertible",
    "CUZHX8X6JH": "reserved_1y_convertible_partial_upfront",
    "VJWZNREJX2": "reserved_1y_convertible_all_upfront",
    "BPH4J8HBKS": "reserved_3y",
    "38NPMPTW36": "reserved_3y_partial_upfront",
    "NQ3QZPMQV9": "reserved_3y_all_upfront",
    "Z2E3P23VKM": "reserved_3y_convertible",
    "R5XV2EPZQZ": "reserved_3y_convertible_partial_upfront",
    "MZU6U2429S": "reserved_3y_convertible_all_upfront",
}
#: Instance families with accelerators, whether or not the price list counts their devices.
ACCELERATED_FAMILY = re.compile(r"^(?:p|g|gr|trn|inf|dl|vt|f)\d+[a-z0-9-]*\.")
#: Above any fee for any term; larger values are errors and may overflow.
MOST_USD = Decimal(10) ** 9
HOURLY = frozenset({"hrs", "hours", "hour"})
UPFRONT = frozenset({"quantity"})
ZERO_IS_UNKNOWN = "a price of zero means unknown, never free"


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceRow:
    """One price of one machine shape in one place, per node-hour over its term; a Local Zone is its own region."""

    region: str
    zone: str
    instance_type: str
    price_kind: str
    usd_micros_per_hour: int


class _Doubtful(ValueError):
    """A value that is not a usable price; the message is the reason."""


def rows_of_product(document: Mapping[str, Any]) -> tuple[list[PriceRow], list[Quarantined]]:
    """The prices of one decoded GetProducts document (`{"product": {...}, "terms": {...}}`), and quarantined rows.

    Other products than plain machines give neither. Reserved terms become effective hourly prices: upfront fee and hourly
    fees together over the hours of the term, rounded once.
    """
    try:
        product = _mapping(document.get("product"))
        attributes = plain_attributes(_mapping(product.get("attributes")))
    except _Doubtful as doubt:
        return [], [Quarantined(what="a product of the price list", reason=redacted_text(doubt))]
    instance_type = attributes.get("instancetype", "")
    if not is_plain_machine(attributes, str(product.get("productFamily") or "")):
        return [], []
    what = f"{instance_type} (SKU {product.get('sku', 'unknown')})"
    if "operatingsystem" not in attributes and "operation" not in attributes:
        return [], [Quarantined(what=what, reason="neither operatingSystem nor operation says that this is Linux")]
    region = region_of(attributes)
    if not region:
        where = attributes.get("location") or "nowhere"
        return [], [
            Quarantined(what=what, reason=redacted_text(f"no regionCode, and no known region is called {where}"))
        ]
    zone = region if LOCAL_ZONE.search(region) else ""
    rows, doubts = [], []
    for label, reading in _readings(document.get("terms")):
        try:
            kind, micros = reading()
        except _Doubtful as doubt:
            doubts.append(Quarantined(what=f"{what} in {region}, {label}", reason=redacted_text(doubt)))
        else:
            rows.append(
                PriceRow(
                    region=region, zone=zone, instance_type=instance_type, price_kind=kind, usd_micros_per_hour=micros
                )
            )
    return rows, doubts


#: Caches about two hundred attribute names, which occur on each of half a million products.
@lru_cache(maxsize=1024)
def plain_name(name: str) -> str:
    """An attribute's letters and digits, in lower case: the common form of JSON, CSV and older files."""
    return "".join(letter for letter in name.lower() if letter.isalnum())


def plain_attributes(attributes: Mapping[str, Any]) -> dict[str, str]:
    """The attributes of a product under their plain names; values stripped, null omitted."""
    return {plain_name(name): str(value).strip() for name, value in attributes.items() if value is not None}


def is_plain_machine(attributes: Mapping[str, str], product_family: str = "") -> bool:
    """Whether these are attributes of a shared Linux machine without software, bought on demand, in a region."""
    if not attributes.get("instancetype") or not (product_family or "Compute Instance").startswith("Compute Instance"):
        return False
    if not BOX_USAGE.search(attributes.get("usagetype", "BoxUsage").lower()):
        return False
    if attributes.get("locationtype", "AWS Region").lower() not in LOCATION_TYPES:
        return False
    if WAVELENGTH_ZONE.search(attributes.get("regioncode", "")):
        return False
    return all(attributes[name].lower() in accepted for name, accepted in PLAIN.items() if name in attributes)


def is_accelerated(attributes: Mapping[str, str]) -> bool:
    """Whether these are attributes of a machine with accelerators, known to gpuplan or not.

    The price list counts Neuron devices among its GPUs, and no devices at all for some families.
    """
    devices = attributes.get("gpu", "")
    has_device_count = any(digit in "123456789" for digit in devices)
    return has_device_count or bool(ACCELERATED_FAMILY.match(attributes.get("instancetype", "")))


def region_of(attributes: Mapping[str, str]) -> str:
    """The region or Local Zone of a product: its region code, else the region of its location, else "".

    A Local Zone under the code of its parent region is identified only by its location; its prices are separate.
    """
    code = attributes.get("regioncode", "")
    is_local = attributes.get("locationtype", "").lower() == LOCAL_ZONE_TYPE
    if LOCAL_ZONE.search(code) or (REGION.match(code) and not is_local):
        return code
    place = re.search(r"\(([^()]+)\)\s*$", attributes.get("location", ""))
    known = _regions_by_place().get(place[1].strip().lower(), "") if place else ""
    return known if LOCAL_ZONE.search(known) or not is_local else ""


@cache
def _regions_by_place() -> dict[str, str]:
    """Regions by the place in brackets of a location ("US East (Ohio)"), where the place is unique."""
    named: dict[str, list[str]] = {}
    for region in regions().values():
        if region.provider == "aws" and (REGION.match(region.name) or LOCAL_ZONE.search(region.name)):
            named.setdefault(region.location.lower(), []).append(region.name)
    return {place: names[0] for place, names in named.items() if len(names) == 1}


type _Reading = Callable[[], tuple[str, int]]


def _readings(terms: Any) -> Iterator[tuple[str, _Reading]]:
    """A label and a reading for the on-demand price and each reserved term."""
    by_type = terms if isinstance(terms, Mapping) else {"OnDemand": terms}
    yield "on_demand", partial(_on_demand, by_type.get("OnDemand"))
    reserved = by_type.get("Reserved") or {}
    for code, term in (reserved if isinstance(reserved, Mapping) else {"": reserved}).items():
        yield f"reserved term {code}".strip(), partial(_reserved, term)


def _on_demand(offers: Any) -> tuple[str, int]:
    hourly = [price for offer in _mapping(offers).values() for price in _prices(offer, HOURLY)]
    if len(hourly) != 1:
        raise _Doubtful(f"{len(hourly) or 'no'} hourly on-demand prices where one is expected")
    return "on_demand", _micros(hourly[0])


def _reserved(term: Any) -> tuple[str, int]:
    kind = _reserved_kind(term)
    row = price_kinds()[kind]
    hourly, upfront = _prices(term, HOURLY), _prices(term, UPFRONT)
    if len(hourly) > 1 or len(upfront) > 1:
        raise _Doubtful(f"{len(hourly)} hourly and {len(upfront)} upfront prices where at most one of each is expected")
    fee, rate = sum(upfront, Decimal()), sum(hourly, Decimal())
    if row.upfront_share < 1 and not rate:
        raise _Doubtful("no price per hour in a term that is not paid wholly upfront")
    if row.upfront_share and not fee:
        raise _Doubtful("no upfront fee in a term that is paid upfront")
    if not row.upfront_share and fee:
        raise _Doubtful(f"an upfront fee of {fee} USD in a term without one")
    return kind, _micros((fee + rate * row.term_hours) / row.term_hours)


def _reserved_kind(term: Any) -> str:
    """The price kind of a reserved term by its own attributes; its code must not contradict it."""
    about = plain_attributes(_mapping(_mapping(term).get("termAttributes")))
    lease, offering, purchase = (
        about.get(name, "") for name in ("leasecontractlength", "offeringclass", "purchaseoption")
    )
    years = re.match(r"\s*(\d+)\s*y", lease.lower())
    option = re.sub(r"\s*upfront$", " upfront", purchase.lower())
    kind = RESERVED_KINDS.get((int(years[1]) if years else 0, offering.lower(), option))
    if kind is None:
        raise _Doubtful(f"unknown reservation: length {lease!r}, class {offering!r}, purchase {purchase!r}")
    code = str(_mapping(term).get("offerTermCode") or "")
    if OFFER_TERM_CODES.get(code, kind) != kind:
        raise _Doubtful(f"its attributes say {kind}, its code {code} says {OFFER_TERM_CODES[code]}")
    return kind


def _prices(term: Any, units: frozenset[str]) -> list[Decimal]:
    """The dollar prices of a term's dimensions in one of the units."""
    dimensions = _mapping(_mapping(term).get("priceDimensions")).values()
    return [_usd(one.get("pricePerUnit")) for one in map(_mapping, dimensions) if str(one.get("unit")).lower() in units]


def _usd(per_unit: Any) -> Decimal:
    prices = _mapping(per_unit)
    text = prices.get("USD")
    if text is None:
        raise _Doubtful(f"no price in USD (given in {', '.join(map(str, prices)) or 'nothing'})")
    try:
        price = Decimal(str(text))
    except InvalidOperation as error:
        raise _Doubtful(f"{text!r} is no price") from error
    if not price.is_finite() or price < 0 or price > MOST_USD:
        raise _Doubtful(f"{text!r} is no price")
    return price


def _micros(usd: Decimal) -> int:
    micros = usd_micros(usd)
    if micros == 0:
        raise _Doubtful(ZERO_IS_UNKNOWN)
    return micros


def _mapping(value: Any) -> Mapping[str, Any]:
    """The value if it is a JSON object; an empty one if missing; raises for anything else."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise _Doubtful(f"{type(value).__name__} where an object is expected")
    return value
