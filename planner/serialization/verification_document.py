"""The typed answer of a verification, the same for every interface."""

from gpuplan.planner.model import verification as model
from gpuplan.planner.verify.field_coverage import MOST_WRONG
from gpuplan.planner.verify.verification_report import BASES, Verification


def verification_answer(verification: Verification) -> model.Verification:
    """The answer, with at most the first hundred wrong figures."""
    return model.Verification(
        id=verification.id,
        of=verification.part,
        snapshot_id=verification.snapshot_id,
        made_by=verification.version,
        wrong=tuple(
            model.WrongFigure(
                figure=wrong.figure,
                check=wrong.check,
                stated=wrong.stated,
                found=wrong.recomputed,
                why=wrong.why,
            )
            for wrong in verification.wrong[:MOST_WRONG]
        ),
        wrong_count=len(verification.wrong),
        checks=tuple(
            model.Check(
                check=check.rule.name,
                says=check.rule.says,
                basis=check.rule.basis,
                passed=check.wrong == 0,
                figures=check.figures,
                wrong=check.wrong,
            )
            for check in verification.checks
        ),
        bases=BASES,
        covers=verification.covers,
        taken_on_trust=verification.taken,
    )
