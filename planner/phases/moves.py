"""What it takes to go from one place to another in the middle of a run: egress of the checkpoint and of the data, and time.

Within a region the checkpoint lies where the next machines read it, as after any restart. To another region it is sent
at `move_gbs`, with no machine waiting for it, and the origin charges its egress; the data are brought from where they
lie, once, as they would be for a run that starts there.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from catalog.egress import egress_tiers
from planner.phases.columns import PhaseColumns

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Moves:
    """Moves between columns: `at[k]` is the place of column k, `usd[a, b]` the checkpoint's way from place a to b."""

    at: Ints
    usd: Floats
    far_hours: float

    def near(self, before: Ints, after: Ints) -> NDArray[np.bool_]:
        """Whether two columns stand in the same region."""
        return np.asarray(self.at[before] == self.at[after])

    def hours(self, before: Ints, after: Ints) -> Floats:
        """Hours that the checkpoint is on its way."""
        return np.where(self.near(before, after), 0.0, self.far_hours)

    def egress_usd(self, before: Ints, after: Ints) -> Floats:
        """What the checkpoint's way costs."""
        return np.asarray(self.usd[self.at[before], self.at[after]])


def moves(columns: PhaseColumns, origins: Ints | None = None) -> Moves:
    """The moves between these columns; with `origins` from these of them only, the ways from others being nan."""
    gb = columns.checkpoint_gb
    here, at = np.unique(columns.place, return_inverse=True)
    at = at.reshape(-1).astype(np.int64)
    names = tuple(columns.places[place] for place in here.tolist())
    usd = np.full((len(here), len(here)), np.nan)
    for origin in range(len(here)) if origins is None else np.unique(at[origins]).tolist():
        usd[origin] = _from(names[origin], names, gb)
    return Moves(at=at, usd=usd, far_hours=gb / columns.settings.move_gbs / 3600.0)


#: Jobs of one model, wherever they may run, ask about the same places; an entry is a KB or two.
@lru_cache(maxsize=4096)
def _from(origin: tuple[str, str], names: tuple[tuple[str, str], ...], gb: float) -> Floats:
    """What the checkpoint's way costs from a place to each of these."""
    rates = [egress_tiers(*origin, *each) for each in names]
    # Few distinct ones, each the same object wherever it stands.
    usd = {id(rate): rate.egress_usd(gb) for rate in {id(each): each for each in rates}.values()}
    return np.array([usd[id(rate)] for rate in rates])
