"""How good an answer is proven to be, in the words at its head: "Cheapest" only where its certificate has no gap."""

import math
from collections.abc import Mapping
from typing import Any

from api.render.text import percent

Part = Mapping[str, Any]

#: By what is made least: an answer that is proven best, and why.
_BEST = {"cost": "Cheapest", "time": "Fastest", "carbon": "Least carbon"}
_NOTHING = {"cost": "Why nothing is cheaper", "time": "Why nothing is faster", "carbon": "Why nothing emits less"}
#: What the arithmetic of the solver may leave of a gap that is closed (HiGHS' own tolerances are of this size).
_TOLERANCE = 1e-6
#: Shares are rounded up to a tenth of a percent, never down.
_STEPS = 1_000


def aim(certificate: Part) -> str:
    """What was made least: cost, time or carbon."""
    objective = certificate.get("objective")
    return str(objective.get("of", "cost")) if isinstance(objective, Mapping) else "cost"


def best(certificate: Part) -> str:
    """`Cheapest` where that is proven, else within how much of the least possible."""
    of, gap = aim(certificate), float(certificate["gap"])
    if gap <= _TOLERANCE:
        return _BEST[of]
    if gap >= 1:
        return f"Least {of} found, no lower bound proven,"
    return f"Within {_above(gap)} of the least possible {of}"


def within(gap: float) -> str:
    """How near the least possible cost an answer with this gap is."""
    return f"within {_above(gap)} of the least possible" if gap < 1 else "not proven to be near the least possible"


def why_nothing(certificate: Part) -> str:
    """`Why nothing is cheaper`, or by more than what."""
    gap = float(certificate["gap"])
    more = f" by more than {percent(_rounded_up(gap), 1)}" if gap > _TOLERANCE else ""
    return f"{_NOTHING[aim(certificate)]}{more}"


def _above(gap: float) -> str:
    """By what part of the bound the answer may lie above it: the gap is told as a part of the answer."""
    return percent(_rounded_up(gap / (1 - gap)), 1)


def _rounded_up(share: float) -> float:
    return math.ceil(share * _STEPS - 1e-9) / _STEPS
