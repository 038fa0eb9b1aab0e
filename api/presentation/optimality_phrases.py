"""Phrases for the proven quality of an answer: "Cheapest" only if its certificate has no gap."""

import math
from typing import TYPE_CHECKING

from gpuplan.api.presentation.text_formatting import percent
from gpuplan.planner.model.plan import Certificate, LadderProof, Plan
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
    of = _aim(certificate)
    return _headline(certificate.gap, _BEST[of], f"least possible {of}", f"Least {of}")


def best_of(plan: Plan) -> str:
    """As `best`; where chances put other machines before the cheapest if obtained, by the average cost with refusals."""
    proof = deciding_ladder(plan)
    if proof is None:
        return best(plan.certificate)
    return _headline(proof.gap, "Cheapest on average", "least average cost", "Least average cost")


def deciding_ladder(plan: Plan) -> LadderProof | None:
    """The proof of the ladder, where it put other machines before the cheapest if obtained; else None."""
    ladder = plan.capacity_ladder
    another = ladder is not None and (ladder.cheapest_if_obtained or ladder.changing_machines)
    return plan.certificate.ladder if another else None


def _headline(gap: float, proven: str, least: str, unproven: str) -> str:
    if gap <= _TOLERANCE:
        return proven
    return f"Within {_above(gap)} of the {least}" if gap < 1 else f"{unproven} found, without a proven lower bound,"


def _aim(certificate: "Certificate | ProcurementCertificate") -> ObjectiveOf:
    """What was minimised: of what to buy it is always the cost."""
    return certificate.objective.of if isinstance(certificate, Certificate) else "cost"


def within(gap: float) -> str:
    """The proven distance from the least possible cost of an answer with this gap."""
    return f"within {_above(gap)} of the least possible" if gap < 1 else "without a proven lower bound"


def why_nothing(certificate: "Certificate | ProcurementCertificate") -> str:
    """`Why nothing is cheaper`, with the proven gap if there is one."""
    return f"{_NOTHING[_aim(certificate)]}{_margin(certificate.gap)}"


def why_nothing_of(plan: Plan) -> str:
    """As `why_nothing`, of what decided: the cost if obtained, or the average cost with refusals."""
    proof = deciding_ladder(plan)
    if proof is None:
        return why_nothing(plan.certificate)
    return f"{_NOTHING['cost']} on average{_margin(proof.gap)}"


def _margin(gap: float) -> str:
    return f" by more than {percent(_rounded_up(gap), 1)}" if gap > _TOLERANCE else ""


def _above(gap: float) -> str:
    """The gap as a share of the bound; certificates state it as a share of the answer."""
    return percent(_rounded_up(gap / (1 - gap)), 1)


def _rounded_up(share: float) -> float:
    return math.ceil(share * _STEPS - 1e-9) / _STEPS
