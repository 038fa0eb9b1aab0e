"""What it takes to go from one place to another in the middle of a run: egress of the checkpoint and of the data, and time.

Within a region the checkpoint lies where the next machines read it, as after any restart. To another region it is sent
at `move_gbs`, with no machine waiting for it, and the origin charges its egress; the data are brought from where they
lie, once, as they would be for a run that starts there.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from catalog.egress import egress_tiers
from planner.phases.columns import PhaseColumns

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Moves:
    """`usd[i, j]` and `hours[i, j]` of a move from column i to column j: the checkpoint's way alone."""

    usd: Floats
    hours: Floats
    near: NDArray[np.bool_]


def moves(columns: PhaseColumns) -> Moves:
    """The move between every two columns; few of them, since the table is square."""
    gb = columns.checkpoint_gb
    here, at = np.unique(columns.place, return_inverse=True)
    at = at.reshape(-1)
    names = [columns.places[int(place)] for place in here]
    usd = np.array([[egress_tiers(*a, *b).egress_usd(gb) for b in names] for a in names]).reshape(len(names), -1)
    near = np.equal.outer(at, at)
    return Moves(
        usd=usd[np.ix_(at, at)],
        hours=np.where(near, 0.0, gb / columns.settings.move_gbs / 3600.0),
        near=near,
    )
