"""Price kinds: `data/price_kinds.csv`, one row per kind.

Code reads a row's properties (interruptible, term, upfront share, billing step, owned) and never compares names.
"""

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceKind:
    """One price kind.

    `term_hours` is 0 without a commitment; `upfront_share` is the part of the term paid at the start;
    `billing_step_seconds` and `billing_minimum_seconds` define how use is rounded up; `in_default` kinds are considered if
    a job names none. A kind without a stated term has contracts of unknown length: its offers are listed only.
    """

    name: str
    interruptible: bool
    term_hours: int
    upfront_share: float
    convertible: bool
    owned: bool
    in_default: bool
    billing_step_seconds: int
    billing_minimum_seconds: int
    max_run_hours: float | None
    description: str
    source: str
    has_stated_term: bool

    @property
    def is_plain(self) -> bool:
        """Pay as you go: no term, no booking, no interruption, not owned."""
        return not (self.term_hours or self.interruptible or self.max_run_hours or self.owned)


@cache
def price_kinds() -> dict[str, PriceKind]:
    """Every price kind by name, in the order of the table."""
    with (files("gpuplan.catalog") / "data" / "price_kinds.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {row["name"]: _price_kind(row) for row in rows}


def _price_kind(row: dict[str, str]) -> PriceKind:
    return PriceKind(
        name=row["name"],
        interruptible=row["interruptible"] == "yes",
        term_hours=int(row["term_hours"]),
        upfront_share=float(row["upfront_share"]),
        convertible=row["convertible"] == "yes",
        owned=row["owned"] == "yes",
        in_default=row["in_default"] == "yes",
        billing_step_seconds=int(row["billing_step_seconds"]),
        billing_minimum_seconds=int(row["billing_minimum_seconds"]),
        max_run_hours=float(row["max_run_hours"]) if row["max_run_hours"] else None,
        description=row["description"],
        source=row["source"],
        has_stated_term=row["term_is_stated"] == "yes",
    )
