"""The comparison of jobs before and after a change, as rows and as Markdown."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gpuplan.api.presentation.text_formatting import duration, plain, usd
from gpuplan.planner.model.plan import InfeasibleAnswer, PlanAnswer, PlannedAnswer
from gpuplan.planner.model.shared import Usd

#: Fields that differ between any two readings, or that say nothing of the work.
_ASIDE = ("name", "start")
_MOST_CHANGES = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """The plan of a job before or after the change."""

    cost_usd: Usd
    hours: float
    plan: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A field of the job that differs, by its dotted path; None: not set."""

    field: str
    before: object
    after: object


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedJob:
    """One job: its plan on both sides (None: no plan, or no file), and the fields that changed.

    `increase_percent` is None where one side has no cost.
    """

    file: str
    is_new: bool
    before: Side | None
    after: Side | None
    increase_percent: float | None
    conflicts: tuple[tuple[str, ...], ...]
    changes: tuple[Change, ...]

    def is_too_dear(self, most_percent: float) -> bool:
        """Whether the job costs more than this beyond before, or has no plan any more."""
        if self.before is not None and self.after is None:
            return True
        return self.increase_percent is not None and self.increase_percent > most_percent


def compared(file: str, before: PlanAnswer | None, after: PlanAnswer) -> ComparedJob:
    """The comparison of two answers of `plan`; `before` is None for a new file."""
    old, new = _side(before), _side(after)
    increase = None
    if old is not None and new is not None and old.cost_usd > 0:
        increase = 100 * (float(new.cost_usd) / float(old.cost_usd) - 1)
    return ComparedJob(
        file=file,
        is_new=before is None,
        before=old,
        after=new,
        increase_percent=increase,
        conflicts=after.infeasible.conflicts if isinstance(after, InfeasibleAnswer) else (),
        changes=() if before is None else tuple(_changes(before.body.job, after.body.job)),
    )


def _side(answer: PlanAnswer | None) -> Side | None:
    if not isinstance(answer, PlannedAnswer):
        return None
    plan = answer.plan
    return Side(cost_usd=plan.cost_usd.expected, hours=plan.hours.expected, plan=plan.id)


def _changes(before: object, after: object, path: str = "") -> Iterator[Change]:
    """Every field that differs, by its dotted path."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in [*before, *(key for key in after if key not in before)]:
            if path or key not in _ASIDE:
                yield from _changes(before.get(key), after.get(key), f"{path}.{key}" if path else key)
    elif before != after:
        yield Change(field=path, before=before, after=after)


def markdown(rows: Sequence[ComparedJob], against: str, most_percent: float | None) -> str:
    """A table for a comment on a pull request."""
    lines = [
        f"| job | {_cell(against)} | now | change | why |",
        "|---|---|---|---|---|",
        *(
            f"| {_cell(row.file)} | {_plan(row.before, is_new=row.is_new)} | {_plan(row.after)} | {_change(row)} | {_why(row)} |"
            for row in rows
        ),
        "",
        "Each side is the cheapest plan, on the same prices and the same day.",
    ]
    if most_percent is not None:
        lines.append(f"More than {most_percent:g} % over before fails.")
    return "\n".join(lines) + "\n"


def _plan(side: Side | None, *, is_new: bool = False) -> str:
    if side is None:
        return "new" if is_new else "no plan"
    return f"{usd(side.cost_usd)}, {duration(side.hours)}"


def _change(row: ComparedJob) -> str:
    percent = row.increase_percent
    return "-" if percent is None else f"{percent:+.0f} %" if abs(percent) >= 0.5 else "same"


def _why(row: ComparedJob) -> str:
    if row.conflicts:
        return _cell("in conflict: " + "; ".join(" with ".join(names) for names in row.conflicts))
    shown = [f"{one.field}: {_value(one.before)} to {_value(one.after)}" for one in row.changes]
    others = [f"and {len(shown) - _MOST_CHANGES} more"] if len(shown) > _MOST_CHANGES else []
    return _cell("; ".join([*shown[:_MOST_CHANGES], *others]) or "-")


def _value(value: object) -> str:
    return "not set" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _cell(text: str) -> str:
    """A cell of a Markdown table: nothing in it is markup."""
    escaped = "".join(f"\\{letter}" if letter in "\\`*_[]<>|#" else letter for letter in plain(text, limit=300))
    return escaped.replace("@", "@\u200b")
