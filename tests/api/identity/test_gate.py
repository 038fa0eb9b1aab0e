"""A key that has expired opens nothing, whatever this machine's clock did since the key was last looked up."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from api.app import Gpuplan
from api.identity.asking import Asking
from api.identity.gate import KNOWN_SECONDS, Gate, Unauthenticated
from api.identity.settings import AccessSettings, Variables
from api.identity.who import LOCAL
from api.settings import Environment
from catalog.access_store import AccessStore


class Clocks:
    """The wall clock and the monotonic one, which go on by themselves and may be set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.set_by = self.passed = 0.0
        wall, monotonic = time.time, time.monotonic
        monkeypatch.setattr("time.time", lambda: wall() + self.set_by + self.passed)
        monkeypatch.setattr("time.monotonic", lambda: monotonic() + self.passed)

    def is_set(self, span: timedelta) -> None:
        self.set_by += span.total_seconds()

    def passes(self, span: timedelta) -> None:
        self.passed += span.total_seconds()


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    return Clocks(monkeypatch)


@pytest.fixture
def gpuplan(tmp_path: Path) -> Iterator[Gpuplan]:
    found = Gpuplan(Environment(database_url=f"sqlite:///{tmp_path / 'gate.sqlite3'}"))
    yield found
    found.store.close()


@pytest.fixture
def gate(gpuplan: Gpuplan, clocks: Clocks) -> Gate:
    return Gate(gpuplan.store.access, AccessSettings(variables=Variables(), oidc=None, admin_key=None))


@pytest.fixture
def key(gpuplan: Gpuplan) -> str:
    return str(gpuplan.make_key({"name": "a day", "scope": "plan", "expires": "24h"}, now=datetime.now(UTC))["key"])


def opens(gate: Gate, text: str, *, session: bool = False) -> bool:
    if gate.known(text, session=session) is not None:
        return True
    try:
        gate.identify(text, session=session)
    except Unauthenticated:
        return False
    return True


@pytest.mark.parametrize("session", [False, True])
def test_a_key_in_use_opens_nothing_at_the_first_request_after_a_jump_past_its_expiry(
    gate: Gate, key: str, clocks: Clocks, session: bool
) -> None:
    shown = gate.log_in(key, Asking(identity=LOCAL))[0] if session else key
    gate.identify(shown, session=session)
    assert gate.known(shown, session=session) is not None  # nobody is asked for the next seconds
    clocks.is_set(timedelta(days=2))
    assert not opens(gate, shown, session=session)
    assert not opens(gate, shown, session=session)


def test_a_clock_that_is_set_back_revives_no_key_that_has_expired(gate: Gate, key: str, clocks: Clocks) -> None:
    assert opens(gate, key)
    clocks.passes(timedelta(days=2))
    assert not opens(gate, key)
    clocks.is_set(timedelta(days=-2))
    assert not opens(gate, key)


def test_a_clock_that_was_set_forward_by_mistake_and_back_locks_nobody_out(
    gate: Gate, key: str, clocks: Clocks
) -> None:
    clocks.is_set(timedelta(days=2))
    assert not opens(gate, key)
    clocks.is_set(timedelta(days=-2))
    assert opens(gate, key)


def test_only_what_has_opened_something_is_looked_up_for_an_address_that_fails(
    gate: Gate, key: str, gpuplan: Gpuplan, clocks: Clocks, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate.identify(key)
    gate.forget()
    clocks.passes(timedelta(seconds=KNOWN_SECONDS + 1))
    assert gate.known(key) is None
    assert gate.was_known(key)
    gpuplan.revoke_key(key.split("_")[1])
    assert not opens(gate, key)
    assert not gate.was_known(key)
    asked: list[str] = []
    monkeypatch.setattr(AccessStore, "find_key", lambda _, key_id: asked.append(key_id))
    assert not opens(gate, key)
    assert asked == [key.split("_")[1]]
