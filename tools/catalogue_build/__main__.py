"""`python -m tools.catalogue_build`: build the embedded catalogue from the price and hardware facts, or reject them."""

import argparse
import lzma
import sys
from collections.abc import Sequence
from pathlib import Path

from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.model.unavailable_machines import left_out
from gpuplan.catalog.snapshots.snapshot import snapshot_of
from tools.catalogue_build.catalogue_assembly import Catalogue, catalogue_of
from tools.catalogue_build.catalogue_files import write_catalogue
from tools.catalogue_build.fact_tables import FACTS
from tools.catalogue_build.hardware import instance_types

REPOSITORY = Path(__file__).resolve().parents[2]


def main(arguments: Sequence[str] | None = None) -> int:
    """Build, print the counts, write; returns 1 with one line per problem if the facts are unfit, 2 if they are missing."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.catalogue_build", description="Build the embedded catalogue."
    )
    parser.add_argument("--facts", type=Path, default=FACTS)
    parser.add_argument("--out", type=Path, default=REPOSITORY / "catalog" / "data")
    given = parser.parse_args(arguments)
    try:
        built = catalogue_of(
            given.facts, hardware=instance_types(), left_out=left_out(), accelerators=accelerators().keys()
        )
    except OSError as problem:
        print(f"--facts: {problem.filename} cannot be read; give the folder of the fact tables", file=sys.stderr)
        return 2
    except (lzma.LZMAError, EOFError) as problem:
        print(f"refused: a fact table is damaged: {problem}", file=sys.stderr)
        return 1
    except KeyError as problem:
        print(f"refused: {problem} is not known to any mapping table", file=sys.stderr)
        return 1
    except ValueError as problem:
        print(f"refused: {problem}", file=sys.stderr)
        return 1
    _print_counts(built)
    if built.problems:
        print("\n".join(built.problems), file=sys.stderr)
        print(f"refused: {len(built.problems)} problems", file=sys.stderr)
        return 1
    snapshot = snapshot_of(built.instance_types, built.offers)
    for path in write_catalogue(given.out, snapshot, built.side_tables, built.set_aside):
        print(f"wrote {path} ({path.stat().st_size:,} bytes)")
    print(f"snapshot {snapshot.id}, observed up to {snapshot.observed_at:%Y-%m-%d}")
    return 0


def _print_counts(built: Catalogue) -> None:
    for name, count in built.counts.items():
        print(f"{count:>7,}  {name}")
    print(f"{len(built.instance_types):>7,}  instance types")
    for name, rows in built.side_tables.items():
        print(f"{len(rows):>7,}  rows of {name}")


if __name__ == "__main__":
    sys.exit(main())
