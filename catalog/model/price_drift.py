"""How far a price moves with its age: `data/price_drift.csv`, one row per provider, price kind and family.

`python -m tools.fitting.spot_drift` fits and writes the rows of interruptible kinds; those of on-demand prices are the
measured steps of list prices. `gpuplan.planner.cost.planned_prices` states the rule that reads them.
"""

from dataclasses import dataclass
from functools import cache

from gpuplan.catalog.model.data_tables import data_table

#: Name of the table in `catalog/data`.
TABLE = "price_drift.csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceDrift:
    """The drift of the prices of one family.

    `family` is the beginning of an instance type's name; empty matches every type of the provider, and an empty
    `provider` every provider. `interruptible` tells which price kinds the row is for. `typical_share` is the usual
    price as a share of the on-demand price, to which a price returns with the time constant `return_days`; both are
    None where prices show no return. `quiet_zone` is the distance from the typical share, as a logarithm, within which
    a price stays, and `longest_way` the most of what lies beyond that a price is expected to go. `drift` is the mean of ln(later / earlier) and `low` and `high` its 10 % and 90 % quantiles around
    the expected price, all after `reference_days`. A price younger than `from_days` counts as fresh. `pairs` is the
    number of price pairs behind the row.
    """

    provider: str
    family: str
    interruptible: bool
    typical_share: float | None
    return_days: float | None
    quiet_zone: float
    longest_way: float
    drift: float
    low: float
    high: float
    reference_days: float
    from_days: float
    pairs: int
    source: str
    as_of: str

    def __post_init__(self) -> None:
        """Reject a row without source, and one that no price can follow."""
        row = f"price drift of {self.provider or 'any provider'} {self.family or 'any family'}"
        if not (self.source and self.as_of):
            raise ValueError(f"{row}: source and date are needed")
        if (self.typical_share is None) != (self.return_days is None):
            raise ValueError(f"{row}: typical_share and return_days are given together or not at all")
        if not self.low <= 0 <= self.high or self.reference_days <= 0 or self.quiet_zone < 0:
            raise ValueError(f"{row}: the band contains 0, reference_days is above 0, quiet_zone at least 0")


@cache
def price_drifts() -> tuple[PriceDrift, ...]:
    """Every row, in the order of the table."""
    return tuple(
        PriceDrift(
            provider=row["provider"],
            family=row["family"],
            interruptible=row["interruptible"] == "yes",
            typical_share=float(row["typical_share"]) if row["typical_share"] else None,
            return_days=float(row["return_days"]) if row["return_days"] else None,
            quiet_zone=float(row["quiet_zone"]),
            longest_way=float(row["longest_way"]),
            drift=float(row["drift"]),
            low=float(row["low"]),
            high=float(row["high"]),
            reference_days=float(row["reference_days"]),
            from_days=float(row["from_days"]),
            pairs=int(row["pairs"]),
            source=row["source"],
            as_of=row["as_of"],
        )
        for row in data_table(TABLE)
    )
