"""Convert listed prices: each becomes an offer or a TPU chip price, or is rejected by name."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache

from gpuplan.catalog.model.data_tables import data_table
from gpuplan.catalog.model.money import usd_micros
from gpuplan.catalog.model.offer import Offer
from tools.catalogue_build.fact_tables import Row, mapping_table
from tools.catalogue_build.observation_dates import observed
from tools.catalogue_build.price_row_outcomes import LEFT_OUT, QUARANTINED, Harvest, SetAside

#: Accepted effects of a note on a price row (`facts/price_notes.csv`, column effect).
UNVERIFIED = "unverified"
QUARANTINE = "quarantine"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedPrice:
    """A row of the price table in gpuplan's terms, before its classification."""

    row: Row
    price_kind: str
    effect: str
    reason: str


def listed_prices(rows: Iterable[Row], left_out: Mapping[str, str]) -> tuple[Harvest, list[ListedPrice]]:
    """Offers of the listed prices, and TPU rows, which are prices per slice to be divided by its chips.

    `left_out` gives the reason for instance types or accelerators that are not training hardware. An unusable row (an
    unknown word, a price of zero) becomes a problem by name.
    """
    harvest = Harvest()
    tpu_rows: list[ListedPrice] = []
    for number, row in enumerate(rows, start=2):
        harvest.counts["rows read"] += 1
        try:
            _take(row, left_out, harvest, tpu_rows)
        except (ValueError, ArithmeticError) as problem:
            harvest.problems.append(f"listed_prices line {number}: {problem}")
    return harvest, tpu_rows


def _take(row: Row, left_out: Mapping[str, str], harvest: Harvest, tpu_rows: list[ListedPrice]) -> None:
    price = _in_our_words(row)
    why = left_out.get(row["instance_type"]) or left_out.get(row["listed_accelerator"])
    doubt = _doubt(price)
    if why or doubt:
        fate = LEFT_OUT if why else QUARANTINED
        harvest.set_aside.append(set_aside(price, fate, why or doubt))
        harvest.counts[f"{fate}: {why or doubt}"] += 1
        return
    if row["instance_type"] in _slice_bases():
        harvest.counts["TPU rows divided to the chip"] += 1
        tpu_rows.append(price)
    else:
        harvest.offers.append(_offer(price))
        harvest.counts["offered as listed"] += 1


def set_aside(price: ListedPrice, fate: str, reason: str) -> SetAside:
    """The row as written to the quarantine file."""
    row = price.row
    return SetAside(
        provider=row["provider"],
        region=row["region"],
        zone=row["zone"],
        instance_type=row["instance_type"],
        price_kind=price.price_kind,
        usd_per_hour=row["usd_per_hour"],
        as_of=row["as_of"],
        source=row["source"],
        fate=fate,
        reason=reason,
    )


def _in_our_words(row: Row) -> ListedPrice:
    if row["note"] and row["note"] not in _notes():
        raise ValueError(f"note {row['note']!r} is not in price_notes.csv")
    if row["listed_price_kind"] not in _kinds():
        raise ValueError(f"price kind {row['listed_price_kind']!r} is not in price_kinds.csv")
    effect, reason = _notes().get(row["note"], ("", ""))
    return ListedPrice(row=row, price_kind=_kinds()[row["listed_price_kind"]], effect=effect, reason=reason)


def _doubt(price: ListedPrice) -> str:
    """Why the row is not a usable price, or nothing."""
    if price.effect == QUARANTINE:
        return price.reason
    row = price.row
    for doubtful in _doubtful():
        same = all(doubtful[name] == row[name] for name in ("provider", "region", "instance_type"))
        if (
            same
            and doubtful["price_kind"] == price.price_kind
            and Decimal(row["usd_per_hour"]) < Decimal(doubtful["below_usd_per_hour"])
        ):
            return doubtful["reason"]
    return ""


def _offer(price: ListedPrice) -> Offer:
    row = price.row
    observed_at, approximately = observed(row["as_of"], read_from=row["source"], price_kind=price.price_kind)
    return Offer(
        provider=row["provider"],
        region=row["region"],
        zone=row["zone"],
        instance_type=row["instance_type"],
        price_kind=price.price_kind,
        usd_micros_per_hour=usd_micros(row["usd_per_hour"]),
        observed_at=observed_at,
        observed_approximately=approximately,
        available=price.effect != UNVERIFIED,
        source=row["source"],
    )


@cache
def _kinds() -> dict[str, str]:
    return {row["source_kind"]: row["price_kind"] for row in mapping_table("price_kinds")}


@cache
def _notes() -> dict[str, tuple[str, str]]:
    return {row["note"]: (row["effect"], row["reason"]) for row in mapping_table("price_notes")}


@cache
def _slice_bases() -> frozenset[str]:
    return frozenset(row["priced_from"] for row in data_table("tpu_slices.csv"))


@cache
def _doubtful() -> list[Row]:
    return mapping_table("doubtful_prices")
