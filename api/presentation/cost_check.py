"""The comparison of jobs before and after a change, as rows and as Markdown."""

from collections.abc import Iterator, Sequence
from typing import Any

from gpuplan.api.presentation.text_formatting import duration, plain, usd

Answer = dict[str, Any]
Row = dict[str, Any]
#: Fields that differ between any two readings, or that say nothing of the work.
_ASIDE = ("name", "start")
_MOST_CHANGES = 6


def compared(file: str, before: Answer | None, after: Answer) -> Row:
    """One job: costs in USD and hours on both sides (None: no plan, or no file), and the fields that changed.

    `increase_percent` is None where one side has no cost.
    """
    old, new = (None if answer is None else answer.get("plan") for answer in (before, after))
    increase = None
    if old is not None and new is not None and float(old["cost_usd"]["expected"]) > 0:
        increase = 100 * (float(new["cost_usd"]["expected"]) / float(old["cost_usd"]["expected"]) - 1)
    changes = [] if before is None else list(_changes(_job(before), _job(after)))
    return {
        "file": file,
        "is_new": before is None,
        "before": _plan(old),
        "after": _plan(new),
        "increase_percent": increase,
        "conflicts": [] if new is not None else after["infeasible"]["conflicts"],
        "changes": changes,
    }


def is_too_dear(row: Row, most_percent: float) -> bool:
    """Whether a job costs more than this beyond before, or has no plan any more."""
    if row["before"] is not None and row["after"] is None:
        return True
    return row["increase_percent"] is not None and row["increase_percent"] > most_percent


def _plan(plan: dict[str, Any] | None) -> dict[str, Any] | None:
    if plan is None:
        return None
    return {"cost_usd": plan["cost_usd"]["expected"], "hours": plan["hours"]["expected"], "plan": plan["id"]}


def _job(answer: Answer) -> dict[str, Any]:
    job: dict[str, Any] = (answer.get("plan") or answer["infeasible"])["job"]
    return job


def _changes(before: Any, after: Any, path: str = "") -> Iterator[dict[str, Any]]:
    """Every field that differs, by its dotted path."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in [*before, *(key for key in after if key not in before)]:
            if path or key not in _ASIDE:
                yield from _changes(before.get(key), after.get(key), f"{path}.{key}" if path else key)
    elif before != after:
        yield {"field": path, "before": before, "after": after}


def markdown(rows: Sequence[Row], against: str, most_percent: float | None) -> str:
    """A table for a comment on a pull request."""
    lines = [
        f"| job | {_cell(against)} | now | change | why |",
        "|---|---|---|---|---|",
        *(
            f"| {_cell(row['file'])} | {_side(row, 'before')} | {_side(row, 'after')} | {_change(row)} | {_why(row)} |"
            for row in rows
        ),
        "",
        "Each side is the cheapest plan, on the same prices and the same day.",
    ]
    if most_percent is not None:
        lines.append(f"More than {most_percent:g} % over before fails.")
    return "\n".join(lines) + "\n"


def _side(row: Row, name: str) -> str:
    side = row[name]
    if side is None:
        return "new" if name == "before" and row["is_new"] else "no plan"
    return f"{usd(side['cost_usd'])}, {duration(side['hours'])}"


def _change(row: Row) -> str:
    percent = row["increase_percent"]
    return "-" if percent is None else f"{percent:+.0f} %" if abs(percent) >= 0.5 else "same"


def _why(row: Row) -> str:
    if row["conflicts"]:
        return _cell("in conflict: " + "; ".join(" with ".join(names) for names in row["conflicts"]))
    shown = [f"{one['field']}: {_value(one['before'])} to {_value(one['after'])}" for one in row["changes"]]
    others = [f"and {len(shown) - _MOST_CHANGES} more"] if len(shown) > _MOST_CHANGES else []
    return _cell("; ".join([*shown[:_MOST_CHANGES], *others]) or "-")


def _value(value: Any) -> str:
    return "not set" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _cell(text: str) -> str:
    """A cell of a Markdown table: nothing in it is markup."""
    escaped = "".join(f"\\{letter}" if letter in "\\`*_[]<>|#" else letter for letter in plain(text, limit=300))
    return escaped.replace("@", "@\u200b")
