"""Savings plans: the price per node-hour under a monthly commitment, from the cheaper of the two plans."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from itertools import batched
from typing import Any

from gpuplan.catalog.model.money import usd_micros
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.providers.aws.api_calls import PRICING_REGION, CallFailed, Calls
from gpuplan.providers.aws.price_rows import BOX_USAGE, LOCAL_ZONE, WAVELENGTH_ZONE, PriceRow
from gpuplan.providers.contract import Quarantined

KINDS = ("savings_plan_1y", "savings_plan_3y")
#: Plan types by API name, with the name used in a price's source.
PLANS = {
    "Compute": "AWS Savings Plans API (Compute plan)",
    "EC2Instance": "AWS Savings Plans API (EC2 Instance plan)",
}
PAYMENT = "No Upfront"
#: Plain shared Linux: RunInstances only, since RunInstances:0002 and similar are Windows and licences.
PLAIN = {"productdescription": {"linux/unix", "linux/unix (amazon vpc)"}, "tenancy": {"shared", "default"}}
OPERATION = "RunInstances"
NAMES_PER_CALL = 10
PAGE = 1000
AT_ONCE = 8
_SECONDS_PER_HOUR = 3600


@dataclass(slots=True, kw_only=True)
class PlanRates:
    """The cheapest rate by (region, zone, instance type, kind) with its plan, in micro-dollars.

    `doubts` are by region; those about rates without a region are under "".
    """

    rates: dict[tuple[str, str, str, str], tuple[int, str]] = field(default_factory=dict)
    doubts: defaultdict[str, list[Quarantined]] = field(default_factory=lambda: defaultdict(list))
    failures: list[str] = field(default_factory=list)

    @property
    def whole(self) -> bool:
        """Whether every query was answered."""
        return not self.failures

    def rows(self, region: str) -> list[tuple[PriceRow, str]]:
        """The rates of a region as prices, each with its source."""
        return [
            (
                PriceRow(region=region, zone=zone, instance_type=name, price_kind=kind, usd_micros_per_hour=micros),
                source,
            )
            for (where, zone, name, kind), (micros, source) in sorted(self.rates.items())
            if where == region
        ]


def read_plan_rates(calls: Calls, types: Iterable[str]) -> PlanRates:
    """The rates of these instance types in all regions."""
    wanted = sorted(set(types))
    plan_rates = PlanRates()
    batches = list(batched(wanted, NAMES_PER_CALL))
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="aws-plans") as pool:
        answers = list(pool.map(lambda names: _asked(calls, names), batches))
    for rows, _ in answers:
        for row in rows:
            _take(plan_rates, row, frozenset(wanted))
    failed = [failure for _, failure in answers if failure]
    if failed:
        plan_rates.failures.append(f"{failed[0]}; savings plan prices stay as they were")
    elif wanted and not plan_rates.rates:
        nothing = f"savingsplans describe_savings_plans_offering_rates: no rate of any of {len(wanted)} types"
        plan_rates.failures.append(f"{nothing}; savings plan prices stay as they were")
    return plan_rates


def _asked(calls: Calls, names: tuple[str, ...]) -> tuple[list[Any], str]:
    try:
        return calls.every(
            "savingsplans",
            PRICING_REGION,
            "describe_savings_plans_offering_rates",
            "searchResults",
            savingsPlanTypes=list(PLANS),
            savingsPlanPaymentOptions=[PAYMENT],
            products=["EC2"],
            serviceCodes=["AmazonEC2"],
            filters=[
                {"name": "tenancy", "values": ["shared"]},
                {"name": "productDescription", "values": ["Linux/UNIX"]},
                {"name": "instanceType", "values": list(names)},
            ],
            maxResults=PAGE,
        ), ""
    except CallFailed as failure:
        return [], str(failure)


def _take(plan_rates: PlanRates, row: Mapping[str, Any], wanted: frozenset[str]) -> None:
    offering = row.get("savingsPlanOffering") or {}
    properties = {str(entry.get("name")).lower(): str(entry.get("value")) for entry in row.get("properties") or []}
    kind = _kind_of(offering.get("durationSeconds"))
    usage = str(row.get("usageType") or "")
    instance_type = properties.get("instancetype") or usage.partition(":")[2]
    plan = str(offering.get("planType") or "")
    if kind is None or plan not in PLANS or instance_type not in wanted or not _is_plain(row, offering, properties):
        return
    what = f"{instance_type} {kind} ({plan} plan)"
    region = properties.get("region", "")
    if WAVELENGTH_ZONE.search(region):
        return
    micros = _micros(row.get("rate"))
    if not region or not micros:
        reason = "no region" if not region else f"{row.get('rate')!r} is no price (zero means unknown, never free)"
        plan_rates.doubts[region].append(Quarantined(what=what, reason=reason))
        return
    key = (region, region if LOCAL_ZONE.search(region) else "", instance_type, kind)
    plan_rates.rates[key] = min(plan_rates.rates.get(key, (micros, PLANS[plan])), (micros, PLANS[plan]))


def _is_plain(row: Mapping[str, Any], offering: Mapping[str, Any], properties: Mapping[str, str]) -> bool:
    return (
        str(offering.get("paymentOption") or PAYMENT) == PAYMENT
        and str(offering.get("currency") or "USD") == "USD"
        and str(row.get("productType") or "EC2") == "EC2"
        and str(row.get("unit") or "Hrs") == "Hrs"
        and str(row.get("operation") or OPERATION) == OPERATION
        and bool(BOX_USAGE.search(str(row.get("usageType") or "BoxUsage").lower()))
        and all(properties[name].lower() in accepted for name, accepted in PLAIN.items() if name in properties)
    )


def _kind_of(seconds: Any) -> str | None:
    terms = {price_kinds()[kind].term_hours * _SECONDS_PER_HOUR: kind for kind in KINDS}
    return terms.get(seconds)


def _micros(rate: Any) -> int | None:
    try:
        return usd_micros(Decimal(str(rate)))
    except (InvalidOperation, ValueError):
        return None
