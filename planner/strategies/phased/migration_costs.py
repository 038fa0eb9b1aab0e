"""Cost and time of a move in the middle of a run: egress of the checkpoint and of the data, and transfer hours.

Within a region the next machines read the checkpoint where it lies, as after any restart. To another region it is sent
at `move_gbs`, with no machine waiting for it, and the origin charges its egress. The data come once from where they lie,
as for a run that starts in that region.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.egress_rates import EgressRate, egress_tiers
from gpuplan.planner.strategies.phased.phase_columns import PhaseColumns

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Moves:
    """Moves between columns: `at[k]` is the region of column k, `usd[a, b]` the egress of the checkpoint from a to b."""

    at: Ints
    usd: Floats
    far_hours: float

    def near(self, before: Ints, after: Ints) -> NDArray[np.bool_]:
        """Whether two columns are in the same region."""
        return np.asarray(self.at[before] == self.at[after])

    def hours(self, before: Ints, after: Ints) -> Floats:
        """Hours that the transfer of the checkpoint takes."""
        return np.where(self.near(before, after), 0.0, self.far_hours)

    def egress_usd(self, before: Ints, after: Ints) -> Floats:
        """Egress of the checkpoint in USD."""
        return np.asarray(self.usd[self.at[before], self.at[after]])


def moves(columns: PhaseColumns, origins: Ints | None = None) -> Moves:
    """The moves between these columns; with `origins`, only from these columns, and nan from all others."""
    gb, place = columns.checkpoint_gb, columns.place
    occurring = np.flatnonzero(np.bincount(place))
    number = np.zeros(len(columns.places), np.int64)
    number[occurring] = np.arange(len(occurring))
    at, usd = number[place], np.full((len(occurring), len(occurring)), np.nan)
    for origin in range(len(occurring)) if origins is None else np.flatnonzero(np.bincount(at[origins])).tolist():
        rates = _rates_from(columns.places, int(occurring[origin]))
        usd[origin] = np.array([rate.egress_usd(gb) for rate in rates.distinct])[rates.to[occurring]]
    return Moves(at=at, usd=usd, far_hours=gb / columns.settings.move_gbs / 3600.0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Rates:
    """The `distinct` rates out of a place, and the index of the rate that applies `to` each place."""

    distinct: tuple[EgressRate, ...]
    to: Ints


@lru_cache(maxsize=1024)
def _rates_from(places: tuple[tuple[str, str], ...], origin: int) -> _Rates:
    """The rates from one of these places to each."""
    rates = [egress_tiers(*places[origin], *place) for place in places]
    # Rates of the same tiers cost the same, whatever their description.
    distinct = {rate.tiers: rate for rate in rates}
    number = {tiers: i for i, tiers in enumerate(distinct)}
    return _Rates(distinct=tuple(distinct.values()), to=np.array([number[rate.tiers] for rate in rates], np.int64))
