"""A verification as the JSON object that every door gives."""

from typing import Any

from planner.verify.ledger import MOST_WRONG
from planner.verify.report import BASES, Verification

Document = dict[str, Any]


def document(found: Verification) -> Document:
    """`{"outcome": "verified" | "not_verified", "verification": {...}}`; of very many wrong figures the first hundred."""
    return {
        "outcome": "verified" if found.verified else "not_verified",
        "verification": {
            "id": found.id,
            "of": found.part,
            "snapshot_id": found.snapshot_id,
            "made_by": found.version,
            "wrong": [
                {
                    "figure": each.figure,
                    "check": each.check,
                    "stated": each.stated,
                    "found": each.found,
                    "why": each.why,
                }
                for each in found.wrong[:MOST_WRONG]
            ],
            "wrong_count": len(found.wrong),
            "checks": [
                {
                    "check": each.rule.name,
                    "says": each.rule.says,
                    "basis": each.rule.basis,
                    "passed": each.wrong == 0,
                    "figures": each.figures,
                    "wrong": each.wrong,
                }
                for each in found.checks
            ],
            "bases": dict(BASES),
            "covers": found.covers,
            "taken_on_trust": list(found.taken),
        },
    }
