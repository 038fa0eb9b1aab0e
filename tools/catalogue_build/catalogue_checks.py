"""Checks of a catalogue: duplicates, unknown names, differing counts, implausible prices."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction

from gpuplan.catalog.model.offer import InstanceType, Offer
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.catalog.model.price_plausibility import usual_prices, why_implausible
from tools.catalogue_build.fact_tables import Row

#: Fractions in the price table are rounded to three digits (0.333, 0.1667).
COUNT_TOLERANCE = 0.01


def problems(
    types: Sequence[InstanceType],
    offers: Sequence[Offer],
    *,
    accelerators: Collection[str],
    places: Collection[tuple[str, str]],
) -> list[str]:
    """All reasons against writing this catalogue, one line each; empty if it may be written."""
    by_name = {(instance_type.provider, instance_type.name): instance_type for instance_type in types}
    known = [offer for offer in offers if (offer.provider, offer.instance_type) in by_name]
    return [
        *_duplicates("instance type", [(instance_type.provider, instance_type.name) for instance_type in types]),
        *_duplicates("offer", [offer.key for offer in offers]),
        *(_unknown_accelerators(types, accelerators)),
        *(_unknown_names(offers, by_name, places)),
        *_absurd_prices(known, by_name),
    ]


def differing_counts(rows: Sequence[Row], types: Sequence[InstanceType]) -> list[str]:
    """Price rows whose accelerator count differs from the instance type's, one line per type."""
    by_name = {(instance_type.provider, instance_type.name): instance_type.accelerator_count for instance_type in types}
    lines = {}
    for row in rows:
        ours = by_name.get((row["provider"], row["instance_type"]))
        theirs = Fraction(row["accelerator_count"])
        if ours is not None and abs(ours - theirs) > COUNT_TOLERANCE * max(ours, theirs):
            counts = f"the price table counts {theirs} accelerators, the hardware table {ours}"
            lines[row["instance_type"]] = f"instance type {row['instance_type']}: {counts}"
    return sorted(lines.values())


def _duplicates(what: str, keys: Sequence[tuple[str, ...]]) -> list[str]:
    return [f"{what} {'/'.join(key)}: there {count} times" for key, count in Counter(keys).items() if count > 1]


def _unknown_accelerators(types: Sequence[InstanceType], accelerators: Collection[str]) -> list[str]:
    return [
        f"instance type {instance_type.name}: accelerator {instance_type.accelerator!r} is not in accelerators.csv"
        for instance_type in types
        if instance_type.accelerator not in accelerators
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
    """Prices outside the bounds of their kind, relative to the accelerator's median on-demand price."""
    usual = usual_prices(offers, types)
    faults = ((offer, why_implausible(offer, types[offer.provider, offer.instance_type], usual)) for offer in offers)
    return [f"offer {'/'.join(offer.key)}: {why}" for offer, why in faults if why is not None]
