"""A store made once, copied for each page, and a shell to run the page's commands in."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from api.app import Gpuplan
from api.settings import Environment
from tests.docs.shell import Shell


@pytest.fixture(scope="session")
def store_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite database with the prices that come with gpuplan."""
    path = tmp_path_factory.mktemp("docs") / "gpuplan.sqlite3"
    gpuplan = Gpuplan(Environment(database_url=f"sqlite:///{path}"))
    gpuplan.store.close()
    return path


@pytest.fixture
def make_shell(store_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Shell]]:
    """A scratch folder with a store of its own."""

    def make_store(folder: Path) -> str:
        return f"sqlite:///{shutil.copy(store_file, folder / 'gpuplan.sqlite3')}"

    with ExitStack() as opened:
        yield lambda: Shell(folder=tmp_path, patch=monkeypatch, opened=opened, make_store=make_store)
