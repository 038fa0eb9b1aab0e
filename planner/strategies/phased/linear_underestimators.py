"""Affine under-estimators of cost and hours per column: every bound on plans in phases rests on them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Shares are whole multiples of 1/100,000 of the work: finer than any estimate, and a finite set to prove over.
STEPS = 100_000

#: The rows of `LinearUnderestimator.values`: the line of large shares, the line of small shares, and what both share.
_LATE, _EARLY = slice(0, 4), slice(4, 8)
_DATA, _CAPS = 8, 9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinearUnderestimator:
    """One element per column, with the fields of `PhaseColumns`.

    Both lines of a column lie below its cost and hours, so every bound holds with either of them. All figures are rows of one
    array (`values`; whole numbers in `whole`), so that taking some columns is one operation.
    """

    values: Floats
    whole: Ints
    deadline_hours: float

    @classmethod
    def of(
        cls,
        late: tuple[Floats, Floats, Floats, Floats],
        early: tuple[Floats, Floats, Floats, Floats],
        *,
        data_usd: Floats,
        caps: Floats,
        migration_class: Ints,
        most_steps: Ints,
        deadline_hours: float,
    ) -> "LinearUnderestimator":
        """Lines by fixed and sloping USD and fixed and sloping hours: first for large shares, then for small ones."""
        values = np.array((*late, *early, data_usd, caps))
        return cls(values=values, whole=np.array((migration_class, most_steps)), deadline_hours=deadline_hours)

    def __len__(self) -> int:
        """How many columns there are."""
        return int(self.values.shape[1])

    def take(self, which: Ints) -> "LinearUnderestimator":
        """The lines of some of the columns."""
        return LinearUnderestimator(
            values=self.values.take(which, axis=1),
            whole=self.whole.take(which, axis=1),
            deadline_hours=self.deadline_hours,
        )

    @property
    def fixed_usd(self) -> Floats:
        """A lower bound on the cost of starting a column, in USD."""
        return np.asarray(self.values[0])

    @property
    def slope_usd(self) -> Floats:
        """A lower bound on the cost of all the work on a column beyond its start, in USD."""
        return np.asarray(self.values[1])

    @property
    def fixed_hours(self) -> Floats:
        """A lower bound on the hours to start a column."""
        return np.asarray(self.values[2])

    @property
    def slope_hours(self) -> Floats:
        """A lower bound on the hours of all the work on a column beyond its start."""
        return np.asarray(self.values[3])

    @property
    def data_usd(self) -> Floats:
        """Egress of the data to the region of a column, in USD."""
        return np.asarray(self.values[_DATA])

    @property
    def caps(self) -> Floats:
        """The largest share of the work that price kind and windows leave room for."""
        return np.asarray(self.values[_CAPS])

    @property
    def migration_class(self) -> Ints:
        """Software stack and precision."""
        return np.asarray(self.whole[0])

    @property
    def most_steps(self) -> Ints:
        """The largest share that the deadline leaves room for too, in steps."""
        return np.asarray(self.whole[1])

    @property
    def bent(self) -> bool:
        """Whether the two lines of any column differ."""
        return bool((self.values[_LATE] != self.values[_EARLY]).any())

    @property
    def early(self) -> "LinearUnderestimator":
        """The same columns with the lines that are tighter for small shares."""
        values = self.values.copy()
        values[_LATE] = values[_EARLY]
        return LinearUnderestimator(values=values, whole=self.whole, deadline_hours=self.deadline_hours)
