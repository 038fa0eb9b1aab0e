"""Pairs of an earlier and a later spot price of one machine in one place: read for the fit, and imported as facts."""

import csv
import io
import lzma
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FACTS = Path("catalog/data/facts/spot_price_pairs.csv.xz")
COLUMNS = (
    "provider",
    "region",
    "zone",
    "instance_type",
    "earlier_as_of",
    "later_as_of",
    "days",
    "earlier_usd_per_hour",
    "later_usd_per_hour",
    "on_demand_usd_per_hour",
    "at_on_demand",
    "source",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PricePair:
    """Two prices of one place, `days` apart, in USD per hour; `on_demand_usd` is None where it is not known.

    `at_on_demand` marks pairs of which a price equals the on-demand price.
    """

    provider: str
    region: str
    instance_type: str
    days: float
    earlier_usd: float
    later_usd: float
    on_demand_usd: float | None
    at_on_demand: bool

    @property
    def move(self) -> float:
        """ln(later / earlier)."""
        return math.log(self.later_usd / self.earlier_usd)

    @property
    def log_share(self) -> float | None:
        """The logarithm of the earlier price as a share of on-demand."""
        return None if self.on_demand_usd is None else math.log(self.earlier_usd / self.on_demand_usd)


def price_pairs(path: Path = FACTS) -> tuple[PricePair, ...]:
    """The pairs in the facts of the repository."""
    text = lzma.decompress(path.read_bytes()).decode("utf-8")
    return tuple(
        PricePair(
            provider=row["provider"],
            region=row["region"],
            instance_type=row["instance_type"],
            days=float(row["days"]),
            earlier_usd=float(row["earlier_usd_per_hour"]),
            later_usd=float(row["later_usd_per_hour"]),
            on_demand_usd=float(row["on_demand_usd_per_hour"]) if row["on_demand_usd_per_hour"] else None,
            at_on_demand=row["at_on_demand"] == "yes",
        )
        for row in csv.DictReader(io.StringIO(text))
    )


def import_pairs(folder: Path, path: Path = FACTS) -> int:
    """Write the pairs of collected price tables (`history/spot_pairs.csv`) to the facts; returns their number."""
    listed = {
        (row["provider"], row["region"], row["instance_type"]): row["usd_per_hour"]
        for row in _rows(folder / "list_prices.csv")
        if row["price_kind"] == "on_demand"
    }
    listed |= {
        ("gcp", row["region"], row["component"]): row["usd"]
        for row in _rows(folder / "gcp_components.csv")
        if row["price_kind"] == "on_demand"
    }
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    count = 0
    for row in _rows(folder / "history" / "spot_pairs.csv"):
        writer.writerow(
            {
                "provider": row["provider"],
                "region": row["region"],
                "zone": row["zone"],
                "instance_type": row["instance_type"],
                "earlier_as_of": row["earlier_date"],
                "later_as_of": row["later_date"],
                "days": row["days"],
                "earlier_usd_per_hour": row["earlier_usd"],
                "later_usd_per_hour": row["later_usd"],
                "on_demand_usd_per_hour": listed.get((row["provider"], row["region"], row["instance_type"]), ""),
                "at_on_demand": "yes" if row["flag"] else "no",
                "source": f"skypilot-catalog {row['earlier_read_from']} and v9@2c3d7ea7",
            }
        )
        count += 1
    path.write_bytes(lzma.compress(out.getvalue().encode("utf-8"), preset=9))
    return count


def _rows(path: Path) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)
