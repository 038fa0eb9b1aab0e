"""The files of a git revision, as an import reads them: nothing is checked out."""

import os
import subprocess
from pathlib import Path

from gpuplan.api.imports.located_document import MOST_BYTES
from gpuplan.api.imports.source_files import SourceFiles
from gpuplan.catalog.runtime.errors import UnusableInput

_SECONDS = 20


class RevisionFiles(SourceFiles):
    """Files below `root`, the git work tree, as they are in `revision`."""

    def __init__(self, root: Path, revision: str) -> None:
        """Raise `UnusableInput` at `against` if git does not know the revision."""
        super().__init__(root)
        known = _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        if known is None:
            message = (
                f"{revision[:80]!r} is no revision that git knows in {str(root)!r}; fetch it first, as with git fetch"
            )
            raise UnusableInput.at("against", message=message)
        self._commit = known.decode().strip()

    def identity(self, path: Path) -> Path:
        """The path below the root without detours; symbolic links of a revision are not followed."""
        return Path(os.path.normpath((self.root or Path()) / path))

    def name(self, path: Path) -> str:
        """The path from the root."""
        return str(self.identity(path).relative_to(self.root or Path()))

    def is_there(self, path: Path) -> bool:
        """Whether the revision has this file."""
        inside = self.identity(path).is_relative_to(self.root or Path())
        return inside and _git(self.root or Path(), "cat-file", "-t", self._object(path)) == b"blob\n"

    def read(self, path: Path, *, most: int = MOST_BYTES) -> bytes:
        """At most `most` + 1 bytes of a file. Raises `UnusableInput` if the revision lacks it."""
        content = _git(self.root or Path(), "cat-file", "blob", self._object(path)) if self.is_there(path) else None
        if content is None:
            raise UnusableInput.at("from", message=f"{self.name(path)!r} is not in the revision")
        self.names_read.append(self.name(path))
        return content[: most + 1]

    def included(self, named: str, beside: Path | None) -> Path | None:
        """The file of the revision that a configuration names, beside it or under the root; None if it is not there."""
        if not named or len(named) > 1000 or "\0" in named or "$" in named or "{" in named:
            return None
        folders = [*([] if beside is None else [beside.parent]), self.root or Path()]
        return next((folder / named for folder in folders if self.is_there(folder / named)), None)

    def _object(self, path: Path) -> str:
        return f"{self._commit}:{self.name(path)}"


def _git(root: Path, *arguments: str) -> bytes | None:
    """What git prints; None if it fails. Raises `UnusableInput` at `against` if git cannot be run."""
    try:
        done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, check=False, timeout=_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnusableInput.at("against", message=f"git cannot be run: {error}") from None
    return done.stdout if done.returncode == 0 else None
