"""Reads one file, folder or text of another tool into `TrainingFacts`, and follows the files that it names within the root."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gpuplan.api.imports.command_lines import read_script
from gpuplan.api.imports.derived_facts import hold_processes, state_global_batch
from gpuplan.api.imports.facts import TrainingFacts
from gpuplan.api.imports.formats import huggingface_model
from gpuplan.api.imports.located_document import Located, decoded, read_documents
from gpuplan.api.imports.reader import Overrides, Reader, reader_of, readers
from gpuplan.api.imports.revision_files import RevisionFiles
from gpuplan.api.imports.slurm import state_slurm
from gpuplan.api.imports.software_stack import state_stack
from gpuplan.api.imports.source_files import HandedTexts, SourceFiles, root_of
from gpuplan.api.imports.stored_weights import INDEX, MOST_INDEX_BYTES, state_stored_weights
from gpuplan.catalog.runtime.errors import UnusableInput

#: Files of a model's folder, the first that is there.
_OF_FOLDER = ("config.json",)
_INDEX_ENDING = ".safetensors.index.json"


def read_file(path: Path, root: Path | None = None) -> TrainingFacts:
    """The facts of the file or model folder at `path`; files that it names are read under `root`.

    `root` is the file's git work tree, else its folder, unless given. Raises `UnusableInput`.
    """
    if not path.exists():
        raise UnusableInput.at(
            "from", message=f"{str(path)!r} is not there, and no known model; give a file or a model id"
        )
    base = (root or root_of(path.resolve())).resolve()
    files = SourceFiles(base)
    if path.is_dir():
        path = next((path / name for name in _OF_FOLDER if (path / name).is_file()), path / _OF_FOLDER[0])
    elif path.name.endswith(_INDEX_ENDING):
        path = path.parent / _OF_FOLDER[0]
    content = files.read(path)
    name = files.name(path.resolve())
    facts = _Following(files).all_of(decoded(content, name), name, path)
    index = path.parent / INDEX
    if facts.format == huggingface_model.NAME and files.is_there(index):
        state_stored_weights(files.read(index, most=MOST_INDEX_BYTES), facts)
    return facts


def read_at_revision(path: Path, revision: str) -> TrainingFacts | None:
    """The facts of a file of a git work tree as it is in a revision; None if the revision lacks it.

    Raises `UnusableInput`.
    """
    files = RevisionFiles(root_of(path.resolve()).resolve(), revision)
    real = path.resolve()
    if not files.is_there(real):
        return None
    return _Following(files).all_of(decoded(files.read(real), files.name(real)), files.name(real), real)


def read_text(text: str, name: str) -> TrainingFacts:
    """The facts of a text that was handed over; no file is read. Raises `UnusableInput`."""
    return read_texts({name: text})


def read_texts(texts: Mapping[str, str]) -> TrainingFacts:
    """The facts of the first of these texts by file name, and of those that it names. No file is read.

    Raises `UnusableInput`.
    """
    name = next(iter(texts))
    files = HandedTexts(texts)
    return _Following(files).all_of(decoded(files.read(Path(name)), name), name, Path(name))


@dataclass(slots=True)
class _Following:
    """Follows the files that configurations name, each at most once."""

    files: SourceFiles
    beside: Path | None = None
    seen: set[Path] = field(default_factory=set)
    written: dict[str, str] = field(default_factory=dict)

    def all_of(self, text: str, name: str, path: Path | None) -> TrainingFacts:
        """The facts of the first file and of what it names."""
        facts = TrainingFacts(sha256=hashlib.sha256(text.encode()).hexdigest())
        self._read(text, name, path, facts)
        hold_processes(facts)
        if not facts.format:
            known = ", ".join(reader.name for reader in readers())
            raise UnusableInput.at("from", message=f"{name} has no format that is known; known are {known}")
        facts.missing_files = list(dict.fromkeys(facts.missing_files))
        facts.not_understood = list(dict.fromkeys(facts.not_understood))
        facts.notes = list(dict.fromkeys(facts.notes))
        return facts

    def file(self, named: str, facts: TrainingFacts, over: Overrides | None = None) -> bool:
        """Add the facts of a file that is named, with values of a command line over its own.

        False, and an entry among the missing files, if it is not there.
        """
        if named in self.written:
            text, self.written[named] = self.written[named], ""
            if text.strip():
                self._read(text, f"{named} (written by the script)", None, facts, over)
            return True
        path = self.files.included(named, self.beside)
        if path is None or not self.files.is_there(path):
            facts.missing_files.append(named[:200])
            return False
        real = self.files.identity(path)
        if real not in self.seen:
            self._read(decoded(self.files.read(path), self.files.name(real)), self.files.name(real), path, facts, over)
        return True

    def included_text(self, named: str) -> str | None:
        """The text of a script that another one includes; None, and no other trace, if it is not there."""
        path = self.files.included(named, self.beside)
        if path is None or not self.files.is_there(path):
            return None
        return decoded(self.files.read(path), self.files.name(self.files.identity(path)))

    def script(self, text: str, name: str, line: int, facts: TrainingFacts, variables: dict[str, str]) -> None:
        """Add the facts of the commands of a shell script that starts after `line`."""
        read_script(text, name, facts, self, line=line, known=variables)

    def _read(
        self, text: str, name: str, path: Path | None, facts: TrainingFacts, over: Overrides | None = None
    ) -> None:
        if path is not None:
            self.seen.add(self.files.identity(path))
        facts.files.append(name)
        before, self.beside = self.beside, path or self.beside
        if _is_script(text, name):
            known = state_slurm(text, name, facts)
            facts.format = facts.format or "shell script"
            self.script(text, name, 0, facts, known)
            self.beside = before
            return
        for document in read_documents(text, name):
            reader = reader_of(document)
            if reader is None:
                continue
            takes = over is not None and not reader.overlay and not over.used
            self._state(reader, over.put_over(document) if over is not None and takes else document, facts)
        self.beside = before

    def _state(self, reader: Reader, document: Located, facts: TrainingFacts) -> None:
        first = not facts.format
        facts.format = facts.format or reader.name
        reader.read(document, facts, self)
        state_stack(reader.name, document, facts)
        if not first and reader.overlay:
            state_global_batch(facts)


def _is_script(text: str, name: str) -> bool:
    return text.startswith("#!") or name.endswith((".sh", ".bash", ".slurm", ".sbatch", ".job"))
