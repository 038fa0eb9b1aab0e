"""How far measured times lie from predicted ones: the standard deviation of ln(actual / predicted).

Measured with benchmarks/accuracy.py as 1.25 x the mean absolute log residual... per class of work.
"""

import numpy as np

from planner.estimate.machines import Floats
from planner.workload.work import Work

SIGMA: dict[str, float] = {
    "language": 0.20,
    "mixture-of-experts": 0.40,
    "encoder": 0.30,
    "encoder-decoder": 0.35,
    "vision-transformer": 0.30,
    "convolutional": 0.35,
    "recurrent": 0.50,
    "diffusion": 0.40,
    "gan": 0.50,
    "recommender": 0.60,
    "explicit": 0.40,
}
SIGMA_UNKNOWN = 0.5
#: Added in quadrature over several nodes, and where no run of the chip's generation was measured.
SIGMA_NODES = 0.10
SIGMA_UNMEASURED = 0.25

#: 10th and 90th percentile of the standard normal: the 80 % band.
Z80 = 1.2816


def log_sigma(work: Work, several_nodes: Floats, unmeasured: Floats) -> Floats:
    """Per machine row; both flags are 0 or 1."""
    base = SIGMA.get(work.task, SIGMA_UNKNOWN)
    return np.sqrt(base**2 + several_nodes * SIGMA_NODES**2 + unmeasured * SIGMA_UNMEASURED**2)
