"""What a catalogue may not hold: duplicates, unknown names, counts that differ, prices that cannot be."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from functools import cache
from statistics import median

from catalog.build.fact_tables import Row
from catalog.data_tables import data_table
from catalog.money import MICROS_PER_USD
from catalog.offer import InstanceType, Offer
from catalog.price_kinds import PriceKind, price_kinds

#: Fractions in the price table are rounded to three digits (0.333, 0.1667).
COUNT_TOLERANCE = 0.01
#: Dollars per accelerator-hour of anything: an eighth of an L4 on a three-year term is above 0.02,
#: a GB200 in the dearest region is at 54.
LEAST_USD_PER_ACCELERATOR_HOUR = 0.01
MOST_USD_PER_ACCELERATOR_HOUR = 150.0


def problems(
    types: Sequence[InstanceType],
    offers: Sequence[Offer],
    *,
    accelerators: Collection[str],
    places: Collection[tuple[str, str]],
) -> list[str]:
    """Everything that forbids writing this catalogue, one line each; empty if it may be written."""
    by_name = {(each.provider, each.name): each for each in types}
    known = [offer for offer in offers if (offer.provider, offer.instance_type) in by_name]
    return [
        *_duplicates("instance type", [(each.provider, each.name) for each in types]),
        *_duplicates("offer", [offer.key for offer in offers]),
        *(_unknown_accelerators(types, accelerators)),
        *(_unknown_names(offers, by_name, places)),
        *_absurd_prices(known, by_name),
    ]


def differing_counts(rows: Sequence[Row], types: Sequence[InstanceType]) -> list[str]:
    """Price rows whose count of accelerators is not the instance type's, one line per type."""
    by_name = {(each.provider, each.name): each.accelerator_count for each in types}
    found = {}
    for row in rows:
        ours = by_name.get((row["provider"], row["instance_type"]))
        theirs = Fraction(row["accelerator_count"])
        if ours is not None and abs(ours - theirs) > COUNT_TOLERANCE * max(ours, theirs):
            counts = f"the price table counts {theirs} accelerators, the hardware table {ours}"
            found[row["instance_type"]] = f"instance type {row['instance_type']}: {counts}"
    return sorted(found.values())


def _duplicates(what: str, keys: Sequence[tuple[str, ...]]) -> list[str]:
    return [f"{what} {'/'.join(key)}: there {count} times" for key, count in Counter(keys).items() if count > 1]


def _unknown_accelerators(types: Sequence[InstanceType], accelerators: Collection[str]) -> list[str]:
    return [
        f"instance type {each.name}: accelerator {each.accelerator!r} is not in accelerators.csv"
        for each in types
        if each.accelerator not in accelerators
    ]


def _unknown_names(
    offers: Sequence[Offer], types: Mapping[tuple[str, str], InstanceType], places: Collection[tuple[str, str]]
) -> list[str]:
    unknown = Counter[str]()
    for offer in offers:
        if (offer.provider, offer.instance_type) not in types:
            unknown[f"instance type {offer.provider}/{offer.instance_type}: no hardware is known"] += 1
        if (offer.provider, offer.region) not in places:
            unknown[f"region {offer.provider}/{offer.region}: not in places.csv"] += 1
        if offer.price_kind not in price_kinds():
            unknown[f"price kind {offer.price_kind}: not in price_kinds.csv"] += 1
    return [f"{line} ({count} offers)" for line, count in unknown.items()]


def _absurd_prices(offers: Sequence[Offer], types: Mapping[tuple[str, str], InstanceType]) -> list[str]:
    """Prices outside the bounds of their kind, against the accelerator's median on-demand price."""
    each_usd = [_usd_per_accelerator(offer, types) for offer in offers]
    usual: dict[str, list[float]] = defaultdict(list)
    for offer, usd in zip(offers, each_usd, strict=True):
        if not offer.partial and _group(price_kinds()[offer.price_kind]) == "plain":
            usual[types[offer.provider, offer.instance_type].accelerator].append(usd)
    medians = {name: median(values) for name, values in usual.items()}
    lines = []
    for offer, usd in zip(offers, each_usd, strict=True):
        low, high = _bounds(medians.get(types[offer.provider, offer.instance_type].accelerator), offer.price_kind)
        if not low <= usd <= high:
            outside = f"{usd:.4f} USD per accelerator-hour is outside {low:.4f}..{high:.4f}"
            lines.append(f"offer {'/'.join(offer.key)}: {outside}")
    return lines


def _usd_per_accelerator(offer: Offer, types: Mapping[tuple[str, str], InstanceType]) -> float:
    count = types[offer.provider, offer.instance_type].accelerator_count
    return offer.usd_micros_per_hour / MICROS_PER_USD / float(count)


def _bounds(usual: float | None, price_kind: str) -> tuple[float, float]:
    if usual is None:
        return LEAST_USD_PER_ACCELERATOR_HOUR, MOST_USD_PER_ACCELERATOR_HOUR
    row = _ratios()[_group(price_kinds()[price_kind])]
    return (
        max(LEAST_USD_PER_ACCELERATOR_HOUR, usual * float(row["low_ratio"])),
        min(MOST_USD_PER_ACCELERATOR_HOUR, usual * float(row["high_ratio"])),
    )


def _group(kind: PriceKind) -> str:
    """Which row of `data/price_bounds.csv` bounds a kind, by its properties."""
    if kind.interruptible:
        return "interruptible"
    return "term" if kind.term_hours else "plain"


@cache
def _ratios() -> dict[str, Row]:
    return {row["kind_group"]: row for row in data_table("price_bounds.csv")}
