"""The straight lines that lie below cost and time of columns: all that bounds on plans in phases rest on."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Shares are whole numbers of this part of the work: finer than any estimate, and a finite set to prove over.
STEPS = 100_000

#: The rows of `Straight.values`: the line of large shares, that of small ones, and what either is told with.
_LATE, _EARLY = slice(0, 4), slice(4, 8)
_DATA, _CAPS = 8, 9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Straight:
    """One element per column, told as in `planner.phases.columns.PhaseColumns`.

    Either of the two lines of a column lies below its cost and time, so that every bound holds with any of them. All
    figures are the rows of one array (`values`; whole numbers in `whole`), so that some columns are taken at once.
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
        kin: Ints,
        most_steps: Ints,
        deadline_hours: float,
    ) -> "Straight":
        """Lines by fixed and sloping USD and fixed and sloping hours: those of large shares, and those of small ones."""
        values = np.array((*late, *early, data_usd, caps))
        return cls(values=values, whole=np.array((kin, most_steps)), deadline_hours=deadline_hours)

    def __len__(self) -> int:
        """How many columns there are."""
        return int(self.values.shape[1])

    def take(self, which: Ints) -> "Straight":
        """The lines of some of the columns."""
        return Straight(
            values=self.values.take(which, axis=1),
            whole=self.whole.take(which, axis=1),
            deadline_hours=self.deadline_hours,
        )

    @property
    def fixed_usd(self) -> Floats:
        """What a column costs at least to start, in USD."""
        return np.asarray(self.values[0])

    @property
    def slope_usd(self) -> Floats:
        """What all the work costs on a column beside that, at least."""
        return np.asarray(self.values[1])

    @property
    def fixed_hours(self) -> Floats:
        """The hours that a column takes at least to start."""
        return np.asarray(self.values[2])

    @property
    def slope_hours(self) -> Floats:
        """The hours of all the work on a column beside those, at least."""
        return np.asarray(self.values[3])

    @property
    def data_usd(self) -> Floats:
        """Bringing the data to the place of a column."""
        return np.asarray(self.values[_DATA])

    @property
    def caps(self) -> Floats:
        """The largest share of the work that price kind and windows leave room for."""
        return np.asarray(self.values[_CAPS])

    @property
    def kin(self) -> Ints:
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
    def early(self) -> "Straight":
        """The same columns with the lines that are the closer ones where shares are small."""
        values = self.values.copy()
        values[_LATE] = values[_EARLY]
        return Straight(values=values, whole=self.whole, deadline_hours=self.deadline_hours)


def joined(parts: list[Straight]) -> Straight:
    """The lines of some columns after those of others, at least one of them, of the same job."""
    values, whole = (np.concatenate(each, axis=1) for each in zip(*((p.values, p.whole) for p in parts), strict=True))
    return Straight(values=values, whole=whole, deadline_hours=parts[0].deadline_hours)


def least_of_few(values: Floats, but: int | None = None) -> Floats:
    """The least along the last axis, all but one element where asked: numpy takes long over axes of two or three."""
    some = [values[..., i] for i in range(values.shape[-1]) if i != but]
    least = some[0]
    for each in some[1:]:
        least = np.minimum(least, each)
    return least
