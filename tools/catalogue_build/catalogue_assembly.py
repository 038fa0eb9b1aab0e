"""Assemble the catalogue from all facts: listed, modelled and composed offers, machines, and rejected rows."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpuplan.catalog.model.data_tables import data_table
from gpuplan.catalog.model.offer import InstanceType, Offer
from tools.catalogue_build.catalogue_checks import differing_counts, problems
from tools.catalogue_build.fact_tables import Row, SetAside, fact_table, mapping_table
from tools.catalogue_build.gcp_composition import components, composed_machines
from tools.catalogue_build.listed_prices import listed_prices, tpu_slices
from tools.catalogue_build.modelled_spot_prices import spot_from_savings
from tools.catalogue_build.neocloud_prices import neocloud_prices
from tools.catalogue_build.side_tables import side_tables, with_interruptions


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
