"""`python -m tools.catalogue_build.import_facts FOLDER`: copy collected price tables into the repository's facts.

The build reads only `catalog/data/facts/`. Each fact has our own column names, a source and a date. The same tables always
give the same bytes. Row order is kept: of equally new rows the build takes the first or the last.
"""

import argparse
import csv
import lzma
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.catalogue_build.catalogue_files import XZ_FILTERS, csv_bytes
from tools.catalogue_build.fact_tables import FACTS, UNDATED, Row, mapping_table, read_table

#: The table of savings has no date column; its date is the month of the advisor file behind it.
ADVISOR_AS_OF = "2025-06"
ADVISOR_SOURCE = "AWS Spot Instance Advisor, saving over on-demand, June 2025"


@dataclass(frozen=True, slots=True, kw_only=True)
class FactTable:
    """One fact table: the collected file, our columns (`ours=theirs` where the collected name is another), added ones."""

    given: str
    columns: str
    added: Callable[[Row], Row] = lambda _: {}

    @property
    def theirs(self) -> dict[str, str]:
        """The collected name of each of our columns."""
        return {ours: theirs or ours for ours, _, theirs in (word.partition("=") for word in self.columns.split())}


def _component_source(row: Row) -> Row:
    """The table of unit prices names no source; a row's date identifies its price list."""
    for item in mapping_table("component_sources"):
        if item["as_of"] == row["as_of"]:
            return {"source": item["source"]}
    message = f"no source is known for unit prices dated {row['as_of']!r}; add it to component_sources.csv"
    raise ValueError(message)


TABLES = {
    "listed_prices": FactTable(
        given="prices/list_prices",
        columns="provider region zone instance_type listed_accelerator=accelerator accelerator_count "
        "listed_price_kind=price_kind usd_per_hour note as_of source=read_from",
    ),
    "gcp_unit_prices": FactTable(
        given="prices/gcp_components",
        columns="region component price_kind usd_per_unit=usd unit as_of",
        added=_component_source,
    ),
    "aws_spot_savings": FactTable(
        given="prices/aws_spot_interruption",
        columns="region instance_type interruption_band=interruption_frequency saving_percent=savings_vs_on_demand_pct",
        added=lambda _: {"as_of": ADVISOR_AS_OF, "source": ADVISOR_SOURCE},
    ),
    "egress_prices": FactTable(
        given="prices/egress_prices",
        columns="provider region destination volume_tier=tier usd_per_gb as_of source",
    ),
    "storage_prices": FactTable(
        given="prices/storage_prices",
        columns="provider region storage_kind=kind sku price_kind usd_per_unit=usd unit as_of source",
    ),
    "neocloud_prices": FactTable(
        given="neoclouds/prices",
        columns="provider region zone listed_instance_type=instance_type accelerator accelerator_count "
        "vcpus ram_gib=memory_gib local_disk_gb network_gbps=internode_gbps intranode_link "
        "listed_price_kind=price_kind usd_per_hour currency amount billing_step_seconds note "
        "as_of=observed_at source",
    ),
    "carbon_and_pue": FactTable(
        given="prices/carbon_pue",
        columns="provider region metric value as_of source",
    ),
    # A second source for accelerator memory, which tests compare with catalog/data/accelerators.csv.
    "accelerator_memory": FactTable(
        given="accelerators",
        columns="name memory_gb memory_gbs=mem_bw_gbs source",
        added=lambda _: {"as_of": UNDATED},
    ),
}


def imported(name: str, folder: Path) -> list[Row]:
    """The rows of the fact table `name`, read from the collected tables under `folder`.

    Raises `OSError` if the collected table cannot be read, `ValueError` for a missing column, or for a row without a source
    or date.
    """
    table = TABLES[name]
    given = read_table(folder / f"{table.given}.csv")
    if not given:
        raise ValueError(f"{table.given}.csv has no rows")
    if missing := [column for column in table.theirs.values() if column not in given[0]]:
        raise ValueError(f"{table.given}.csv: column {', '.join(missing)} is missing; it has {', '.join(given[0])}")
    return [_fact(table, number, row) for number, row in enumerate(given, start=2)]


def _fact(table: FactTable, number: int, row: Row) -> Row:
    where = f"{table.given}.csv line {number}"
    try:
        fact = {ours: row[theirs] for ours, theirs in table.theirs.items()} | table.added(row)
    except ValueError as problem:
        raise ValueError(f"{where}: {problem}") from problem
    for column in ("as_of", "source"):
        if not fact[column]:
            raise ValueError(f"{where}: a fact needs its {column}")
    return fact


def main(arguments: Sequence[str] | None = None) -> int:
    """Import all tables or none; returns 1 with one line if a table is unfit, 2 if one is missing."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.catalogue_build.import_facts", description="Import collected price tables as facts."
    )
    parser.add_argument("folder", type=Path, help="folder with prices/ and accelerators.csv")
    parser.add_argument("--out", type=Path, default=FACTS)
    given = parser.parse_args(arguments)
    try:
        tables = {name: imported(name, given.folder) for name in TABLES}
    except OSError as problem:
        print(f"{problem.filename} cannot be read; give the folder that holds prices/", file=sys.stderr)
        return 2
    except (ValueError, csv.Error) as problem:
        print(f"refused: {problem}", file=sys.stderr)
        return 1
    given.out.mkdir(parents=True, exist_ok=True)
    for name, rows in tables.items():
        text = csv_bytes(tuple(rows[0]), [tuple(row.values()) for row in rows])
        content = lzma.compress(text, filters=XZ_FILTERS)
        (given.out / f"{name}.csv.xz").write_bytes(content)
        print(f"wrote {name}.csv.xz ({len(rows):,} rows, {len(content):,} bytes)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
