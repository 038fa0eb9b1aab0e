"""How long a job's machines take until the first step: `data/setup_times.csv`.

Boot depends on the provider and on the kind of machine; the pull of the image, the start of the program and the wait for the
slowest node do not. Rows say whether they are measured, reported by somebody, or an assumption.
"""

from dataclasses import dataclass
from functools import cache

from gpuplan.catalog.model.data_tables import data_table

TABLE = "setup_times.csv"
#: Kinds of machine with rows of their own, which hold for every provider.
OWNED, CAPACITY_BLOCK, TPU_SLICE = "owned", "capacity_block", "tpu_slice"
#: Parts of the set-up in their order in time.
BOOT, IMAGE, START, SLOWEST = "boot", "image", "start", "slowest"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupTime:
    """One part: typical minutes, and a low and a high value that most machines keep to.

    `basis` is measured, reported (by somebody, without their data), assumption, or definition.
    """

    minutes: float
    low: float
    high: float
    basis: str
    source: str


@cache
def setup_times() -> dict[tuple[str, str, str], SetupTime]:
    """Every row by (part, provider, kind of machine); an empty name holds where no row of that name does."""
    return {
        (row["part"], row["provider"], row["machine"]): SetupTime(
            minutes=float(row["value"]),
            low=float(row["low"]),
            high=float(row["high"]),
            basis=row["basis"],
            source=row["source"],
        )
        for row in data_table(TABLE)
    }
