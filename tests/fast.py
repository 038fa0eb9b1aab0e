"""`make test-fast`: the unit tests of one layer, or of the packages that differ from `main` and of changed tests.

`python -m tests.fast [LAYER]`. It leaves out tests with the marker `slow`, whose reason stands at the test. Tests that use
Chromium or PostgreSQL get the marker from their fixtures (`tests/conftest.py`).
"""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
LAYERS = ("catalog", "providers", "planner", "api")


def affected(changed: Iterable[str], root: Path = ROOT) -> list[str]:
    """The test files and folders to run for `changed`, which are paths in the repository.

    A package maps to its test folder, a module directly in a layer to the tests of the whole layer, a test file to itself,
    and a file that tests share (a conftest, say) to its folder. Files outside the layers map to nothing. The answer leaves
    out folders that lie inside others of the answer.
    """
    paths = {path for file in changed if (path := _affected(PurePosixPath(file), root)) is not None}
    return sorted(str(path) for path in paths if not paths.intersection(path.parents))


def _affected(changed: PurePosixPath, root: Path) -> PurePosixPath | None:
    in_tests = changed.parts[0] == "tests"
    path = changed if in_tests else PurePosixPath("tests", *changed.parts)
    if len(path.parts) < 3 or path.parts[1] not in LAYERS:
        return None
    if in_tests and path.name.startswith("test_") and (root / path).is_file():
        return path
    layer = PurePosixPath(*path.parts[:2])
    return next(folder for folder in path.parents if folder == layer or any((root / folder).glob("**/test_*.py")))


def changed_files(root: Path = ROOT) -> list[str]:
    """The files that differ from the merge base with `main`, committed or not.

    Raises `CalledProcessError` without git or `main`.
    """
    base = _git(root, "merge-base", "main", "HEAD").strip()
    changed = _git(root, "diff", "--name-only", "--no-renames", base)
    return [*changed.splitlines(), *_git(root, "ls-files", "--others", "--exclude-standard").splitlines()]


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True).stdout


def main(arguments: list[str]) -> int:
    """The exit code of pytest; 0 where there is nothing to test, 2 for an unknown layer."""
    layer = arguments[0] if arguments else ""
    if layer and layer not in LAYERS:
        print(f"LAYER: unknown layer {layer!r}; give {', '.join(LAYERS)}, or none", file=sys.stderr)
        return 2
    try:
        paths = [f"tests/{layer}"] if layer else affected(changed_files())
    except (OSError, subprocess.CalledProcessError) as problem:
        print(f"cannot compare with main ({problem}); give LAYER: {', '.join(LAYERS)}", file=sys.stderr)
        return 2
    if not paths:
        print("nothing in catalog, providers, planner, api or their tests differs from main")
        return 0
    print("tests:", *paths, flush=True)
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadgroup", "-m", "not slow", *paths]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
