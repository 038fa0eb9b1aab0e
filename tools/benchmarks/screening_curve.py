"""The screening curve: the closed form of owning against renting for equal machines.

The i-th machine is busy h_i hours. Under source l it costs F_l + v_l h_i, and since h_i falls with i and machines are
whole, each machine independently takes its cheapest source: a lower envelope of lines, steep (rent) for rarely used
machines and flat (own) for busy ones. (Phillips et al. 1969; Stoft, Power System Economics, 2002, ch. 2-2.)
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def screened(fixed_usd: Floats, usd_per_hour: Floats, busy: Floats) -> tuple[Ints, float]:
    """The cheapest source of each machine (`busy` hours of the i-th, falling) and the sum of the costs in USD.

    The first of equally cheap sources is taken.
    """
    costs = fixed_usd[None, :] + busy[:, None] * usd_per_hour[None, :]
    chosen = costs.argmin(axis=1)
    return chosen.astype(np.int64), float(costs[np.arange(len(busy)), chosen].sum())
