"""gpuplan's command line as in a base install: only what requirements.txt locks can be imported.

The first argument lists the top-level modules that a base install lacks (`outside_the_base`), the rest is the command line.
After the word `then` another follows; each ends with the same code, which is that of the process.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import Distribution, DistributionFinder, packages_distributions
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]


def locked(name: str) -> dict[str, str]:
    """The version of every library in a lock file."""
    text = (ROOT / name).read_text(encoding="utf-8")
    return dict(re.findall(r"^([a-z0-9][a-z0-9._-]*)(?:\[[a-z,]+\])?==([^ ;\\]+)", text, re.MULTILINE))


def normalized(name: str) -> str:
    """The name of a distribution as lock files write it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def in_the_base() -> frozenset[str]:
    """The distributions of a base install."""
    return frozenset((*locked("requirements.txt"), "gpuplan"))


def outside_the_base() -> frozenset[str]:
    """Top-level modules of libraries that are installed here, and that a base install lacks."""
    base = in_the_base()
    return frozenset(
        module
        for module, distributions in packages_distributions().items()
        if not base & {normalized(name) for name in distributions}
    )


class BaseInstall(MetaPathFinder):
    """Finds what the usual finders find, except what is missing."""

    def __init__(self, missing: frozenset[str]) -> None:
        """Takes the place of every finder of this process."""
        self._missing = missing
        self._distributions = in_the_base()
        self._usual = list(sys.meta_path)

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """None for a module that is missing."""
        if name.partition(".")[0] in self._missing:
            return None
        specs = (finder.find_spec(name, path, target) for finder in self._usual)
        return next((spec for spec in specs if spec is not None), None)

    def find_distributions(self, context: DistributionFinder.Context) -> Iterator[Distribution]:
        """The metadata of what is in the base."""
        distributions = PathFinder.find_distributions(context)
        return (
            distribution
            for distribution in distributions
            if normalized(distribution.metadata["Name"]) in self._distributions
        )


if __name__ == "__main__":
    sys.meta_path[:] = [BaseInstall(frozenset(sys.argv[1].split(",")))]
    from gpuplan.api.cli.main import main
    from tests.e2e.unpaced_process import unpaced_world

    unpaced_world()
    command_lines: list[list[str]] = [[]]
    for word in sys.argv[2:]:
        if word == "then":
            command_lines.append([])
        else:
            command_lines[-1].append(word)
    [code] = {main(words) for words in command_lines}
    sys.exit(code)
