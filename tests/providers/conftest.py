"""What fails is asked for again as often as ever, but nobody waits long in between."""

import time
from types import SimpleNamespace

import pytest

MOST_SECONDS = 0.01


def a_moment(seconds: float) -> None:
    """Other threads have their turn, as in the longest of waits."""
    time.sleep(min(seconds, MOST_SECONDS))


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the attempts of our own that tenacity counts."""
    monkeypatch.setattr("tenacity.nap.time", SimpleNamespace(sleep=a_moment))
