"""Runs under the net whose slack grows, since the standby is slower than spot: followed from block to block of segments.

They may lose more than their slack and be back within it later, so who has called the standby is to be told in order: the
distribution of the losses is convolved with that of a block's, and what lies beyond the slack is taken off. It is taken at
the block's middle, since losses come anywhere in it.
"""

import numpy as np
from numpy.typing import NDArray

from planner.spot.net_lattice import PERIOD, POINTS, UNTILT, Powers
from planner.spot.net_segments import Segments

Floats = NDArray[np.float64]
Complex = NDArray[np.complex128]

#: A chance of still being on spot that is none.
_NOBODY = 1e-13


def followed(runs: Segments, ends: Floats, segment: Complex, lattice: Floats) -> tuple[Floats, Floats]:
    """Of runs [rows] with blocks that end so [rows, blocks + 1], each on a lattice of its own width.

    The chances to be on spot at the end of each block: [rows, blocks + 1], and the masses of the losses of those that pass
    all: [rows, points].
    """
    counts = np.diff(ends, axis=1)
    last = ends[:, 1:] - 1 - (counts - 1) / 2
    slack, width = runs.slack[:, None] + last * runs.growth[:, None], lattice[:, None]
    within = np.clip(np.floor(slack / width + 1e-6) + 1.0, 0.0, POINTS).astype(np.int64)
    on_spot, losses = np.ones(ends.shape), np.zeros((len(lattice), POINTS))
    for row, (of_one, each) in enumerate(zip(segment, counts.astype(np.int64).tolist(), strict=True)):
        alive, powers = losses[row], Powers(of_one[: POINTS + 1])
        alive[0] = 1.0
        for block, count in enumerate(each):
            before = float(on_spot[row, block])
            if count and before > _NOBODY:
                passed = np.fft.irfft(np.fft.rfft(alive, PERIOD) * powers.of(count), PERIOD)[:POINTS]
                np.maximum(passed, 0.0, out=alive)
                alive[within[row, block] :] = 0.0
                before = min(float(alive @ UNTILT), before)
            on_spot[row, block + 1] = before
        alive *= UNTILT
    return on_spot, losses
