"""Phrases for the proven quality of an answer: "Cheapest" only if its certificate has no gap."""

import math
from collections.abc import Mapping
from typing import Any

from gpuplan.api.presentation.text_formatting import percent

Part = Mapping[str, Any]

#: Headline of a proven optimum, by objective.
_BEST = {"cost": "Cheapest", "time": "Fastest", "carbon": "Least carbon"}
_NOTHING = {"cost": "Why nothing is cheaper", "time": "Why nothing is faster", "carbon": "Why nothing emits less"}
#: Gaps below this are rounding errors of the solver (HiGHS' tolerances have this size).
_TOLERANCE = 1e-6
#: Shares are rounded up to a tenth of a percent, never down.
_STEPS = 1_000


def aim(certificate: Part) -> str:
    """The objective that was minimised: cost, time or carbon."""
    objective = certificate.get("objective")
    return str(objective.get("of", "cost")) if isinstance(objective, Mapping) else "cost"


def best(certificate: Part) -> str:
    """`Cheapest` if proven, else the proven distance from the minimum."""
    of, gap = aim(certificate), float(certificate["gap"])
    if gap <= _TOLERANCE:
        return _BEST[of]
    if gap >= 1:
        return f"Least {of} found, without a proven lower bound,"
    return f"Within {_above(gap)} of the least possible {of}"


def within(gap: float) -> str:
    """The proven distance from the least possible cost of an answer with this gap."""
    return f"within {_above(gap)} of the least possible" if gap < 1 else "without a proven lower bound"


def why_nothing(certificate: Part) -> str:
    """`Why nothing is cheaper`, with the proven gap if there is one."""
    gap = float(certificate["gap"])
    margin = f" by more than {percent(_rounded_up(gap), 1)}" if gap > _TOLERANCE else ""
    return f"{_NOTHING[aim(certificate)]}{margin}"


def _above(gap: float) -> str:
    """The gap as a share of the bound; certificates state it as a share of the answer."""
    return percent(_rounded_up(gap / (1 - gap)), 1)


def _rounded_up(share: float) -> float:
    return math.ceil(share * _STEPS - 1e-9) / _STEPS
