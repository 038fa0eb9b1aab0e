"""Phrases for the proven quality of an answer: "Cheapest" only if its certificate has no gap."""

import math
from typing import TYPE_CHECKING

from gpuplan.api.presentation.text_formatting import percent
from gpuplan.planner.model.plan import Certificate, Plan
from gpuplan.planner.model.shared import ObjectiveOf

if TYPE_CHECKING:
    from gpuplan.planner.model.procurement import ProcurementCertificate

#: Headline of a proven optimum, by objective.
_BEST = {"cost": "Cheapest", "time": "Fastest", "carbon": "Least carbon"}
_NOTHING = {"cost": "Why nothing is cheaper", "time": "Why nothing is faster", "carbon": "Why nothing emits less"}
#: Gaps below this are rounding errors of the solver (HiGHS' tolerances have this size).
_TOLERANCE = 1e-6
#: Shares are rounded up to a tenth of a percent, never down.
_STEPS = 1_000


def best(certificate: "Certificate | ProcurementCertificate") -> str:
    """`Cheapest` if proven, else the proven distance from the minimum."""
    of, gap = _aim(certificate), certificate.gap
    if gap <= _TOLERANCE:
        return _BEST[of]
    if gap >= 1:
        return f"Least {of} found, without a proven lower bound,"
    return f"Within {_above(gap)} of the least possible {of}"


def best_of(plan: Plan) -> str:
    """As `best`; of a plan that chances put before the cheapest if obtained, that its ladder is expected to cost least."""
    ladder, proof = plan.capacity_ladder, plan.certificate.ladder
    if ladder is None or ladder.cheapest_if_obtained is None or proof is None:
        return best(plan.certificate)
    if proof.gap <= _TOLERANCE:
        return "Least expected cost"
    return f"Within {_above(proof.gap)} of the least expected cost" if proof.gap < 1 else best(plan.certificate)


def _aim(certificate: "Certificate | ProcurementCertificate") -> ObjectiveOf:
    """What was minimised: of what to buy it is always the cost."""
    return certificate.objective.of if isinstance(certificate, Certificate) else "cost"


def within(gap: float) -> str:
    """The proven distance from the least possible cost of an answer with this gap."""
    return f"within {_above(gap)} of the least possible" if gap < 1 else "without a proven lower bound"


def why_nothing(certificate: "Certificate | ProcurementCertificate") -> str:
    """`Why nothing is cheaper`, with the proven gap if there is one."""
    gap = certificate.gap
    margin = f" by more than {percent(_rounded_up(gap), 1)}" if gap > _TOLERANCE else ""
    return f"{_NOTHING[_aim(certificate)]}{margin}"


def _above(gap: float) -> str:
    """The gap as a share of the bound; certificates state it as a share of the answer."""
    return percent(_rounded_up(gap / (1 - gap)), 1)


def _rounded_up(share: float) -> float:
    return math.ceil(share * _STEPS - 1e-9) / _STEPS
