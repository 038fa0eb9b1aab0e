"""Scores the readers of other tools' configurations against `truth.csv`: cells right, cells silently wrong, parameters off.

python -m tools.benchmarks.config_readers ../shared/data/configs
"""

import csv
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

from gpuplan.api.imports.facts import FACT_NAMES, TrainingFacts
from gpuplan.api.imports.reading import read_file
from gpuplan.catalog.runtime.errors import UnusableInput

#: Words of the truth and of the readers for one thing, after brackets are cut.
SAME = {"auto": "bf16 if the chip has it, else fp16", "bf16-true": "bf16", "bf16-mixed": "bf16", "amp_bf16": "bf16"}
#: Empty cells whose value the file does state: an override on its command line.
STATED = {"wrappers/003-sky-nemo-gpt.yaml optimizer"}
#: Figures that rounded rates give: a share that they may be off.
ROUNDED = 0.03


@dataclass(slots=True)
class Score:
    """Cells of the truth that are right, wrong ones by file and name, and empty ones that were answered as if stated."""

    right: int = 0
    wrong: list[str] = field(default_factory=list)
    silent: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    parameters: dict[str, float] = field(default_factory=dict)

    @property
    def share(self) -> float:
        return self.right / max(1, self.right + len(self.wrong))


def score(folder: Path) -> Score:
    """The score over all files of `folder` that are there."""
    made = Score()
    with (folder / "truth.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            path = folder / row["file"]
            if path.exists():
                _file(path, row, made)
    return made


def _file(path: Path, row: dict[str, str], made: Score) -> None:
    try:
        facts = read_file(path, path.parent)
    except UnusableInput as error:
        made.refused.append(f"{row['file']}: {error}")
        facts = TrainingFacts()
    for name in FACT_NAMES:
        fact, truth = facts.facts.get(name), row[name]
        if truth and fact is not None and equal(truth, fact.value):
            made.right += 1
        elif truth:
            made.wrong.append(f"{row['file']} {name}: {truth!r}, read {fact and fact.value}")
        elif fact is not None and not fact.origin.is_default and f"{row['file']} {name}" not in STATED:
            made.silent.append(f"{row['file']} {name}: empty, read {fact.value}")
    if row["parameters_total"] and facts.number("parameters_total"):
        made.parameters[row["file"]] = (facts.number("parameters_total") or 0) / float(row["parameters_total"]) - 1


def equal(truth: str, value: object) -> bool:
    """Whether a cell and a value say the same: numbers by value, formulas by their text, words by `SAME`."""
    about = truth.startswith("about ")
    mine, theirs = _plain(str(value)), _plain(truth.removeprefix("about "))
    numbers = [re.match(r"[-+]?[\d.]+(e[-+]?\d+)?$", text.split(" ")[0]) for text in (mine, theirs)]
    if all(numbers) and " x " not in mine + theirs and "/" not in mine + theirs:
        ours, stated = (float(text.split(" ")[0]) for text in (mine, theirs))
        within = ROUNDED if about else 0.01 if stated > 1e7 else 1e-9
        return abs(ours - stated) <= within * abs(stated) and mine.split(" ")[1:] == theirs.split(" ")[1:]
    return mine == theirs


def _plain(text: str) -> str:
    plain_text = text if text.startswith("(") else re.sub(r"\s*\((?!world /)(?![a-z]+\)$)[^()]*\)", "", text)
    plain_text = re.sub(r"\s*\((pairs|pure|adam|auto)\)$", "", plain_text).lower()
    plain_text = (
        plain_text.replace("data-parallel world", "world")
        .replace("training world", "world")
        .replace("devices", "world")
        .removeprefix("./")
        .removeprefix("my-copy-c4/")
    )
    plain_text = plain_text.removesuffix(" samples") if plain_text.startswith("about") else plain_text
    return SAME.get(plain_text, plain_text)


def main() -> None:
    made = score(Path(sys.argv[1]))
    for line in (*made.refused, *made.wrong, *made.silent):
        print(line)
    worst = max((abs(off) for off in made.parameters.values()), default=0.0)
    total = made.right + len(made.wrong)
    print(f"{made.right} of {total} cells right ({made.share:.1%}), {len(made.silent)} silently wrong")
    print(f"parameters of {len(made.parameters)} models, at most {worst:.2%} off")


if __name__ == "__main__":
    main()
