"""Read the tables of the build: collected tables, the repository's facts, and small mapping tables.

When a price was read: an exact day, or the earliest day that a vague date allows.

The outcome of each price row: an offer, a chip price for TPU slices, or a rejection with a reason.
"""

import csv
import io
import lzma
from collections import Counter
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import cache
from importlib.resources import files
from pathlib import Path

from gpuplan.catalog.model.offer import InstanceType, Offer, start_of_day

LEFT_OUT = "left out"
QUARANTINED = "quarantined"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAside:
    """A price row that is not offered: `fate` is left out or quarantined, `reason` says why."""

    provider: str
    region: str
    zone: str
    instance_type: str
    price_kind: str
    usd_per_hour: str
    as_of: str
    source: str
    fate: str
    reason: str


@dataclass(slots=True, kw_only=True)
class Harvest:
    """Offers with their machines, rejected rows, counts by name, and unusable rows."""

    offers: list[Offer] = field(default_factory=list)
    instance_types: list[InstanceType] = field(default_factory=list)
    set_aside: list[SetAside] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def add(self, other: "Harvest") -> None:
        """Add the contents of another harvest."""
        self.offers += other.offers
        self.instance_types += other.instance_types
        self.set_aside += other.set_aside
        self.counts += other.counts
        self.problems += other.problems


Row = dict[str, str]
#: The facts behind the embedded catalogue, in the repository but not in the wheel.
FACTS = Path(__file__).parents[2] / "catalog" / "data" / "facts"


def read_table(path: Path) -> list[Row]:
    """The rows of one CSV file with a heading, as text. Raises `OSError` if it cannot be read."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def fact_table(name: str, facts: Path = FACTS) -> list[Row]:
    """The rows of the fact table `NAME.csv.xz` in `facts`. Raises `OSError` if it cannot be read."""
    with lzma.open(facts / f"{name}.csv.xz", "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def mapping_table(name: str) -> list[Row]:
    """The rows of `catalog/data/facts/NAME.csv`."""
    text = (files("gpuplan.catalog") / "data" / "facts" / f"{name}.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(io.StringIO(text)))


UNDATED = "undated"


def observed(as_of: str, *, read_from: str = "", price_kind: str = "") -> tuple[datetime, bool]:
    """The time at which a price was read, and whether that is only approximate.

    A range gives its first day, a bare year or month its first day, `undated` the day since which
    the table it was read from can have held it (`facts/undated.csv`). Raises `ValueError` for
    anything else.
    """
    if as_of == UNDATED:
        return start_of_day(_earliest(read_from, price_kind)), True
    first = as_of.split("..", maxsplit=1)[0]
    parts = [int(part) for part in first.split("-")]
    day = date(*[*parts, 1, 1][:3])
    return start_of_day(day), first != as_of or len(parts) < 3


def _earliest(read_from: str, price_kind: str) -> date:
    for row in _undated():
        if read_from.startswith(row["read_from_prefix"]) and price_kind == row["price_kind"]:
            return date.fromisoformat(row["earliest"])
    raise ValueError(f"no earliest date is known for {price_kind} prices read from {read_from!r}")


@cache
def _undated() -> list[dict[str, str]]:
    return mapping_table("undated")
