"""The straight lines that lie below cost and time of columns: all that bounds on plans in phases rest on."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: What is told of either of the two lines of a column.
_OF_A_LINE = ("fixed_usd", "slope_usd", "fixed_hours", "slope_hours")
_BY_COLUMN = (*_OF_A_LINE, *(f"early_{name}" for name in _OF_A_LINE), "kin", "data_usd", "caps", "most_steps")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Straight:
    """One element per column, the fields as in `planner.phases.columns.PhaseColumns`.

    Either of the two lines of a column lies below its cost and time, so that every bound holds with any of them.
    """

    kin: Ints
    fixed_usd: Floats
    slope_usd: Floats
    fixed_hours: Floats
    slope_hours: Floats
    early_fixed_usd: Floats
    early_slope_usd: Floats
    early_fixed_hours: Floats
    early_slope_hours: Floats
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

    @property
    def bent(self) -> bool:
        """Whether the two lines of any column differ."""
        return bool(
            (self.fixed_hours != self.early_fixed_hours).any() or (self.fixed_usd != self.early_fixed_usd).any()
        )

    @property
    def early(self) -> "Straight":
        """The same columns with the lines that are the closer ones where shares are small."""
        return replace(self, **{name: getattr(self, f"early_{name}") for name in _OF_A_LINE})
