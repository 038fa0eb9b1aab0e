"""The chance of getting machines when asked for, without a cloud's own answer: `data/capacity_prior.csv`.

Rows of spot are fitted to public availability traces by `python -m tools.fitting.capacity_prior`; rows of on-demand and of
newer accelerators than those of the traces are assumptions, and say so in their source. Every figure is modelled.
"""

from dataclasses import dataclass
from functools import cache

from gpuplan.catalog.model.data_tables import data_table

#: Age classes of accelerators, oldest first.
OLD, CURRENT, NEWEST = AGE_CLASSES = ("old", "current", "newest")
TABLE = "capacity_prior.csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class KindPrior:
    """Chance of one node with one accelerator within the time of a try, and how it falls with size.

    The chance of n nodes with a accelerators each is `chance` x a^-`size_exponent` x n^-`node_exponent`.
    """

    chance: float
    size_exponent: float
    node_exponent: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityPrior:
    """The whole table: priors of spot and on-demand by age class, and figures that all share.

    A try lasts `try_minutes`. `shared_share` is the share of refusals that hits all machines of a family in a region at
    once. `logit_spread` is the standard deviation of the log-odds of a chance between places and times. A choice is
    certain from `certain_chance` on.
    """

    spot: dict[str, KindPrior]
    on_demand: dict[str, KindPrior]
    shared_share: float
    logit_spread: float
    try_minutes: float
    certain_chance: float
    newest_years: int
    old_years: int

    def age_class(self, *, introduced: int, year: int) -> str:
        """The age class in `year` of an accelerator introduced in the year `introduced`."""
        age = year - introduced
        return NEWEST if age <= self.newest_years else OLD if age >= self.old_years else CURRENT


@cache
def capacity_prior() -> CapacityPrior:
    """The table, read once."""
    rows = {(row["name"], row["age_class"]): float(row["value"]) for row in data_table(TABLE)}

    def priors(kind: str) -> dict[str, KindPrior]:
        return {
            age: KindPrior(
                chance=rows[f"{kind}_chance", age],
                size_exponent=rows[f"{kind}_size_exponent", age],
                node_exponent=rows[f"{kind}_node_exponent", age],
            )
            for age in AGE_CLASSES
        }

    return CapacityPrior(
        spot=priors("spot"),
        on_demand=priors("on_demand"),
        shared_share=rows["shared_share", ""],
        logit_spread=rows["logit_spread", ""],
        try_minutes=rows["try_minutes", ""],
        certain_chance=rows["certain_chance", ""],
        newest_years=int(rows["newest_years", ""]),
        old_years=int(rows["old_years", ""]),
    )
