"""The straight lines that lie below cost and time of columns: all that bounds on plans in phases rest on."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_BY_COLUMN = ("kin", "fixed_usd", "slope_usd", "fixed_hours", "slope_hours", "data_usd", "caps", "most_steps")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Straight:
    """One element per column, the fields as in `planner.phases.columns.PhaseColumns`."""

    kin: Ints
    fixed_usd: Floats
    slope_usd: Floats
    fixed_hours: Floats
    slope_hours: Floats
    data_usd: Floats
    caps: Floats
    most_steps: Ints
    deadline_hours: float

    def __len__(self) -> int:
        """How many columns there are."""
        return len(self.kin)

    def take(self, which: Ints | NDArray[np.bool_]) -> "Straight":
        """The lines of some of the columns."""
        return replace(self, **{name: getattr(self, name)[which] for name in _BY_COLUMN})
