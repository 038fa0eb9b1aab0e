"""Keys over HTTP: made, used, rotated, revoked; sessions of browsers; how often one may ask; and who did what."""

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.requests import Request

from gpuplan.api.http.authentication import access_by, session_cookie
from gpuplan.api.http.http_service import create_service
from gpuplan.api.http.request_limits import place_of
from gpuplan.api.security.access_settings import AccessSettings, OidcSettings, Variables
from gpuplan.catalog.store.access_store import AccessStore
from tests.api.conftest import serving
from tests.api.http.guarded import ADMIN_KEY, Guarded, guarded, limited
from tests.api.security.issuer_for_tests import AUDIENCE, issuing
from tests.patience import DAY, MINUTE, enough_left


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("keys")


@pytest.fixture(scope="module")
def service(embedded_store: Path, folder: Path) -> Iterator[Guarded]:
    with guarded(embedded_store, folder) as guarded_service:
        yield guarded_service


def made(service: Guarded, **document: Any) -> dict[str, Any]:
    answer = service.ask("POST", "/v1/keys", "admin", json=document)
    assert answer.status_code == 201, answer.text
    assert answer.headers["cache-control"] == "no-store"
    made_key: dict[str, Any] = answer.json()
    return made_key


def test_a_key_is_shown_once_and_kept_as_a_hash(service: Guarded, folder: Path) -> None:
    key = made(service, name="ci", scope="read", expires="90d")
    assert re.fullmatch(r"gpk_[0-9a-f]{12}_[A-Za-z0-9_-]{43}", key["key"])
    secret = key["key"].split("_", 2)[2]
    listed = service.ask("GET", "/v1/keys", "admin")
    assert secret not in listed.text
    [mine] = [listed_key for listed_key in listed.json()["keys"] if listed_key["id"] == key["id"]]
    assert (mine["name"], mine["scope"], mine["state"], mine["last_used_at"]) == ("ci", "read", "holds", None)
    service.gpuplan.store.close()
    for file in folder.iterdir():
        assert secret.encode() not in file.read_bytes()


def test_a_key_that_is_used_says_when(service: Guarded) -> None:
    key = made(service, name="used")
    assert service.ask("GET", "/v1/offers?limit=1", key["key"]).status_code == 200
    [mine] = [
        listed_key
        for listed_key in service.ask("GET", "/v1/keys", "admin").json()["keys"]
        if listed_key["id"] == key["id"]
    ]
    first = mine["last_used_at"]
    assert first is not None
    assert service.ask("GET", "/v1/offers?limit=1", key["key"]).status_code == 200
    assert service.gpuplan.store.access.key(key["id"]).last_used_at.isoformat() == first  # type: ignore[union-attr]


def test_a_key_that_is_rotated_or_revoked_opens_nothing_any_more(service: Guarded) -> None:
    old = made(service, name="turning")
    assert service.ask("GET", "/v1/presets", old["key"]).status_code == 200
    new = service.ask("POST", f"/v1/keys/{old['id']}/rotate", "admin").json()
    assert new["id"] == old["id"]
    assert service.ask("GET", "/v1/presets", old["key"]).status_code == 401
    assert service.ask("GET", "/v1/presets", new["key"]).status_code == 200
    assert service.ask("DELETE", f"/v1/keys/{old['id']}", "admin").json()["state"] == "revoked"
    assert service.ask("GET", "/v1/presets", new["key"]).status_code == 401
    assert service.ask("POST", f"/v1/keys/{old['id']}/rotate", "admin").status_code == 422
    assert service.ask("DELETE", "/v1/keys/0123456789ab", "admin").status_code == 404


@pytest.mark.parametrize(
    ("document", "pointer"),
    [
        ({"scope": "plan"}, "/name"),
        ({"name": ""}, "/name"),
        ({"name": "a\r\nSet-Cookie: x=1"}, "/name"),
        ({"name": "x" * 81}, "/name"),
        ({"name": "x", "scope": "root"}, "/scope"),
        ({"name": "x", "expires": "2020-01-01T00:00Z"}, "/expires"),
        ({"name": "x", "expires": "soon"}, "/expires"),
        ({"name": "x", "plans_per_day": 0}, "/plans_per_day"),
        ({"name": "x", "requests_per_minute": 1e30}, "/requests_per_minute"),
        ({"name": "x", "secret": "mine"}, "/secret"),
    ],
)
def test_a_key_that_cannot_be_made_is_refused_by_field(service: Guarded, document: Any, pointer: str) -> None:
    before = len(service.gpuplan.store.access.every_key())
    answer = service.ask("POST", "/v1/keys", "admin", json=document)
    assert answer.status_code == 422
    assert pointer in {error["pointer"] for error in answer.json()["errors"]}
    assert len(service.gpuplan.store.access.every_key()) == before


def log_in(service: Guarded, key: str, next_: str = "/", **headers: str) -> httpx.Response:
    service.client.cookies.clear()
    return service.client.post("/login", data={"key": key, "next": next_}, headers=headers)


def session(answer: httpx.Response) -> str:
    cookie: str = answer.headers["set-cookie"].split("=", 1)[1].split(";")[0]
    return cookie


def test_a_browser_logs_in_reads_and_logs_out(service: Guarded) -> None:
    answer = log_in(service, service.keys["plan"], "/catalogue?provider=aws")
    assert (answer.status_code, answer.headers["location"]) == (303, "/catalogue?provider=aws")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "expires=" in cookie
    assert service.keys["plan"] not in str(answer.headers)
    with_cookie = {"Cookie": f"gpuplan={session(answer)}"}
    assert service.ask("GET", "/v1/presets", headers=with_cookie).status_code == 200
    assert service.ask("GET", "/v1/keys", headers=with_cookie).status_code == 403
    # What a form of another site sends along with the cookie changes nothing.
    for elsewhere in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://elsewhere.example"}):
        assert service.ask("POST", "/v1/plans", headers=with_cookie | elsewhere).status_code == 403
        assert service.ask("POST", "/logout", headers=with_cookie | elsewhere).status_code == 403
    assert service.ask("POST", "/v1/plans", headers=with_cookie | {"Sec-Fetch-Site": "same-origin"}).status_code == 415
    out = service.ask("POST", "/logout", headers=with_cookie)
    assert out.headers["location"] == "/login"
    assert service.ask("GET", "/v1/presets", headers=with_cookie).status_code == 401


def test_a_session_ends_with_the_key_that_opened_it(service: Guarded) -> None:
    key = made(service, name="short", scope="read")
    with_cookie = {"Cookie": f"gpuplan={session(log_in(service, key['key']))}"}
    assert service.ask("GET", "/v1/presets", headers=with_cookie).status_code == 200
    service.ask("POST", f"/v1/keys/{key['id']}/rotate", "admin")
    assert service.ask("GET", "/v1/presets", headers=with_cookie).status_code == 401


def test_the_admin_key_of_the_environment_opens_a_session_too(service: Guarded) -> None:
    with_cookie = {"Cookie": f"gpuplan={session(log_in(service, ADMIN_KEY))}"}
    assert service.ask("GET", "/v1/keys", headers=with_cookie).status_code == 200


@pytest.mark.parametrize("key", ["", "gpk_no-key", "x" * 5000, "\x00", "gpk_0123456789ab_" + "x" * 43])
def test_what_opens_nothing_gets_the_form_again_and_no_cookie(service: Guarded, key: str) -> None:
    answer = log_in(service, key)
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers
    assert "This key is not valid" in answer.text
    assert len(key) < 5 or key not in answer.text


@pytest.mark.parametrize(
    "back", ["https://elsewhere.example", "//elsewhere.example", "/\\elsewhere.example", "/a\r\nX: y"]
)
def test_nobody_is_led_elsewhere_after_logging_in(service: Guarded, back: str) -> None:
    assert log_in(service, service.keys["read"], back).headers["location"] == "/"


def test_pages_say_where_they_may_load_from_and_are_not_kept(service: Guarded) -> None:
    headers = service.ask("GET", "/login").headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "'unsafe-inline'" not in headers["content-security-policy"]
    assert headers["x-frame-options"] == "DENY"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert headers["cache-control"] == "no-store"
    assert {"referrer-policy", "permissions-policy", "x-content-type-options"} <= set(headers)
    with_key = service.ask("GET", "/", "read").headers
    assert with_key["cache-control"] == "no-store"


def test_requests_a_minute_are_said_and_held(folder: Path, service: Guarded) -> None:
    key = made(service, name="slow", requests_per_minute=3)
    answers = [service.ask("GET", "/v1/presets", key["key"]) for _ in range(5)]
    assert [answer.status_code for answer in answers][:3] == [200, 200, 200]
    assert answers[0].headers["ratelimit-policy"].startswith('"requests";q=3;w=60')
    assert re.fullmatch(r'"requests";r=2;t=\d+', answers[0].headers["ratelimit"])
    refused = answers[-1]
    assert refused.status_code == 429
    assert refused.headers["content-type"] == "application/problem+json"
    assert 1 <= int(refused.headers["retry-after"]) <= 120
    assert service.ask("GET", "/v1/presets", "read").status_code == 200


def test_plans_a_day_are_counted_where_every_process_sees_them(service: Guarded, job: dict[str, Any]) -> None:
    enough_left(DAY, 60)
    key = made(service, name="few", plans_per_day=2)["key"]
    limits = AccessSettings(variables=Variables(), oidc=None, admin_key=None)
    another = create_service(service.gpuplan, access=access_by(service.gpuplan.store.access, limits))
    with serving(another) as elsewhere:
        asked = {"Authorization": f"Bearer {key}"}
        assert service.ask("POST", "/v1/plans", key, json=job | {"name": "one"}).status_code == 200
        assert elsewhere.post("/v1/plans", json=job | {"name": "two"}, headers=asked).status_code == 200
        for refused in (
            service.ask("POST", "/v1/plans", key, json=job | {"name": "three"}),
            elsewhere.post("/v1/plans", json=job | {"name": "four"}, headers=asked),
        ):
            assert refused.status_code == 429
            assert "2 plans a day" in refused.json()["detail"]
            assert 0 < int(refused.headers["retry-after"]) <= 86_400
    # A process that knows computes nothing any more, and says the same.
    again = service.ask("POST", "/v1/plans", key, json=job | {"name": "five", "workload": {"kind": "unread"}})
    assert again.status_code == 429
    names = {plan.job["name"] for plan in _plans(service)}
    assert {"one", "two"} <= names
    assert not {"three", "four"} & names


def _plans(service: Guarded) -> list[Any]:
    with sqlite3.connect(service.gpuplan.store.name) as connection:
        ids = [row[0] for row in connection.execute("SELECT id FROM plans")]
    connection.close()
    return [service.gpuplan.store.plan(plan_id) for plan_id in ids]


def refused_logins(service: Guarded) -> list[Any]:
    return [record for record in service.gpuplan.audit_log.page().records if record.outcome == "refused"]


def test_logins_that_fail_are_limited_by_address_and_keys_in_use_go_on(service: Guarded) -> None:
    before = len(refused_logins(service))
    enough_left(MINUTE, 10)
    with limited(service, failed_logins_per_minute=3):
        assert service.ask("GET", "/v1/presets", "read").status_code == 200
        statuses = [service.ask("GET", "/v1/presets", "unknown").status_code for _ in range(5)]
        assert statuses == [401, 401, 401, 429, 429]
        assert log_in(service, "gpk_no-key").status_code == 429
        assert service.ask("GET", "/v1/presets", "read").status_code == 200
        refused = refused_logins(service)
        assert len(refused) - before == 3
        assert {(record.action, record.address) for record in refused[:3]} == {("login", "127.0.0.1")}


def test_the_log_says_who_did_what(service: Guarded, job: dict[str, Any]) -> None:
    sent = {"X-Request-ID": "asked-here"}
    plan = service.ask("POST", "/v1/plans", "plan", json=job | {"name": "logged"}, headers=sent).json()["plan"]["id"]
    entries = service.ask("GET", "/v1/audit?who=plan", "admin").json()["entries"]
    entry_of_plan = next(entry for entry in entries if entry["subject"] == plan)
    assert entry_of_plan["at"]
    assert {name: entry_of_plan[name] for name in ("name", "via", "action", "outcome", "request_id", "address")} == {
        "name": "plan",
        "via": "key",
        "action": "plan",
        "outcome": "planned",
        "request_id": "asked-here",
        "address": "127.0.0.1",
    }


def test_the_log_comes_in_pages_that_miss_nothing(service: Guarded) -> None:
    for number in range(5):
        made(service, name=f"page-{number}")
    whole = service.ask("GET", "/v1/audit", "admin").json()["entries"]
    paged: list[Any] = []
    cursor = ""
    while True:
        page = service.ask("GET", f"/v1/audit?limit=3{cursor}", "admin").json()
        paged += page["entries"]
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
    assert paged == whole
    assert service.ask("GET", "/v1/audit?since=2100-01-01", "admin").json()["entries"] == []
    for wrong in ("since=yesterday", "cursor=x", "limit=0", "who=%00", "odd=1"):
        assert service.ask("GET", f"/v1/audit?{wrong}", "admin").status_code in {404, 422}


def test_tokens_of_an_issuer_are_taken_beside_keys_and_its_absence_is_said(service: Guarded) -> None:
    with issuing() as issuer:
        oidc = OidcSettings(issuer=issuer.url, audience=AUDIENCE, scopes_claim="scope", scopes={"gpuplan:plan": "plan"})
        settings = AccessSettings(variables=Variables(), oidc=oidc, admin_key=None)
        access = access_by(service.gpuplan.store.access, settings)
        issuer.down = True
        with serving(create_service(service.gpuplan, access=access)) as client:

            def ask(path: str, token: str) -> httpx.Response:
                return client.get(path, headers={"Authorization": f"Bearer {token}"})

            unknown = ask("/v1/presets", issuer.token())
            assert (unknown.status_code, unknown.headers["retry-after"]) == (503, "15")
            assert ask("/v1/presets", service.keys["read"]).status_code == 200
            issuer.down = False
            access.authenticator.issuer._asked_at = -1e9  # type: ignore[union-attr]
            assert ask("/v1/presets", issuer.token()).status_code == 200
            assert ask("/v1/keys", issuer.token()).status_code == 403
            assert ask("/v1/presets", issuer.token(scope="openid")).status_code == 403
            assert ask("/v1/presets", issuer.token(aud="others")).status_code == 401
            assert ask("/v1/presets", "x" * 20_000 + ".e30.e30").status_code == 401


def test_a_page_shows_whose_session_it_is_and_how_to_leave(service: Guarded) -> None:
    with_cookie = {"Cookie": f"gpuplan={session(log_in(service, service.keys['read']))}"}
    assert "Log out read" in service.ask("GET", "/catalogue", headers=with_cookie).text
    assert "Log out" not in service.ask("GET", "/catalogue", "read").text
    assert "Log out" not in service.ask("GET", "/login").text


def test_who_fails_behind_a_shared_address_locks_out_nobody_who_works_there(service: Guarded) -> None:
    enough_left(MINUTE, 10)
    with limited(service, failed_logins_per_minute=2):
        assert service.ask("GET", "/v1/presets", "read").status_code == 200
        assert [service.ask("GET", "/v1/presets", "unknown").status_code for _ in range(3)] == [401, 401, 429]
        service.app.state.access.authenticator.forget()  # as after some seconds, when keys are looked up anew
        assert service.ask("GET", "/v1/presets", "read").status_code == 200
        assert log_in(service, service.keys["read"]).status_code == 303


def test_no_key_is_looked_up_for_an_address_that_is_told_to_wait(
    service: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    enough_left(MINUTE, 10)
    with limited(service, failed_logins_per_minute=2):
        assert [service.ask("GET", "/v1/presets", "unknown").status_code for _ in range(2)] == [401, 401]
        looked_up: list[str] = []
        monkeypatch.setattr(AccessStore, "find_key", lambda _, key_id: looked_up.append(key_id))
        monkeypatch.setattr(AccessStore, "find_session", lambda _, session_id: looked_up.append(session_id))
        # Also a key that would open: else whoever guesses would learn from the answer which one does.
        for key in ("unknown", "of another secret", "plan", "environment"):
            assert service.ask("GET", "/v1/presets", key).status_code == 429
            assert log_in(service, service.keys[key]).status_code == 429
        cookie = {"Cookie": f"gpuplan=gps_0123456789ab_{'x' * 43}"}
        assert service.ask("GET", "/v1/presets", headers=cookie).status_code == 429
        assert looked_up == []


@pytest.mark.parametrize(
    ("one", "another", "same"),
    [
        ("192.0.2.1", "192.0.2.2", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("2001:db8::1", "2001:db8::ffff:2", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("", "", True),
    ],
)
def test_addresses_of_one_network_are_counted_as_one(one: str, another: str, same: bool) -> None:
    assert (place_of(one) == place_of(another)) is same


def test_over_https_no_cookie_that_another_host_could_set_is_taken() -> None:
    def shown(scheme: str, cookies: str) -> str | None:
        headers = [(b"host", b"plan.example"), (b"cookie", cookies.encode())]
        scope = {"type": "http", "scheme": scheme, "path": "/", "query_string": b"", "headers": headers}
        return session_cookie(Request(scope | {"server": ("plan.example", 443)}))

    both = "gpuplan=planted; __Host-gpuplan=own"
    assert (shown("https", both), shown("http", both)) == ("own", "planted")
    assert shown("https", "gpuplan=planted") is None


def test_logging_in_again_ends_the_session_before_and_leaving_is_recorded(service: Guarded) -> None:
    first = {"Cookie": f"gpuplan={session(log_in(service, service.keys['plan']))}"}
    assert service.ask("GET", "/v1/presets", headers=first).status_code == 200
    again = service.ask("POST", "/login", data={"key": service.keys["read"]}, headers=first)
    assert service.ask("GET", "/v1/presets", headers=first).status_code == 401
    second = {"Cookie": f"gpuplan={session(again)}"}
    service.ask("POST", "/logout", headers=second)
    assert service.ask("GET", "/v1/presets", headers=second).status_code == 401
    left = [record.name for record in service.gpuplan.audit_log.page().records if record.action == "logout"]
    assert left[:2] == ["read", "plan"]


def test_who_tries_what_they_may_not_is_recorded_but_not_without_end(service: Guarded) -> None:
    enough_left(MINUTE, 10)
    with limited(service, failed_logins_per_minute=3):
        statuses = [service.ask("POST", "/v1/keys", "read", json={"name": "mine"}).status_code for _ in range(6)]
        assert statuses == [403] * 6
        denied = [record for record in service.gpuplan.audit_log.page().records if record.subject == "POST /v1/keys"]
        assert [(record.name, record.action, record.outcome) for record in denied] == [
            ("read", "denied", "refused")
        ] * 3
