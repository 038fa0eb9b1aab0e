"""What is changed in Python, ssl and pytest-xdist for all tests, to save time alone. No test needs any of it.

A part that saves less than 3 % of the suite is to go.
"""

import gc
import ssl
from collections.abc import Generator, Iterator
from functools import cache
from typing import Any

import pytest
from xdist.remote import Producer  # type: ignore[import-untyped]
from xdist.scheduler import LoadGroupScheduling  # type: ignore[import-untyped]

#: Files that share what takes seconds to make: a browser, counts of torch, every file of each export, two thousand measured runs.
TOGETHER = (
    ("browser", "_in_the_browser.py"),
    ("torch", "tests/api/profiling/"),
    ("exports", "tests/api/exports/test_by_real_tools.py"),
    ("exports", "tests/api/exports/test_schemas.py"),
    ("exports", "tests/api/exports/test_yaml_text.py"),
    ("measured runs", "test_measured_runs.py"),
    ("measured runs", "test_fitting.py"),
)


@pytest.fixture(scope="session", autouse=True)
def certificates_are_read_once() -> Iterator[None]:
    """Keep the default context of a certificate file: httpx reads a hundred certificates again for each client."""
    usual, shared = ssl.create_default_context, cache(ssl.create_default_context)

    def create(*of_whom: Any, **where: Any) -> ssl.SSLContext:
        return (shared if where.keys() == {"cafile"} else usual)(*of_whom, **where)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ssl, "create_default_context", create)
        yield


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Leave what collection made out of every later search for garbage, and search less often."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(50_000)
        gc.enable()


class ByWhatTheyShare(LoadGroupScheduling):  # type: ignore[misc]
    """Run the tests of one file in one worker, so that what they share is made once; some files share as well.

    Tests of the planner share next to nothing: each is a group by itself; they come last and end both workers together.
    The mark `xdist_group` has no effect here: this pytest keeps the names of tests where that xdist does not write them.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        for group, end_or_folder in TOGETHER:
            if file.endswith(end_or_folder) or file.startswith(end_or_folder):
                return group
        return nodeid if file.startswith("tests/planner/") else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadGroupScheduling | None:
    """Schedule by `ByWhatTheyShare` under `--dist loadgroup`."""
    return ByWhatTheyShare(config, log) if config.getvalue("dist") == "loadgroup" else None
