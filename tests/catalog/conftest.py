"""An empty database of each kind for the tests of the store: a SQLite file, and PostgreSQL on a real server."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpuplan.catalog.store.store import Store


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database of either kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'gpuplan.sqlite3'}"
    result: str = request.getfixturevalue("postgresql_url")
    return result


@pytest.fixture
def open_store() -> Iterator[Callable[[str], Store]]:
    """Opens stores that are closed when the test ends."""
    stores: list[Store] = []

    def open_one(url: str) -> Store:
        stores.append(Store.open(url))
        return stores[-1]

    yield open_one
    for store in stores:
        store.close()


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed SQLite store with its tables and nothing in them: a copy of it costs a fifth of making one."""
    path = tmp_path_factory.mktemp("empty") / "gpuplan.sqlite3"
    Store.open(f"sqlite:///{path}").close()
    return path


@pytest.fixture
def store(url: str, open_store: Callable[[str], Store], empty_store: Path) -> Store:
    """An empty store of either kind."""
    if url.startswith("sqlite"):
        shutil.copy(empty_store, url.removeprefix("sqlite:///"))
    return open_store(url)
