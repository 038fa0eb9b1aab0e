"""Tokens of an issuer: only those that it signed for this service, and that hold now, say who asks."""

import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest

import gpuplan.api.security.oidc as oidc
from gpuplan.api.security.access_settings import OidcSettings
from gpuplan.api.security.oidc import IssuerDown, NotAccepted
from gpuplan.catalog.runtime.errors import UnusableInput
from tests.api.security.issuer_for_tests import AUDIENCE, Issuer, issuing, public_pem


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with issuing() as fake_issuer:
        yield fake_issuer


def settings(issuer: Issuer, **changes: Any) -> OidcSettings:
    usual: dict[str, Any] = {
        "issuer": issuer.url,
        "audience": AUDIENCE,
        "scopes_claim": "scope",
        "scopes": {"gpuplan:plan": "plan", "gpuplan:admin": "admin"},
    }
    return OidcSettings(**usual | changes)


@pytest.fixture
def verifier(issuer: Issuer) -> Iterator[oidc.Issuer]:
    new_verifier = oidc.Issuer(settings(issuer))
    yield new_verifier
    new_verifier.close()


def test_a_token_says_who_asks_and_what_they_may(issuer: Issuer, verifier: oidc.Issuer) -> None:
    identity, until = verifier.identity(issuer.token(email="ada@example.com"))
    assert (identity.id, identity.name, identity.via) == ("oidc:ada", "ada@example.com", "oidc")
    assert identity.scopes == {"read", "plan"}
    assert 200 < until - time.time() <= 301


def test_a_name_that_no_terminal_should_show_is_passed_over(issuer: Issuer, verifier: oidc.Issuer) -> None:
    identity, _ = verifier.identity(issuer.token(email="\x1b[31mroot", preferred_username=["x"], name="Ada"))
    assert identity.name == "Ada"
    assert verifier.identity(issuer.token(name="a" * 10_000))[0].name == "ada"


def as_claim(name: str, value: object) -> dict[str, Any]:
    return {name: value}


@pytest.mark.parametrize(
    ("claim_name", "value", "path"),
    [
        ("groups", ["others", "gpuplan:admin"], "groups"),
        ("realm_access", {"roles": ["gpuplan:admin"]}, "realm_access.roles"),
        ("https://example.com/roles", "x gpuplan:admin", "https://example.com/roles"),
    ],
)
def test_scopes_come_from_the_claim_that_is_named(issuer: Issuer, claim_name: str, value: object, path: str) -> None:
    verifier = oidc.Issuer(settings(issuer, scopes_claim=path))
    identity, _ = verifier.identity(issuer.token(**as_claim(claim_name, value)))
    assert "admin" in identity.scopes
    nobody, _ = verifier.identity(issuer.token(**as_claim(claim_name, {"odd": 1})))
    assert not nobody.scopes
    verifier.close()


def by_hand(header: dict[str, Any], claims: dict[str, Any], secret: bytes | None) -> str:
    """A token that no library would make."""
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in (header, claims)]
    signed = b".".join(parts)
    signature = b"" if secret is None else hmac.new(secret, signed, hashlib.sha256).digest()
    return (signed + b"." + base64.urlsafe_b64encode(signature).rstrip(b"=")).decode()


def taken(verifier: oidc.Issuer, token: str) -> bool:
    try:
        verifier.identity(token)
    except NotAccepted:
        return False
    return True


def test_no_forged_or_foreign_token_is_taken(issuer: Issuer, verifier: oidc.Issuer) -> None:
    now = int(time.time())
    claims = {"iss": issuer.url, "aud": AUDIENCE, "sub": "eve", "exp": now + 300, "scope": "gpuplan:admin"}
    good = issuer.token()
    forged = {
        "unsigned": by_hand({"alg": "none"}, claims, None),
        "unsigned in other letters": by_hand({"alg": "nOnE", "kid": "first"}, claims, None),
        "signed with the public key as a secret": by_hand(
            {"alg": "HS256", "kid": "first"}, claims, public_pem("first")
        ),
        "signed by another": issuer.token(signed_by="second"),
        "of an unknown key": issuer.token(kid="nobody"),
        "for another audience": issuer.token(aud="somebody-else"),
        "for no audience": issuer.token(aud=None),
        "by another issuer": issuer.token(iss="https://elsewhere.example"),
        "expired": issuer.token(exp=now - 60),
        "without an end": issuer.token(exp=None),
        "not yet": issuer.token(nbf=now + 300),
        "of nobody": issuer.token(sub=None),
        "of an empty subject": issuer.token(sub=""),
        "of a subject of blanks": issuer.token(sub="  "),
        "of a subject that no database takes": issuer.token(sub="a\x00b"),
        "of half a character": issuer.token(sub="\ud800"),
        "of an endless subject": issuer.token(sub="a" * 256),
        "for longer than numbers go": issuer.token(exp=10**400),
        "of another algorithm": issuer.token(algorithm="PS256"),
        "changed": good[:-8] + ("AAAAAAAA" if not good.endswith("AAAAAAAA") else "BBBBBBBB"),
        "no token": "a.b.c",
        "with a key of its own": by_hand({"alg": "RS256", "jwk": {"kty": "oct", "k": "eA"}}, claims, b"x"),
        "huge": issuer.token(filler="x" * 20_000),
        "deep": f"{base64.urlsafe_b64encode(b'[' * 9000).decode()}.e30.e30",
    }
    assert [name for name, token in forged.items() if taken(verifier, token)] == []
    assert taken(verifier, good)


def test_clocks_may_differ_a_little(issuer: Issuer, verifier: oidc.Issuer) -> None:
    now = int(time.time())
    assert verifier.identity(issuer.token(exp=now - 10))
    assert verifier.identity(issuer.token(nbf=now + 10, iat=now + 10))


def test_keys_are_kept_and_unknown_ones_asked_for_now_and_then(
    issuer: Issuer, verifier: oidc.Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(5):
        verifier.identity(issuer.token())
    assert issuer.asked == ["/.well-known/openid-configuration", "/keys"]
    for _ in range(20):
        with pytest.raises(NotAccepted):
            verifier.identity(issuer.token(kid="made-up"))
    assert len(issuer.asked) == 2
    # The issuer now signs with another key: taken as soon as it may be asked again.
    issuer.shown = ["second"]
    monkeypatch.setattr(oidc, "ASK_AGAIN_SECONDS", 0.0)
    assert verifier.identity(issuer.token(kid="second", signed_by="second"))
    with pytest.raises(NotAccepted):
        verifier.identity(issuer.token())


def test_an_issuer_that_is_down_is_said_and_known_keys_go_on(
    issuer: Issuer, verifier: oidc.Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oidc, "ASK_AGAIN_SECONDS", 0.0)
    issuer.down = True
    with pytest.raises(IssuerDown):
        verifier.identity(issuer.token())
    issuer.down = False
    assert verifier.identity(issuer.token())
    issuer.down = True
    monkeypatch.setattr(oidc, "KEYS_LAST_SECONDS", 0.0)
    assert verifier.identity(issuer.token())


def test_keys_are_not_taken_from_a_configuration_of_another_issuer(issuer: Issuer, verifier: oidc.Issuer) -> None:
    issuer.named = "https://elsewhere.example"
    with pytest.raises(IssuerDown, match="another issuer"):
        verifier.identity(issuer.token())


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({"OIDC_ISSUER": "http://issuer.example"}, "GPUPLAN_OIDC_ISSUER"),
        ({"OIDC_ISSUER": "https://user:pw@issuer.example"}, "GPUPLAN_OIDC_ISSUER"),
        ({"OIDC_ISSUER": "https://issuer.example"}, "GPUPLAN_OIDC_AUDIENCE"),
        (
            {"OIDC_ISSUER": "https://issuer.example", "OIDC_AUDIENCE": "x", "OIDC_SCOPES": "team=root"},
            "GPUPLAN_OIDC_SCOPES",
        ),
        ({"REQUESTS_PER_MINUTE": "0"}, "GPUPLAN_REQUESTS_PER_MINUTE"),
        ({"ADMIN_KEY": "short"}, "GPUPLAN_ADMIN_KEY"),
        ({"ADMIN_KEY": "with blanks " * 4}, "GPUPLAN_ADMIN_KEY"),
        ({"ADMIN_KEY": "x" * 40}, "GPUPLAN_ADMIN_KEY"),
        ({"ADMIN_KEY": "changeme-" * 5}, "GPUPLAN_ADMIN_KEY"),
        ({"ADMIN_KEY": "abcdefghijklmnopqrstuvwxyz0123456789"}, "GPUPLAN_ADMIN_KEY"),
        ({"ADMIN_KEY_FILE": "/no/such/file"}, "GPUPLAN_ADMIN_KEY_FILE"),
    ],
)
def test_settings_that_cannot_be_used_are_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], named: str
) -> None:
    from gpuplan.api.security.access_settings import access_settings

    for name, value in variables.items():
        monkeypatch.setenv(f"GPUPLAN_{name}", value)
    with pytest.raises(UnusableInput) as refused:
        access_settings()
    assert named in {fault.field for fault in refused.value.faults}
    assert "with blanks with" not in str(refused.value)
    assert "pw@" not in str(refused.value)


#: Drawn once from `openssl rand`.
@pytest.mark.parametrize(
    "key",
    [
        "59fe407af60dd2ee8b94d793988da19b",
        "ij0nntGTsJ6rxwTxdPN8YsN/z+H9+ZP2M534JALDEJo=",
    ],
)
def test_random_keys_are_taken(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    from gpuplan.api.security.access_settings import access_settings

    monkeypatch.setenv("GPUPLAN_ADMIN_KEY", key)
    assert access_settings().admin_key == key


def test_a_known_key_waits_for_nobody_who_makes_the_service_ask_a_slow_issuer(
    issuer: Issuer, verifier: oidc.Issuer
) -> None:
    token = issuer.token()
    assert verifier.identity(token)[0].id == "oidc:ada"
    # Somebody with a token whose key nobody knows has the issuer asked, which takes its time.
    with verifier._lock:
        answers: list[Any] = []
        thread = threading.Thread(target=lambda: answers.append(verifier.identity(token)), daemon=True)
        thread.start()
        thread.join(60)
        assert answers


def test_keys_past_their_time_go_on_while_the_issuer_is_asked_for_others(
    issuer: Issuer, verifier: oidc.Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = issuer.token()
    verifier.identity(token)
    monkeypatch.setattr(oidc, "KEYS_LAST_SECONDS", 0.0)
    with verifier._lock:
        assert within_seconds(lambda: verifier.identity(token)[0].id) == "oidc:ada"


def test_no_more_than_a_few_threads_wait_for_a_slow_issuer(issuer: Issuer, verifier: oidc.Issuer) -> None:
    verifier.identity(issuer.token())
    made_up = issuer.token(kid="made-up")
    with verifier._lock:
        waiting = [
            threading.Thread(target=taken, args=(verifier, made_up), daemon=True) for _ in range(oidc.MOST_WAITING)
        ]
        for thread in waiting:
            thread.start()
        while verifier._waiting.acquire(blocking=False):  # until all of them wait
            verifier._waiting.release()
            time.sleep(0.01)
        with pytest.raises(IssuerDown, match="is being asked"):
            within_seconds(lambda: verifier.identity(made_up))
        assert within_seconds(lambda: verifier.identity(issuer.token())[0].id) == "oidc:ada"
    for thread in waiting:
        thread.join(60)
    assert not taken(verifier, made_up)


def within_seconds[Answer](ask: Callable[[], Answer]) -> Answer:
    """The answer, or a failure where it does not come: somebody is made to wait."""
    future: Future[Answer] = Future()

    def answer() -> None:
        try:
            future.set_result(ask())
        except (NotAccepted, IssuerDown) as error:
            future.set_exception(error)

    threading.Thread(target=answer, daemon=True).start()
    return future.result(60)
