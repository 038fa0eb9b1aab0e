"""The files that an import may read: those under one root folder, symbolic links resolved first."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gpuplan.api.imports.located_document import MOST_BYTES
from gpuplan.catalog.runtime.errors import UnusableInput

#: Most files that one import follows, from a wrapper to a script to its configurations.
_MOST_FILES = 16
#: Parents that are searched for a git work tree.
_MOST_PARENTS = 64


def root_of(path: Path) -> Path:
    """The git work tree that holds `path`, else its folder."""
    folder = path if path.is_dir() else path.parent
    for parent in [folder, *folder.parents][:_MOST_PARENTS]:
        if (parent / ".git").exists():
            return parent
    return folder


@dataclass(slots=True)
class SourceFiles:
    """Reads files under `root`; without a root it reads none, so that only text that was handed over counts."""

    root: Path | None
    names_read: list[str] = field(default_factory=list)

    def name(self, path: Path) -> str:
        """The name of a file in messages: relative to the root."""
        if self.root is not None and path.is_relative_to(self.root):
            return str(path.relative_to(self.root))
        return path.name

    def identity(self, path: Path) -> Path:
        """The one path of a file that can be named in several ways."""
        return path.resolve()

    def is_there(self, path: Path) -> bool:
        """Whether this is a file."""
        return path.is_file()

    def read(self, path: Path, *, most: int = MOST_BYTES) -> bytes:
        """At most `most` + 1 bytes of a file. Raises `UnusableInput` if it is outside the root or cannot be read."""
        real = self._inside(path)
        if len(self.names_read) >= _MOST_FILES:
            raise UnusableInput.at(
                "from", message=f"names more than {_MOST_FILES} files; name the configuration itself"
            )
        try:
            if not real.is_file():
                raise UnusableInput.at("from", message=f"{str(path)!r} is no regular file")
            with real.open("rb") as file:
                content = file.read(most + 1)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise UnusableInput.at("from", message=f"cannot read {str(path)!r}: {reason}") from None
        self.names_read.append(self.name(real))
        return content

    def included(self, named: str, beside: Path | None) -> Path | None:
        """The file that a configuration names, beside it or under the root; None if it is not there.

        Raises `UnusableInput` if it leads out of the root.
        """
        if self.root is None or not named or len(named) > 1000 or "\0" in named or "$" in named or "{" in named:
            return None
        folders = [*([] if beside is None else [beside.parent]), self.root]
        outside = None
        for folder in folders:
            path = Path(os.path.normpath(folder / named))
            if not path.resolve().is_relative_to(self.root):
                outside = path
            elif path.exists():
                return path
        if outside is not None and not Path(named).is_absolute():
            raise UnusableInput.at(
                "from", message=f"{named!r} leads out of {str(self.root)!r}; give --root if it may be read"
            )
        return None

    def _inside(self, path: Path) -> Path:
        if self.root is None:
            raise UnusableInput.at("from", message="files are not read here; hand the text over")
        try:
            real = path.resolve(strict=True)
        except (OSError, RuntimeError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "it leads in a circle"
            raise UnusableInput.at("from", message=f"cannot read {str(path)!r}: {reason}") from None
        if not real.is_relative_to(self.root):
            raise UnusableInput.at(
                "from", message=f"{str(path)!r} leads out of {str(self.root)!r}; give --root if it may be read"
            )
        return real


class HandedTexts(SourceFiles):
    """Texts that were handed over by file name; no file is read."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        """These texts, by the paths under which they may be named."""
        super().__init__(None)
        self._texts = {Path(os.path.normpath(name)): text for name, text in texts.items()}

    def name(self, path: Path) -> str:
        """The name under which a text was handed over."""
        return str(self.identity(path))

    def identity(self, path: Path) -> Path:
        """The path without detours."""
        return Path(os.path.normpath(path))

    def is_there(self, path: Path) -> bool:
        """Whether this text was handed over."""
        return self.identity(path) in self._texts

    def read(self, path: Path, *, most: int = MOST_BYTES) -> bytes:
        """At most `most` + 1 bytes of a text."""
        return self._texts[self.identity(path)].encode()[: most + 1]

    def included(self, named: str, beside: Path | None) -> Path | None:
        """The text that a configuration names by its path, beside itself, or by its last part alone."""
        if not named or len(named) > 1000:
            return None
        folder = Path() if beside is None else beside.parent
        return next(
            (path for path in (folder / named, Path(named), Path(Path(named).name)) if self.is_there(path)), None
        )
