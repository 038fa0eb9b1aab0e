"""Sections for a verification: verdict, wrong figures, checks, and figures taken on trust."""

from dataclasses import fields

from gpuplan.api.presentation.sections import Block, Heading, Sections, Tone, sections_of
from gpuplan.api.presentation.text_formatting import number, plain
from gpuplan.api.presentation.text_tables import bullets, cell, facts, footer, heading, listing
from gpuplan.planner.model.verification import InfeasibleComparison, Verification, VerificationAnswer

#: Most wrong figures shown; the rest are counted.
MOST_SHOWN = 25


def render_verification(answer: VerificationAnswer) -> Sections:
    """The verdict, then wrong figures, the basis of each check, and what was not checked."""
    verification, meta = answer.verification, answer.meta
    parts: list[Block | Heading] = [
        *_headline(answer.outcome, verification),
        *_wrong(verification),
        *_checks(verification),
    ]
    parts += [*_covers(verification), heading("Taken on trust"), *bullets(verification.taken_on_trust)]
    parts.append(footer(f"snapshot {verification.snapshot_id}, checked in {meta.milliseconds / 1e3:.1f} s"))
    return sections_of(*parts)


def _headline(outcome: str, part: Verification) -> list[Block | Heading]:
    figures = number(sum(check.figures for check in part.checks))
    if outcome == "verified":
        verdict = f"{plain(part.id)}: verified, {figures} figures are correct"
        return [cell(verdict, Tone.GOOD)]
    count = part.wrong_count
    return [cell(f"{plain(part.id)}: not verified, {number(count)} of {figures} figures are wrong", Tone.BAD)]


def _wrong(part: Verification) -> list[Block | Heading]:
    if not part.wrong:
        return []
    rows = [
        (
            plain(wrong.figure, limit=60),
            _value(wrong.stated),
            _value(wrong.found),
            plain(wrong.why, limit=200),
        )
        for wrong in part.wrong[:MOST_SHOWN]
    ]
    left_out = part.wrong_count - len(rows)
    rest = [cell(f"and {number(left_out)} more; --json names the first hundred")] if left_out > 0 else []
    return [heading("What is wrong"), listing(("figure", "stated", "recomputed", "why"), rows), *rest]


def _value(value: object) -> str:
    return "" if value is None else plain(value, limit=40)


def _checks(part: Verification) -> list[Block | Heading]:
    rows = [
        (
            check.check,
            "holds" if check.passed else f"{number(check.wrong)} wrong",
            number(check.figures),
            check.basis,
            check.says,
        )
        for check in part.checks
    ]
    meanings = [f"{name}: {meaning}" for name, meaning in part.bases.items()]
    titles = ("check", "", "figures", "basis", "that")
    return [heading("What was checked"), listing(titles, rows, right=(2,)), *bullets(meanings)]


def _covers(part: Verification) -> list[Block | Heading]:
    """The configurations that the bound was checked against."""
    covers = part.covers
    values = {field.name: getattr(covers, field.name) for field in fields(covers)}
    rows = [
        (name.replace("_", " "), number(value) if isinstance(value, int) else plain(value, limit=400))
        for name, value in values.items()
        if not isinstance(value, dict)
    ]
    marks = covers.marks if isinstance(covers, InfeasibleComparison) else {}
    violations = [f"{number(count)} configurations violate {plain(mark)}" for mark, count in marks.items()]
    return [heading("Configurations checked against the bound"), facts(rows), *bullets(violations)]
