"""What of an answer is recorded, and where an answer differs from what was recorded.

Recorded are decisions, money (exact, in micro-dollars), hours and other figures (to 1e-9, relative), certificates and
the reasons for which offers were rejected. Not recorded are wording, ids, clocks, the echo of the question, and counts that
depend on how many phases are compared.
"""

import math
import re
from collections.abc import Iterator
from typing import Any

#: Keys whose value is a clock, an id, a version, wording, or a count that goes with the number of phases compared.
LEFT_OUT = frozenset(
    {
        "assumptions",
        "columns",
        "created_at",
        "enumeration",
        "id",
        "max_phases",
        "meta",
        "milliseconds",
        "notes",
        "over",
        "price_source",
        "reasons",
        "snapshot_id",
        "solver",
        "source",
        "summary",
        "version",
        "warnings",
    }
)
#: The echo of the question, recorded only where a question is about it.
ECHO = frozenset({"job", "settings"})
#: Keys whose text may hold blanks and still is no sentence.
NAMES = frozenset({"accelerator", "action", "conflicts", "name", "place", "requirement"})
#: Names that the glossary retires: an answer may use either.
RETIRED = {"fallback": "standby"}
#: From so many alike on, rows are recorded as a table: the names of the columns once.
ROWS_OF_A_TABLE = 3
RELATIVE = 1e-9
#: Figures are recorded with so many digits, three more than are compared.
DIGITS = 12

_MONEY = re.compile(r"-?\d+\.\d{2,6}")


def recorded_part(answer: Any, *, echo: bool = False) -> Any:
    """The part of an answer that is recorded, as JSON."""
    return _part(answer, LEFT_OUT if echo else LEFT_OUT | ECHO, "")


def _part(value: Any, left_out: frozenset[str], key: str) -> Any:
    if isinstance(value, dict):
        return {
            RETIRED.get(name, name): part
            for name, below in value.items()
            if name not in left_out and (part := _part(below, left_out, name)) is not None
        }
    if isinstance(value, list):
        return _table([part for item in value if (part := _part(item, left_out, key)) is not None])
    if isinstance(value, str):
        return _words(value, key)
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def _words(text: str, key: str) -> str | None:
    """Text that is a name or a figure; no sentence."""
    return RETIRED.get(text, text) if key in NAMES or " " not in text else None


def _table(rows: list[Any]) -> Any:
    """Rows with the same keys as a table."""
    if len(rows) < ROWS_OF_A_TABLE or not all(isinstance(row, dict) for row in rows):
        return rows
    columns = sorted(rows[0])
    if any(sorted(row) != columns for row in rows):
        return rows
    return {"columns": columns, "rows": [[row[name] for name in columns] for row in rows]}


def differences(recorded: Any, answered: Any, at: str = "") -> Iterator[str]:
    """Where the answer differs from what was recorded, one line each."""
    if isinstance(recorded, dict) and isinstance(answered, dict):
        for name in sorted(recorded.keys() | answered.keys()):
            if name not in answered:
                yield f"{at}/{name}: {_short(recorded[name])} is missing"
            elif name not in recorded:
                yield f"{at}/{name}: {_short(answered[name])} was not recorded"
            else:
                yield from differences(recorded[name], answered[name], f"{at}/{name}")
    elif isinstance(recorded, list) and isinstance(answered, list):
        if len(recorded) != len(answered):
            yield f"{at}: {len(answered)} entries, recorded {len(recorded)}"
        for i, (before, now) in enumerate(zip(recorded, answered, strict=False)):
            yield from differences(before, now, f"{at}/{i}")
    elif not same(recorded, answered):
        yield f"{at}: {_short(answered)}, recorded {_short(recorded)}"


def same(recorded: Any, answered: Any) -> bool:
    """Whether two values are alike: figures to 1e-9, everything else (money too) exactly."""
    figures = (int, float)
    if isinstance(recorded, bool) or isinstance(answered, bool):
        return recorded is answered
    if isinstance(recorded, figures) and isinstance(answered, figures):
        return math.isclose(recorded, answered, rel_tol=RELATIVE, abs_tol=1e-12)
    return type(recorded) is type(answered) and bool(recorded == answered)


def is_money(value: Any) -> bool:
    """Whether a recorded value is an amount of US dollars."""
    return isinstance(value, str) and _MONEY.fullmatch(value) is not None


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:117]}..."
