"""Assemble the catalogue from all facts: listed, modelled and composed offers, machines, and rejected rows.

Checks of a catalogue: duplicates, unknown names, differing counts, implausible prices.

AWS spot prices without a listed price, modelled from the published saving over on-demand.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from gpuplan.catalog.model.data_tables import data_table
from gpuplan.catalog.model.offer import InstanceType, Offer
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.catalog.model.price_plausibility import usual_prices, why_implausible
from gpuplan.catalog.model.spot_discount import SPOT_PRICE_IS_MODELLED, doubt_of_saving, spot_usd_micros
from tools.catalogue_build.fact_tables import (
    LEFT_OUT,
    QUARANTINED,
    Harvest,
    Row,
    SetAside,
    fact_table,
    mapping_table,
    observed,
)
from tools.catalogue_build.gcp_composition import components, composed_machines
from tools.catalogue_build.listed_prices import listed_prices, tpu_slices
from tools.catalogue_build.neocloud_prices import neocloud_prices
from tools.catalogue_build.side_tables import side_tables, with_interruptions

PROVIDER = "aws"


def spot_from_savings(savings: Iterable[Row], listed: Sequence[Offer], left_out: Mapping[str, str]) -> Harvest:
    """One spot offer per saving above zero, at on-demand x (1 - saving), unless the type has listed spot prices.

    The date is the older of the on-demand price and the saving. Rejected are rows without an on-demand price in the region,
    with a saving at or below zero or at the floor, and those of omitted hardware.
    """
    on_demand = {
        (offer.region, offer.instance_type): offer
        for offer in listed
        if offer.provider == PROVIDER and offer.price_kind == "on_demand" and not offer.zone
    }
    has_spot = {offer.instance_type for offer in listed if offer.provider == PROVIDER and offer.price_kind == "spot"}
    harvest = Harvest()
    for row in savings:
        harvest.counts["savings read"] += 1
        base = on_demand.get((row["region"], row["instance_type"]))
        if row["instance_type"] in has_spot:
            harvest.counts["savings not needed: the type has listed spot prices"] += 1
            continue
        reason = _why_not(row, base, left_out)
        if base is None or reason:
            fate = QUARANTINED if reason == _doubt(row) else LEFT_OUT
            harvest.counts[f"savings {fate}: {reason}"] += 1
            harvest.set_aside.append(_set_aside(row, fate, reason))
        else:
            harvest.counts["spot prices modelled from a saving"] += 1
            harvest.offers.append(_modelled(row, base))
    return harvest


def _why_not(row: Row, base: Offer | None, left_out: Mapping[str, str]) -> str:
    if row["instance_type"] in left_out:
        return left_out[row["instance_type"]]
    if doubt := _doubt(row):
        return doubt
    return "" if base else "no on-demand price in this region"


def _doubt(row: Row) -> str:
    return doubt_of_saving(int(row["saving_percent"]))


def _modelled(row: Row, base: Offer) -> Offer:
    observed_at, _ = observed(row["as_of"])
    return Offer(
        provider=PROVIDER,
        region=row["region"],
        instance_type=row["instance_type"],
        price_kind="spot",
        usd_micros_per_hour=spot_usd_micros(base.usd_micros_per_hour, int(row["saving_percent"])),
        observed_at=min(base.observed_at, observed_at),
        observed_approximately=True,
        modelled=SPOT_PRICE_IS_MODELLED,
        source=f"{row['source']} ({row['saving_percent']} %); on-demand: {base.source}",
    )


def _set_aside(row: Row, fate: str, reason: str) -> SetAside:
    return SetAside(
        provider=PROVIDER,
        region=row["region"],
        zone="",
        instance_type=row["instance_type"],
        price_kind="spot",
        usd_per_hour="",
        as_of=row["as_of"],
        source=f"{row['source']} ({row['saving_percent']} %)",
        fate=fate,
        reason=reason,
    )


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """The result of the build. It may be written only if `problems` is empty."""

    instance_types: list[InstanceType]
    offers: list[Offer]
    side_tables: dict[str, list[Row]]
    set_aside: list[SetAside]
    counts: Counter[str]
    problems: list[str]


def catalogue_of(
    facts: Path,
    *,
    hardware: Sequence[InstanceType],
    left_out: Mapping[str, str],
    accelerators: Collection[str],
) -> Catalogue:
    """Build from the tables under `facts`, the known hardware, and the accelerator names.

    `left_out` maps an instance type, or an accelerator as the price table spells it, to the reason for its omission. Raises
    `OSError` if a table is missing, `KeyError` or `ValueError` for a word outside all mapping tables.
    """
    tables = {
        name: fact_table(name, facts)
        for name in (
            "listed_prices",
            "gcp_unit_prices",
            "aws_spot_savings",
            "storage_prices",
            "neocloud_prices",
        )
    }
    harvest, tpu_rows = listed_prices(tables["listed_prices"], left_out)
    listed = list(harvest.offers)
    harvest.add(spot_from_savings(tables["aws_spot_savings"], listed, left_out))
    parts = components(tables["gcp_unit_prices"], tables["storage_prices"])
    harvest.add(composed_machines(parts, listed))
    harvest.add(tpu_slices(tpu_rows))
    harvest.add(neocloud_prices(tables["neocloud_prices"]))
    offers = with_interruptions(harvest.offers, tables["aws_spot_savings"])
    types = _with_composed(hardware, harvest.instance_types)
    return Catalogue(
        instance_types=types,
        offers=offers,
        side_tables=side_tables(facts),
        set_aside=harvest.set_aside,
        counts=harvest.counts + _properties(offers),
        problems=harvest.problems + _problems(types, offers, tables["listed_prices"], accelerators),
    )


def _with_composed(hardware: Sequence[InstanceType], composed: Sequence[InstanceType]) -> list[InstanceType]:
    """The hardware table takes precedence for a machine with composed prices."""
    known = {(instance_type.provider, instance_type.name) for instance_type in hardware}
    return [
        *hardware,
        *(instance_type for instance_type in composed if (instance_type.provider, instance_type.name) not in known),
    ]


def _problems(
    types: Sequence[InstanceType], offers: Sequence[Offer], listed: Sequence[Row], accelerators: Collection[str]
) -> list[str]:
    places = {(row["provider"], row["region"]) for row in mapping_table("places")}
    per_slice = {row["priced_from"] for row in data_table("tpu_slices.csv")}
    per_machine = [row for row in listed if row["instance_type"] not in per_slice]
    return problems(types, offers, accelerators=accelerators, places=places) + differing_counts(per_machine, types)


def _properties(offers: Sequence[Offer]) -> Counter[str]:
    return Counter(
        {
            "offers written": len(offers),
            "offers with a modelled spot price": sum("spot_price" in offer.modelled for offer in offers),
            "offers with the default interruption rate": sum("interruption_rate" in offer.modelled for offer in offers),
            "offers that are partial": sum(bool(offer.partial) for offer in offers),
            "offers whose availability is unverified": sum(not offer.available for offer in offers),
            "offers dated approximately": sum(offer.observed_approximately for offer in offers),
        }
    )
