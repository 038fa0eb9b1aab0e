"""Packages on their way to the layout of docs/architecture.md: `python -m tests.docs.moving_packages` writes the list again.

`+ PATH` is named on the page and not there yet, `- PATH` is there and not named on the page. The list is empty once the
tree and the page agree; then it, this module and what reads them in test_architecture.py may go.
"""

import re
import subprocess
from pathlib import Path

from tests.docs.pages import DOCS, ROOT

PAGE = DOCS / "architecture.md"
LIST = Path(__file__).with_suffix(".txt")
#: A folder on the page: `catalog/model/`.
_FOLDER = re.compile(r"`((?:\w+/)+)`")


def named() -> set[str]:
    """Folders that the page names, without the last slash."""
    return {folder.rstrip("/") for folder in _FOLDER.findall(PAGE.read_text(encoding="utf-8"))}


def top_level() -> set[str]:
    """Folders at the root that hold Python files which git tracks."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py"]
    tracked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return {path.partition("/")[0] for path in tracked if "/" in path and (ROOT / path).exists()}


def missing() -> set[str]:
    """Folders on the page that are not in the tree."""
    return {folder for folder in named() if not (ROOT / folder).is_dir()}


def unnamed() -> set[str]:
    """Folders at the root with Python files that the page does not name, in themselves or by a folder inside."""
    return top_level() - {folder.partition("/")[0] for folder in named()}


def listed() -> tuple[set[str], set[str]]:
    """What the list says is missing, and what it says is unnamed."""
    lines = LIST.read_text(encoding="utf-8").splitlines()
    return {line[2:] for line in lines if line.startswith("+ ")}, {line[2:] for line in lines if line.startswith("- ")}


if __name__ == "__main__":
    lines = [f"+ {folder}" for folder in sorted(missing())] + [f"- {folder}" for folder in sorted(unnamed())]
    LIST.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
