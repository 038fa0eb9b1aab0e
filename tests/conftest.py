"""What every test shares: the shared_data skip, and the rule that nothing else may skip in CI."""

import os
from collections.abc import Generator
from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture
def shared_data() -> Path:
    """The folder of other people's facts; skips where it is missing."""
    data = SHARED / "data"
    if not data.is_dir():
        pytest.skip("needs ../shared/data, which is not here")
    return data


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and os.environ.get("GPUPLAN_FORBID_SKIPS") and item.get_closest_marker("shared_data") is None:
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped, which only a missing ../shared may do: {report.longrepr}"
    return report
