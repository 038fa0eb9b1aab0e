"""A shell to run the commands of a page in, each page on a copy of one store."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.docs.shell import Shell


@pytest.fixture
def make_shell(embedded_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Shell]]:
    """A scratch folder with a store of its own."""

    def make_store(folder: Path) -> str:
        return f"sqlite:///{shutil.copy(embedded_store, folder / 'gpuplan.sqlite3')}"

    with ExitStack() as exit_stack:
        yield lambda: Shell(folder=tmp_path, patch=monkeypatch, exit_stack=exit_stack, make_store=make_store)
