"""The README's example with its real output: `python -m tools.benchmarks.readme` writes it, and a test checks it."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
BLOCK = re.compile(r"(<!-- output of: gpuplan (.+?) -->\n```text\n)(.*?)(```)", re.DOTALL)


def printed(arguments: str) -> str:
    """What `gpuplan ARGUMENTS` prints on a fresh store, with no settings but the defaults."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GPUPLAN_")}
    with tempfile.TemporaryDirectory() as folder:
        environment = inherited | {"GPUPLAN_DATABASE_URL": f"sqlite:///{folder}/plans.sqlite3", "COLUMNS": "100"}
        command = [sys.executable, "-m", "gpuplan.api.cli.main", *arguments.split()]
        return subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def shown() -> tuple[str, str]:
    """The command that the README names, and what it shows as its output."""
    match = BLOCK.search(README.read_text(encoding="utf-8"))
    if match is None:
        raise SystemExit("README.md has no block `<!-- output of: gpuplan ... -->`")
    return match[2], match[3]


def main() -> None:
    """Put the real output into the README."""
    arguments, _ = shown()
    output = "\n".join(line.rstrip() for line in printed(arguments).strip().splitlines()) + "\n"
    text = README.read_text(encoding="utf-8")
    README.write_text(BLOCK.sub(lambda result: result[1] + output + result[4], text), encoding="utf-8")


if __name__ == "__main__":
    main()
