"""Convert rows of the Retail Prices API to prices per hour: pure, one region at a time.

A size in a region has ten or more rows with the same name: Linux and Windows, pay as you go, Spot, Low Priority,
reservations, developer prices, platform services. `data/left_out_rows.csv` removes rows that are not a machine's price;
type and meter of the rest give the price kind.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation

from gpuplan.catalog.model.money import usd_micros, usd_text
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.providers.azure.mapping_tables import folded, is_accelerated, left_out_rows, region_name
from gpuplan.providers.contract import Quarantined

type Row = Mapping[str, object]

SERVICE = "Virtual Machines"
#: Years of a term -> (kind of a reservation, kind of a savings plan).
_TERMS = {1: ("reserved_1y", "savings_plan_1y"), 3: ("reserved_3y", "savings_plan_3y")}
#: `1 Year` and `3 Years` in this list, `P1Y` and `P3Y` in other lists of Azure.
_TERM = re.compile(r"P?(\d{1,2})\s*Y(?:ears?)?", re.IGNORECASE)
#: Kinds nested in pay-as-you-go rows; they end with those rows.
_NESTED = frozenset(nested for _, nested in _TERMS.values())
#: All kinds that the price list states.
KINDS = frozenset({"on_demand", "spot", *(kind for kinds in _TERMS.values() for kind in kinds)})
_SPOT = re.compile(r"\bSpot\b", re.IGNORECASE)
#: Three years of a machine above any real price.
_MOST_USD = Decimal(10**9)
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """One current price; `size` as the price list spells it."""

    size: str
    kind: str
    usd_micros_per_hour: int
    since: datetime = _LONG_AGO


@dataclass(slots=True, kw_only=True)
class Prices:
    """The prices of one region, at most one per size and kind."""

    prices: list[Price] = field(default_factory=list)
    quarantined: list[Quarantined] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class _Unreadable(ValueError):
    """A row with an unclear meaning; the message says which field and why."""


def is_machine(row: object) -> bool:
    """Whether this may be the price of an accelerated machine in some region."""
    return (
        isinstance(row, Mapping)
        and is_accelerated(row.get("armSkuName"))
        and row.get("serviceName") in (SERVICE, None)
        and bool(region_name(row.get("armRegionName")))
    )


def prices_of(rows: Iterable[Row], *, region: str, read_at: datetime) -> Prices:
    """The prices of one region in force at `read_at`; ignores rows of other regions and services.

    Of several rows for one size and kind, the latest effective date counts; if rows of the same date disagree, all are
    quarantined with their prices.
    """
    prices = Prices()
    candidates: dict[tuple[str, str], list[Price]] = {}
    other_terms: Counter[str] = Counter()
    for row in rows:
        if not is_machine(row) or region_name(row.get("armRegionName")) != region or _is_left_out(row):
            continue
        try:
            reading = _read(row, read_at)
        except _Unreadable as problem:
            reading = _Reading(problems=[str(problem)])
        what = _what(row, region)
        prices.quarantined.extend(Quarantined(what=what, reason=problem) for problem in reading.problems)
        other_terms.update(reading.other_terms)
        for price in reading.prices:
            candidates.setdefault((folded(price.size), price.kind), []).append(price)
    for (size, kind), same in candidates.items():
        whole_since = max((row.since for row in candidates.get((size, "on_demand"), [])), default=_LONG_AGO)
        _choose([price for price in same if kind not in _NESTED or price.since == whole_since], region, prices)
    prices.notes.extend(
        f"{region}: {count} prices with a term of {term} left out; gpuplan knows 1 Year and 3 Years"
        for term, count in sorted(other_terms.items())
    )
    return prices


def _is_left_out(row: Row) -> bool:
    return any(rule.takes(row) for rule in left_out_rows())


@dataclass(slots=True, kw_only=True)
class _Reading:
    """The contents of one row: prices, terms without a price kind, and unreadable nested prices."""

    prices: list[Price] = field(default_factory=list)
    other_terms: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def _read(row: Row, read_at: datetime) -> _Reading:
    """The prices in one row; none if it is not in force, or is a further tier of one that is."""
    since = _time(row, "effectiveStartDate") or _LONG_AGO
    until = _time(row, "effectiveEndDate")
    if since > read_at or (until is not None and until.year > 1 and until <= read_at):
        return _Reading()
    if _number(row.get("tierMinimumUnits") or 0, "tierMinimumUnits") > 0:
        return _Reading()
    _check_text(row)
    size, term = str(row["armSkuName"]).strip(), row.get("reservationTerm")
    if row.get("type") == "Reservation" or (row.get("type") is None and term):
        kinds = _kinds_of(term)
        if kinds is None:
            return _Reading(other_terms=[str(term)])
        micros = usd_micros(_amount(row) / price_kinds()[kinds[0]].term_hours)
        return _Reading(prices=[Price(size=size, kind=kinds[0], usd_micros_per_hour=micros, since=since)])
    if row.get("type") != "Consumption":
        raise _Unreadable(f"type {row.get('type')!r} is not Consumption or Reservation")
    if str(row.get("unitOfMeasure")).lower().split() != ["1", "hour"]:
        raise _Unreadable(f"unitOfMeasure {row.get('unitOfMeasure')!r} is not 1 Hour")
    kind = "spot" if _SPOT.search(f"{row.get('skuName') or ''} {row.get('meterName') or ''}") else "on_demand"
    price = Price(size=size, kind=kind, usd_micros_per_hour=usd_micros(_amount(row)), since=since)
    reading = _Reading(prices=[price])
    if price_kinds()[kind].is_plain:
        _add_savings_plans(row, price, reading)
    return reading


def _kinds_of(term: object) -> tuple[str, str] | None:
    """The kinds of a reservation and of a savings plan for a term such as `3 Years`, if any."""
    match = _TERM.fullmatch(str(term).strip())
    return _TERMS.get(int(match[1])) if match else None


def _check_text(row: Row) -> None:
    if not row.get("productName"):
        raise _Unreadable("productName is missing, and only it distinguishes Linux from Windows")
    if not row.get("skuName") and not row.get("meterName"):
        raise _Unreadable("skuName and meterName are missing, and only they distinguish Spot from pay as you go")
    if row.get("currencyCode") not in ("USD", None):
        raise _Unreadable(f"currencyCode {row.get('currencyCode')!r} is not USD")


def _add_savings_plans(row: Row, price: Price, reading: _Reading) -> None:
    """The hourly savings plan prices nested in a pay-as-you-go row; the row's own price is unaffected by them."""
    plans = row.get("savingsPlan") or []
    if not isinstance(plans, list) or not all(isinstance(plan, Mapping) for plan in plans):
        reading.problems.append("savingsPlan is not a list of terms and prices")
        return
    for plan in plans:
        kinds = _kinds_of(plan.get("term"))
        if kinds is None:
            reading.other_terms.append(str(plan.get("term")))
            continue
        try:
            micros = usd_micros(_amount(plan))
        except _Unreadable as problem:
            reading.problems.append(f"savingsPlan of {plan.get('term')}: {problem}")
        else:
            reading.prices.append(replace(price, kind=kinds[1], usd_micros_per_hour=micros))


def _amount(row: Row) -> Decimal:
    """The price in USD. Both fields are equal in the public list; either substitutes for the other."""
    value = row.get("retailPrice")
    amount = _number(row.get("unitPrice") if value is None else value, "retailPrice")
    if amount <= 0:
        raise _Unreadable(f"retailPrice {amount} is unknown, never free")
    if amount > _MOST_USD:
        raise _Unreadable(f"retailPrice {amount:.3g} is no plausible price")
    return amount


def _number(value: object, name: str) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise _Unreadable(f"{name} {value!r} is not a number")
    try:
        number = Decimal(str(value))
    except InvalidOperation as error:
        raise _Unreadable(f"{name} {value!r} is not a number") from error
    if not number.is_finite():
        raise _Unreadable(f"{name} {value!r} is not a number")
    return number


def _time(row: Row, name: str) -> datetime | None:
    value = row.get(name)
    if value is None or value == "":
        return None
    try:
        time = datetime.fromisoformat(str(value))
    except ValueError as error:
        raise _Unreadable(f"{name} {value!r} is not a time") from error
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _choose(same: list[Price], region: str, prices: Prices) -> None:
    """The newest of several prices for one size and kind, or none if the newest disagree."""
    if not same:
        return
    newest = max(price.since for price in same)
    amounts = sorted({price.usd_micros_per_hour for price in same if price.since == newest})
    chosen = next(price for price in same if price.since == newest)
    if len(amounts) == 1:
        prices.prices.append(chosen)
        return
    amounts_text = " and ".join(usd_text(micros) for micros in amounts)
    reason = f"{amounts_text} USD per hour since the same time: which one is charged cannot be known"
    prices.quarantined.append(Quarantined(what=f"{region}/{chosen.size}/{chosen.kind}", reason=reason))


def _what(row: Row, region: str) -> str:
    meter = row.get("meterName") or row.get("skuName") or "?"
    return f"{region}/{row.get('armSkuName')}/{row.get('type')}/{meter}"
