"""The JSON document of a verification, the same for every interface."""

from typing import Any

from gpuplan.planner.verify.field_coverage import MOST_WRONG
from gpuplan.planner.verify.verification_report import BASES, Verification

Document = dict[str, Any]


def document(verification: Verification) -> Document:
    """`{"outcome": "verified" | "not_verified", "verification": {...}}`, with at most the first hundred wrong
    figures.
    """
    return {
        "outcome": "verified" if verification.verified else "not_verified",
        "verification": {
            "id": verification.id,
            "of": verification.part,
            "snapshot_id": verification.snapshot_id,
            "made_by": verification.version,
            "wrong": [
                {
                    "figure": wrong_figure.figure,
                    "check": wrong_figure.check,
                    "stated": wrong_figure.stated,
                    "found": wrong_figure.recomputed,
                    "why": wrong_figure.why,
                }
                for wrong_figure in verification.wrong[:MOST_WRONG]
            ],
            "wrong_count": len(verification.wrong),
            "checks": [
                {
                    "check": check.rule.name,
                    "says": check.rule.says,
                    "basis": check.rule.basis,
                    "passed": check.wrong == 0,
                    "figures": check.figures,
                    "wrong": check.wrong,
                }
                for check in verification.checks
            ],
            "bases": dict(BASES),
            "covers": verification.covers,
            "taken_on_trust": list(verification.taken),
        },
    }
