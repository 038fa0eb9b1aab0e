"""All facts to one catalogue: listed, modelled and composed offers, their machines, and what was set aside."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from catalog.build.account import SetAside
from catalog.build.fact_tables import Row, mapping_table, read_table
from catalog.build.gcp_composition import components, composed_machines
from catalog.build.interruptions import with_interruptions
from catalog.build.plausible import differing_counts, problems
from catalog.build.prices import listed_prices
from catalog.build.side_tables import side_tables
from catalog.build.spot_from_saving import spot_from_savings
from catalog.build.tpu import tpu_slices
from catalog.data_tables import data_table
from catalog.offer import InstanceType, Offer


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """What the build makes of the facts. It may be written only if `problems` is empty."""

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

    `left_out` maps an instance type, or an accelerator as the price table spells it, to the reason
    why it is not in the catalogue. Raises `OSError` if a table is missing, `KeyError` or
    `ValueError` for a word that no mapping table knows.
    """
    tables = {
        name: read_table(facts / "prices" / f"{name}.csv")
        for name in ("list_prices", "gcp_components", "aws_spot_interruption", "storage_prices")
    }
    harvest, tpu_rows = listed_prices(tables["list_prices"], left_out)
    listed = list(harvest.offers)
    harvest.add(spot_from_savings(tables["aws_spot_interruption"], listed, left_out))
    parts = components(tables["gcp_components"], tables["storage_prices"])
    harvest.add(composed_machines(parts, listed))
    harvest.add(tpu_slices(tpu_rows))
    offers = with_interruptions(harvest.offers, tables["aws_spot_interruption"])
    types = _with_composed(hardware, harvest.instance_types)
    return Catalogue(
        instance_types=types,
        offers=offers,
        side_tables=side_tables(facts),
        set_aside=harvest.set_aside,
        counts=harvest.counts + _properties(offers),
        problems=harvest.problems + _problems(types, offers, tables["list_prices"], accelerators),
    )


def _with_composed(hardware: Sequence[InstanceType], composed: Sequence[InstanceType]) -> list[InstanceType]:
    """The hardware table's word wins where it knows a machine that prices were composed for."""
    known = {(each.provider, each.name) for each in hardware}
    return [*hardware, *(each for each in composed if (each.provider, each.name) not in known)]


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
