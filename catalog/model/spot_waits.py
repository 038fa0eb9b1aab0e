"""How long preempted spot machines are away, and how nodes are lost together: `data/spot_waits.csv`.

Means and exponents are fitted to public availability traces of V100 and K80 by `python -m tools.fitting.spot_waits`. The
factors of newer accelerators are assumptions, and say so in their source. Every figure is modelled.
"""

from dataclasses import dataclass
from functools import cache

from gpuplan.catalog.model.capacity_prior import AGE_CLASSES
from gpuplan.catalog.model.data_tables import data_table

TABLE = "spot_waits.csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotWaits:
    """The whole table.

    `mean_hours[i]` is the mean wait per loss of a run that takes whichever of i + 1 zones is up. `typical_share` of it is
    the wait that a plan counts: means rest on a few long outages, which `WAIT_LOG_SPREAD` carries. `class_factor` scales
    waits by the age class of the accelerator. n nodes wait n^`wait_node_exponent` times as long as one, by age class, and are
    hit n^`loss_node_exponent` times as often: 1 if they were lost independently, 0 if all together.
    """

    mean_hours: tuple[float, ...]
    typical_share: float
    class_factor: dict[str, float]
    wait_node_exponent: dict[str, float]
    loss_node_exponent: float

    @property
    def most_zones(self) -> int:
        """The most zones of a row; more count as so many."""
        return len(self.mean_hours)

    def of_one_node(self, age_class: str, zones: int) -> float:
        """The typical wait in hours of one node in so many zones, at least 1."""
        mean = self.mean_hours[min(zones, self.most_zones) - 1]
        return mean * self.typical_share * self.class_factor[age_class]


@cache
def spot_waits() -> SpotWaits:
    """The table, read once."""
    rows = {(row["name"], row["age_class"], row["zones"]): float(row["value"]) for row in data_table(TABLE)}
    zones = sorted(int(number) for name, _, number in rows if name == "mean_wait")
    return SpotWaits(
        mean_hours=tuple(rows["mean_wait", "old", str(number)] for number in zones),
        typical_share=rows["typical_share", "", ""],
        class_factor={age: rows["class_factor", age, ""] for age in AGE_CLASSES},
        wait_node_exponent={age: rows["wait_node_exponent", age, ""] for age in AGE_CLASSES},
        loss_node_exponent=rows["loss_node_exponent", "", ""],
    )
