"""`python -m catalog.build`: turn the price and hardware facts into the embedded catalogue, or refuse."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from catalog.accelerators import accelerators
from catalog.build.catalogue import Catalogue, catalogue_of
from catalog.build.hardware import instance_types
from catalog.build.writing import write_catalogue
from catalog.left_out import left_out
from catalog.snapshot import snapshot_of

REPOSITORY = Path(__file__).parents[2]


def main(arguments: Sequence[str] | None = None) -> int:
    """Build, print the counts, write; 1 with one line per problem if the facts are not fit, 2 if they are missing."""
    parser = argparse.ArgumentParser(prog="python -m catalog.build", description="Build the embedded catalogue.")
    parser.add_argument("--facts", type=Path, default=REPOSITORY.parent / "shared" / "data")
    parser.add_argument("--out", type=Path, default=REPOSITORY / "catalog" / "data")
    given = parser.parse_args(arguments)
    try:
        built = catalogue_of(
            given.facts, hardware=instance_types(), left_out=left_out(), accelerators=accelerators().keys()
        )
    except OSError as problem:
        print(f"--facts: {problem.filename} cannot be read; give the folder that holds prices/", file=sys.stderr)
        return 2
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
