"""Runs whose slack grows, since the standby is slower than spot: followed from block to block of segments.

Such runs may exceed their slack and be within it again later, so calls must be counted in order. The distribution of the
losses is convolved with that of a block, and the part beyond the slack is removed. The slack is taken at the block's
middle, since losses occur anywhere in it.
"""

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.strategies.standby.loss_lattice import PERIOD, POINTS, UNTILT, Powers
from gpuplan.planner.strategies.standby.run_segments import Segments

Floats = NDArray[np.float64]
Complex = NDArray[np.complex128]

#: A probability of still being on spot that counts as zero.
_NOBODY = 1e-13


def followed(runs: Segments, ends: Floats, segment: Complex, lattice: Floats) -> tuple[Floats, Floats]:
    """Follow runs [rows] through blocks with these ends [rows, blocks + 1], each row on a lattice of its own width.

    Returns the probability of being on spot at the end of each block, [rows, blocks + 1], and the masses of the losses of
    runs that pass all blocks, [rows, points].
    """
    counts = np.diff(ends, axis=1)
    last = ends[:, 1:] - 1 - (counts - 1) / 2
    slack, width = runs.slack[:, None] + last * runs.growth[:, None], lattice[:, None]
    within = np.clip(np.floor(slack / width + 1e-6) + 1.0, 0.0, POINTS).astype(np.int64)
    on_spot, losses = np.ones(ends.shape), np.zeros((len(lattice), POINTS))
    for row, (of_one, row_counts) in enumerate(zip(segment, counts.astype(np.int64).tolist(), strict=True)):
        alive, powers = losses[row], Powers(of_one[: POINTS + 1])
        alive[0] = 1.0
        for block, count in enumerate(row_counts):
            before = float(on_spot[row, block])
            if count and before > _NOBODY:
                passed = np.fft.irfft(np.fft.rfft(alive, PERIOD) * powers.of(count), PERIOD)[:POINTS]
                np.maximum(passed, 0.0, out=alive)
                alive[within[row, block] :] = 0.0
                before = min(float(alive @ UNTILT), before)
            on_spot[row, block + 1] = before
        alive *= UNTILT
    return on_spot, losses
