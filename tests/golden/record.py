"""Record the corpus anew, and print how the answers moved: `python -m tests.golden.record`."""

import json
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.golden.comparison import differences, is_money
from tests.golden.corpus import corpus
from tests.golden.interfaces import open_interfaces
from tests.golden.question import Document, Question, ask

ANSWERS = Path(__file__).parent / "answers"
#: Relative moves of a figure are counted up to each of these.
STEPS = (1e-9, 1e-6, 1e-4, 1e-3, 1e-2, 1e-1, float("inf"))


def recorded() -> dict[str, Document]:
    """The recorded answer of every question by its name."""
    lines = [line for path in sorted(ANSWERS.glob("*.jsonl")) for line in path.read_text("utf-8").splitlines()]
    return {entry["question"]: entry["answered"] for entry in map(json.loads, lines)}


def write(answers: dict[str, Document]) -> None:
    """Write one file per family, a line per question."""
    ANSWERS.mkdir(exist_ok=True)
    files = {f"{family}.jsonl" for family, _ in _families()}
    for path in ANSWERS.glob("*.jsonl"):
        if path.name not in files:
            path.unlink()
    for family, members in _families():
        lines = (_line({"question": member.key, "answered": answers[member.key]}) for member in members)
        (ANSWERS / f"{family}.jsonl").write_text("".join(lines), encoding="utf-8")


def _families() -> Iterator[tuple[str, list[Question]]]:
    ordered = sorted(corpus(), key=lambda question: question.family)
    for family, members in groupby(ordered, key=lambda question: question.family):
        yield family, list(members)


def _line(entry: Document) -> str:
    return json.dumps(entry, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n"


def moves(before: dict[str, Document], after: dict[str, Document]) -> str:
    """How many answers moved, which, and by how much in money and in other figures."""
    moved = {key: list(differences(before[key], after[key])) for key in sorted(before.keys() & after.keys())}
    moved = {key: changed_values for key, changed_values in moved.items() if changed_values}
    lines = [f"{len(after)} answers; {len(moved)} of {len(before)} recorded before moved"]
    lines += [f"  + {key}" for key in sorted(after.keys() - before.keys())] if before else []
    lines += [f"  - {key}" for key in sorted(before.keys() - after.keys())]
    lines += [
        f"  {key}: {len(changed_values)} values, the first {changed_values[0]}" for key, changed_values in moved.items()
    ]
    pairs = [pair for key in moved for pair in _figures(before[key], after[key])]
    for kind in ("money", "figures"):
        counts = Counter(_step(was, now) for which, was, now in pairs if which == kind and was != now)
        lines += [f"  {kind} moved by up to {step:g}: {counts[step]}" for step in STEPS if counts[step]]
    return "\n".join(lines)


def _figures(before: Any, after: Any) -> Iterator[tuple[str, float, float]]:
    """Money and other figures that stand at the same place before and after."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in before.keys() & after.keys():
            yield from _figures(before[key], after[key])
    elif isinstance(before, list) and isinstance(after, list):
        for was, now in zip(before, after, strict=False):
            yield from _figures(was, now)
    elif is_money(before) and is_money(after):
        yield "money", float(before), float(after)
    elif isinstance(before, float) and isinstance(after, float):
        yield "figures", before, after


def _step(was: float, now: float) -> float:
    size = abs(now - was) / max(abs(was), abs(now))
    return next(step for step in STEPS if size <= step)


def main() -> None:
    """Ask everything, write the answers, print the moves."""
    before = recorded()
    with TemporaryDirectory() as folder, open_interfaces(Path(folder)) as interfaces:
        after = {question.key: ask(question, interfaces) for question in corpus()}
    write(after)
    sys.stdout.write(moves(before, after) + "\n")


if __name__ == "__main__":
    main()
