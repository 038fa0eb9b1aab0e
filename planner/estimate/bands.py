"""How far measured times lie from predicted ones: the standard deviation of ln(actual / predicted).

Such that hours x exp(-+1.2816 sigma) holds 80 % of runs: the 80th percentile of |ln residual| / 1.2816 over the
measured runs of benchmarks/accuracy.py, widened where few sources stand behind it.
"""

import numpy as np

from planner.estimate.machines import Floats
from planner.workload.work import Work

#: Measured in-sample: language 0.15 (410 runs, 8 sources), mixtures 0.31 (149), encoders 0.35 (48, half of them
#: with padding removed), convolutional 0.25 (25), image transformers 0.07 (3 runs of one chip). Classes
#: without runs of known work take the widest of their relatives and more.
SIGMA: dict[str, float] = {
    "language": 0.20,
    "mixture-of-experts": 0.35,
    "encoder": 0.35,
    "encoder-decoder": 0.40,
    "vision-transformer": 0.30,
    "convolutional": 0.30,
    "recurrent": 0.50,
    "diffusion": 0.40,
    "gan": 0.50,
    "recommender": 0.60,
    "explicit": 0.40,
}
SIGMA_UNKNOWN = 0.5
#: Added in quadrature: over several nodes (language models 0.16 against 0.15 on one), and, by judgement, where no
#: run of the chip's generation was measured.
SIGMA_NODES = 0.06
SIGMA_UNMEASURED = 0.25

#: 10th and 90th percentile of the standard normal: the 80 % band.
Z80 = 1.2816


def log_sigma(work: Work, several_nodes: Floats, unmeasured: Floats) -> Floats:
    """Per machine row; both flags are 0 or 1."""
    return np.sqrt(sigma_of(work.task) ** 2 + several_nodes * SIGMA_NODES**2 + unmeasured * SIGMA_UNMEASURED**2)


def sigma_of(task: str) -> float:
    """Sigma of a class of work, and of any class that is not listed."""
    return SIGMA.get(task, SIGMA_UNKNOWN)
