"""Public files of Compute and EC2 Instance Savings Plans: hourly rates without an upfront payment.

A file holds every plan of a region: the CSV a line per plan and product, the JSON a list of plans, each with its rates.
Both kinds of plan give a rate for the same machine; the cheaper one counts.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

import httpx

from gpuplan.catalog.model.money import usd_micros
from gpuplan.providers.aws.file_lines import csv_lines
from gpuplan.providers.aws.price_rows import BOX_USAGE, HOURLY, MOST_USD, PLAIN, plain_name
from gpuplan.providers.contract import Quarantined
from gpuplan.providers.error_redaction import redacted_text

KINDS = {1: "savings_plan_1y", 3: "savings_plan_3y"}
NEEDLES = {"discountedusagetype": "BoxUsage", "purchaseoption": "No Upfront"}
NO_UPFRONT = "no upfront"
CHUNK_BYTES = 1 << 16
type Fields = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRate:
    """The price of a plain Linux machine per hour under a plan; `plan` is the plan's display name."""

    region: str
    instance_type: str
    price_kind: str
    usd_micros_per_hour: int
    plan: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRates:
    """The cheapest rate per place, instance type and term of one file; `doubts` are by region or Local Zone."""

    rates: tuple[PlanRate, ...]
    doubts: Mapping[str, tuple[Quarantined, ...]]


def rates_of_csv(response: httpx.Response, instance_types: frozenset[str]) -> PlanRates:
    """The cheapest rate per region, instance type and term of one CSV file, and quarantined rows."""
    return _cheapest(csv_lines(response, NEEDLES), instance_types)


def rates_of_json(response: httpx.Response, instance_types: frozenset[str]) -> PlanRates:
    """The same for one JSON file, read plan by plan."""
    return _cheapest(_fields_of_json(response), instance_types)


def _fields_of_json(response: httpx.Response) -> Iterator[Fields]:
    import ijson  # type: ignore[import-untyped]

    products, plans = ijson.sendable_list(), ijson.sendable_list()
    readers = [ijson.items_coro(products, "products.item"), ijson.items_coro(plans, "terms.savingsPlan.item")]
    about: dict[str, Mapping[str, Any]] = {}
    try:
        for chunk in response.iter_bytes(CHUNK_BYTES):
            for reader in readers:
                reader.send(chunk)
            about |= {str(one.get("sku")): one for one in products if isinstance(one, Mapping)}
            for plan in plans:
                if isinstance(plan, Mapping):
                    yield from _fields_of_plan(plan, about.get(str(plan.get("sku")), {}))
            products.clear()
            plans.clear()
        for reader in readers:
            reader.close()
    except ijson.JSONError as error:
        raise httpx.RemoteProtocolError(f"the file is not whole JSON ({error})") from error


def _fields_of_plan(plan: Mapping[str, Any], product: Mapping[str, Any]) -> Iterator[Fields]:
    """The rates of one plan under the column names of the CSV."""
    length = _object(plan.get("leaseContractLength"))
    description = str(plan.get("description") or "")
    option = re.search(r"(no|partial|all) upfront", description.lower())
    common = {
        "productfamily": product.get("productFamily"),
        "purchaseoption": _object(product.get("attributes")).get("purchaseOption") or (option[0] if option else ""),
        "leasecontractlength": length.get("duration"),
        "leasecontractlengthunit": length.get("unit"),
        "description": description,
    }
    rates = plan.get("rates")
    for rate in rates if isinstance(rates, list) else []:
        price = _object(_object(rate).get("discountedRate"))
        fields = common | {plain_name(name): value for name, value in _object(rate).items()}
        fields |= {"discountedrate": price.get("price"), "currency": price.get("currency")}
        yield {name: str(value).strip() for name, value in fields.items() if value is not None}


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _cheapest(lines: Iterable[Fields], instance_types: frozenset[str]) -> PlanRates:
    best: dict[tuple[str, str, str], PlanRate] = {}
    doubts: dict[str, tuple[Quarantined, ...]] = {}
    for fields in lines:
        name, kind = _instance_type(fields), KINDS.get(_years(fields))
        if name not in instance_types or kind is None or not _is_plain(fields):
            continue
        region = fields.get("discountedregioncode", "")
        micros = _micros(fields)
        if micros is None or not region:
            reason = f"{fields.get('discountedrate')!r} {fields.get('currency', 'USD')} is no price above zero in USD"
            doubt = Quarantined(what=f"{name} in {region or 'no region'}, {kind}", reason=redacted_text(reason))
            doubts[region] = (*doubts.get(region, ()), doubt)
            continue
        rate = PlanRate(
            region=region, instance_type=name, price_kind=kind, usd_micros_per_hour=micros, plan=_plan(fields)
        )
        key = (region, name, kind)
        if key not in best or micros < best[key].usd_micros_per_hour:
            best[key] = rate
    return PlanRates(rates=tuple(best.values()), doubts=doubts)


def _instance_type(fields: Fields) -> str:
    """The type of a rate: stated, else the last part of its usage type (`BoxUsage:p4d.24xlarge`)."""
    return fields.get("discountedinstancetype") or fields.get("discountedusagetype", "").rpartition(":")[2]


def _is_plain(fields: Fields) -> bool:
    """Whether a rate is for a shared Linux machine, paid by the hour, under a plan without upfront payment."""
    return (
        fields.get("purchaseoption", "").lower() == NO_UPFRONT
        and bool(BOX_USAGE.search(fields.get("discountedusagetype", "").lower()))
        and fields.get("discountedoperation", "").lower() in PLAIN["operation"]
        and fields.get("unit", "Hrs").lower() in HOURLY
    )


def _years(fields: Fields) -> int:
    digits = re.match(r"\d+", fields.get("leasecontractlength", ""))
    count = int(digits[0]) if digits else 0
    return count // 12 if fields.get("leasecontractlengthunit", "").lower().startswith("month") else count


def _micros(fields: Fields) -> int | None:
    try:
        usd = Decimal(fields.get("discountedrate", ""))
    except InvalidOperation:
        return None
    if fields.get("currency", "USD") != "USD" or not usd.is_finite() or not 0 < usd <= MOST_USD:
        return None
    return usd_micros(usd) or None


def _plan(fields: Fields) -> str:
    family = fields.get("productfamily", "") + fields.get("description", "")
    return "EC2 Instance Savings Plan" if "EC2" in family else "Compute Savings Plan"
