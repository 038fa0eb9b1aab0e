"""A key that has expired opens nothing, whatever this machine's clock did since the key was last looked up."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gpuplan.api.schemas.settings_file import Environment
from gpuplan.api.security.access_settings import AccessSettings, Variables
from gpuplan.api.security.authentication import KNOWN_SECONDS, Authenticator, Unauthenticated
from gpuplan.api.security.authorization import Requester
from gpuplan.api.security.identity import LOCAL
from gpuplan.api.services.composition import Services, open_services
from gpuplan.catalog.store.access_store import AccessStore


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
def gpuplan(tmp_path: Path) -> Iterator[Services]:
    gpuplan = open_services(Environment(database_url=f"sqlite:///{tmp_path / 'gate.sqlite3'}"))
    yield gpuplan
    gpuplan.store.close()


@pytest.fixture
def authenticator(gpuplan: Services, clocks: Clocks) -> Authenticator:
    return Authenticator(gpuplan.store.access, AccessSettings(variables=Variables(), oidc=None, admin_key=None))


@pytest.fixture
def key(gpuplan: Services) -> str:
    return str(gpuplan.api_keys.make({"name": "a day", "scope": "plan", "expires": "24h"}, now=datetime.now(UTC)).key)


def opens(authenticator: Authenticator, text: str, *, session: bool = False) -> bool:
    if authenticator.known(text, session=session) is not None:
        return True
    try:
        authenticator.identify(text, session=session)
    except Unauthenticated:
        return False
    return True


@pytest.mark.parametrize("session", [False, True])
def test_a_key_in_use_opens_nothing_at_the_first_request_after_a_jump_past_its_expiry(
    authenticator: Authenticator, key: str, clocks: Clocks, session: bool
) -> None:
    shown = authenticator.log_in(key, Requester(identity=LOCAL))[0] if session else key
    authenticator.identify(shown, session=session)
    assert authenticator.known(shown, session=session) is not None  # nobody is asked for the next seconds
    clocks.is_set(timedelta(days=2))
    assert not opens(authenticator, shown, session=session)
    assert not opens(authenticator, shown, session=session)


def test_a_clock_that_is_set_back_revives_no_key_that_has_expired(
    authenticator: Authenticator, key: str, clocks: Clocks
) -> None:
    assert opens(authenticator, key)
    clocks.passes(timedelta(days=2))
    assert not opens(authenticator, key)
    clocks.is_set(timedelta(days=-2))
    assert not opens(authenticator, key)


def test_a_clock_that_was_set_forward_by_mistake_and_back_locks_nobody_out(
    authenticator: Authenticator, key: str, clocks: Clocks
) -> None:
    clocks.is_set(timedelta(days=2))
    assert not opens(authenticator, key)
    clocks.is_set(timedelta(days=-2))
    assert opens(authenticator, key)


def test_only_what_has_opened_something_is_looked_up_for_an_address_that_fails(
    authenticator: Authenticator, key: str, gpuplan: Services, clocks: Clocks, monkeypatch: pytest.MonkeyPatch
) -> None:
    authenticator.identify(key)
    authenticator.forget()
    clocks.passes(timedelta(seconds=KNOWN_SECONDS + 1))
    assert authenticator.known(key) is None
    assert authenticator.was_known(key)
    gpuplan.api_keys.revoke(key.split("_")[1])
    assert not opens(authenticator, key)
    assert not authenticator.was_known(key)
    asked: list[str] = []
    monkeypatch.setattr(AccessStore, "find_key", lambda _, key_id: asked.append(key_id))
    assert not opens(authenticator, key)
    assert asked == [key.split("_")[1]]
