"""Convert listed prices: each becomes an offer or a TPU chip price, or is rejected by name.

TPU slices: the listed price per chip, multiplied out to the documented slices of each generation.

v2 and v3 pods have a separate price per chip, listed for the 32-core slice, which larger pods of the zone share. A zone
with a chip price is assumed to sell every slice size: no source lists sizes by zone.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache

from gpuplan.catalog.model.data_tables import data_table
from gpuplan.catalog.model.money import MICROS_PER_USD, usd_micros
from gpuplan.catalog.model.offer import Offer
from gpuplan.catalog.model.tpu_slices import PROVIDER, TpuSlice
from gpuplan.catalog.model.tpu_slices import tpu_slices as documented_slices
from tools.catalogue_build.fact_tables import LEFT_OUT, QUARANTINED, Harvest, Row, SetAside, mapping_table, observed

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


def tpu_slices(priced: Sequence[ListedPrice]) -> Harvest:
    """Instance types and offers of every documented slice that has a chip price in some zone."""
    harvest = Harvest()
    for documented_slice in documented_slices():
        bases = [price for price in priced if price.row["instance_type"] == documented_slice.priced_from]
        if bases:
            harvest.instance_types.append(documented_slice.instance_type)
            harvest.offers += [_slice_offer(documented_slice, base) for base in bases]
    harvest.counts["TPU slice offers composed"] = len(harvest.offers)
    return harvest


def _slice_offer(tpu_slice: TpuSlice, base: ListedPrice) -> Offer:
    row = base.row
    observed_at, approximately = observed(row["as_of"], read_from=row["source"], price_kind=base.price_kind)
    usd_per_chip_hour = Fraction(row["usd_per_hour"]) / Fraction(row["accelerator_count"])
    return Offer(
        provider=PROVIDER,
        region=row["region"],
        zone=row["zone"],
        instance_type=tpu_slice.name,
        price_kind=base.price_kind,
        usd_micros_per_hour=round(usd_per_chip_hour * tpu_slice.chips_per_host * MICROS_PER_USD),
        observed_at=observed_at,
        observed_approximately=approximately,
        source=f"{row['source']}: {row['instance_type']} per chip{_assumed(tpu_slice)}",
    )


def _assumed(tpu_slice: TpuSlice) -> str:
    """The assumption about a slice that is not itself in the price list."""
    return (
        "" if tpu_slice.name == tpu_slice.priced_from else "; that the place sells this size at that price is assumed"
    )
