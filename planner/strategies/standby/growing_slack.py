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
_POINTS = np.arange(POINTS)


def followed(runs: Segments, ends: Floats, segment: Complex, lattice: Floats) -> tuple[Floats, Floats]:
    """Follow runs [rows] through blocks with these ends [rows, blocks + 1], each row on a lattice of its own width.

    Returns the probability of being on spot at the end of each block, [rows, blocks + 1], and the masses of the losses of
    runs that pass all blocks, [rows, points].
    """
    counts = np.diff(ends, axis=1)
    last = ends[:, 1:] - 1 - (counts - 1) / 2
    slack, width = runs.slack[:, None] + last * runs.growth[:, None], lattice[:, None]
    within = np.clip(np.floor(slack / width + 1e-6) + 1.0, 0.0, POINTS).astype(np.int64)
    on_spot, alive = np.ones(ends.shape), np.zeros((len(lattice), PERIOD))
    alive[:, 0] = 1.0
    whole, powers = counts.astype(np.int64).tolist(), [Powers(of_one[: POINTS + 1]) for of_one in segment]
    for block in range(counts.shape[1]):
        before = on_spot[:, block]
        on_spot[:, block + 1] = before
        rows = np.flatnonzero((counts[:, block] > 0) & (before > _NOBODY))
        if not len(rows):
            continue
        # All rows at once: transforms one by one take twice the time.
        transforms = np.fft.rfft(alive[rows])
        for i, row in enumerate(rows.tolist()):
            transforms[i] *= powers[row].of(whole[row][block])
        passed = np.maximum(np.fft.irfft(transforms, PERIOD)[:, :POINTS], 0.0)
        passed[within[rows, block, None] <= _POINTS] = 0.0
        alive[rows, :POINTS] = passed
        on_spot[rows, block + 1] = np.minimum(np.vecdot(passed, UNTILT), before[rows])
    return on_spot, alive[:, :POINTS] * UNTILT
