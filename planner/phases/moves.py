"""What it takes to go from one place to another in the middle of a run: egress of the checkpoint and of the data, and time.

Within a region the checkpoint lies where the next machines read it, as after any restart. To another region it is sent
at `move_gbs`, with no machine waiting for it, and the origin charges its egress; the data are brought from where they
lie, once, as they would be for a run that starts there.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from catalog.egress import EgressRate, egress_tiers
from planner.kept import MOST_SNAPSHOTS
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
    gb, place = columns.checkpoint_gb, columns.place
    here = np.flatnonzero(np.bincount(place))
    number = np.zeros(len(columns.places), np.int64)
    number[here] = np.arange(len(here))
    at, usd = number[place], np.full((len(here), len(here)), np.nan)
    rates_from = _kept_of(columns.places)
    for origin in range(len(here)) if origins is None else np.flatnonzero(np.bincount(at[origins])).tolist():
        rates = rates_from(int(here[origin]))
        usd[origin] = np.array([rate.egress_usd(gb) for rate in rates.distinct])[rates.to[here]]
    return Moves(at=at, usd=usd, far_hours=gb / columns.settings.move_gbs / 3600.0)


def in_one_place(columns: PhaseColumns) -> Moves:
    """No moves: as if all of these columns stood in one region, where the data of the first phase serve the others too."""
    return Moves(at=np.zeros(len(columns), np.int64), usd=np.zeros((1, 1)), far_hours=0.0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Rates:
    """The few `distinct` rates out of a place, and which of them holds for the way `to` each place."""

    distinct: tuple[EgressRate, ...]
    to: Ints


@lru_cache(maxsize=MOST_SNAPSHOTS)
def _kept_of(places: tuple[tuple[str, str], ...]) -> Callable[[int], _Rates]:
    """What is kept of the places of one snapshot goes with it."""
    return lru_cache(maxsize=256)(partial(_rates_from, places))


def _rates_from(places: tuple[tuple[str, str], ...], origin: int) -> _Rates:
    """The rates from one of these places to each."""
    rates = [egress_tiers(*places[origin], *each) for each in places]
    # Rates of the same tiers cost the same, whatever is said of them.
    distinct = {rate.tiers: rate for rate in rates}
    number = {tiers: i for i, tiers in enumerate(distinct)}
    return _Rates(distinct=tuple(distinct.values()), to=np.array([number[rate.tiers] for rate in rates], np.int64))
