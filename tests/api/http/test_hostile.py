"""What is sent to break the service gets a clear 4xx, and leaves nothing behind: no row, no traceback, no line in a log."""

import gzip
import json
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from gpuplan.api.exports.export_formats import FORMATS, one_export
from gpuplan.api.exports.launch_command import read_wishes
from gpuplan.api.http.request_bodies import BODY_LIMIT_BYTES
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.store.schema import metadata
from gpuplan.planner.model.wire import wire
from tests.api.http.guarded import Guarded, guarded

JSON, YAML = {"content-type": "application/json"}, {"content-type": "application/yaml"}
#: Rows that requests may leave: that a login failed, and when a key was used.
NEVER_EMPTIED = {"audit", "api_keys", "sessions"}


@pytest.fixture(scope="module")
def service(embedded_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with guarded(embedded_store, tmp_path_factory.mktemp("hostile")) as guarded_service:
        yield guarded_service


@pytest.fixture(autouse=True)
def nothing_is_stored(service: Guarded) -> Iterator[None]:
    before = rows(service)
    yield
    assert rows(service) == before


def rows(service: Guarded) -> dict[str, int]:
    with service.gpuplan.store.engine.connect() as connection:
        return {
            table.name: connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
            for table in metadata.sorted_tables
            if table.name not in NEVER_EMPTIED
        }


def refused(answer: httpx.Response, *statuses: int) -> None:
    assert answer.status_code in (statuses or (400, 404, 405, 406, 413, 414, 415, 422)), answer.text[:500]
    assert answer.headers["content-type"] in {"application/problem+json", "text/plain; charset=utf-8"}
    assert "Traceback" not in answer.text
    assert "site-packages" not in answer.text


BODIES = {
    "more than may be": (b"x" * (BODY_LIMIT_BYTES + 1), JSON, 413),
    "one key of a megabyte": (b'{"' + b"k" * (BODY_LIMIT_BYTES - 20) + b'": 1}', JSON, 422),
    "deep lists": (b"[" * 500_000, JSON, 400),
    "deep objects": (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, JSON, 400),
    "deep YAML in flow": (b"[" * 50_000 + b"]" * 50_000, YAML, 400),
    "deep YAML in blocks": (b"".join(b" " * n + b"a:\n" for n in range(1_000)), YAML, 400),
    "a billion laughs": (
        b"a: &a [x, x]\n" + b"".join(b"%c: &%c [*%c, *%c]\n" % (c, c, c - 1, c - 1) for c in range(98, 122)),
        YAML,
        400,
    ),
    "an object of Python": (b"!!python/object/apply:os.system ['true']", YAML, 400),
    "two documents": (b"a: 1\n---\nb: 2\n", YAML, 400),
    "a key twice": (b'{"name": "a", "name": "b"}', JSON, 400),
    "a key twice in YAML": (b"name: a\nname: b\n", YAML, 400),
    "NUL": (b'{"name": "a\\u0000b"}', JSON, 422),
    "NUL as it is": (b'{"name": "a\x00b"}', JSON, 400),
    "half a character": (b'{"name": "\\ud800"}', JSON, 400),
    "half a key": (b'{"\\udfff": 1}', JSON, 400),
    "no UTF-8": (b'{"name": "\xff"}', JSON, 400),
    "UTF-16": ('{"name": "a"}'.encode("utf-16"), JSON, 400),
    "a mark in front": (b"\xef\xbb\xbf\xef\xbb\xbf{}", JSON, 400),
    "a number of a million digits": (b'{"budget_usd": ' + b"9" * 1_000_000 + b"}", JSON, 422),
    "a number beyond all": (b'{"budget_usd": 1e999999999}', JSON, 422),
    "no number": (b'{"budget_usd": NaN}', JSON, 422),
    "a prototype": (b'{"__proto__": {"admin": true}, "constructor": {}}', JSON, 422),
    "a number instead": (b"7", JSON, 400),
    "nothing": (b"", JSON, 400),
    "a form": (b"a=1", {"content-type": "application/x-www-form-urlencoded"}, 415),
    "parts of a form": (b"--x\r\n", {"content-type": "multipart/form-data; boundary=x"}, 415),
    "another character set": (b"{}", {"content-type": "application/json; charset=utf-7"}, 415),
    "two types": (b"{}", {"content-type": "application/json, text/html"}, 415),
    "a bomb": (gzip.compress(b" " * 10_000_000), JSON | {"content-encoding": "gzip"}, 415),
    "a bomb in a bomb": (gzip.compress(gzip.compress(b"{}")), JSON | {"content-encoding": "gzip, gzip"}, 415),
    "an unknown packing": (b"{}", JSON | {"content-encoding": "br"}, 415),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_body_that_is_meant_to_harm_is_refused(service: Guarded, name: str) -> None:
    body, headers, status = BODIES[name]
    for path in ("/v1/plans", "/v1/keys"):
        answer = service.ask("POST", path, "admin", content=body, headers=headers)
        refused(answer, status)


IDS = (
    "..",
    "../../etc/passwd",
    "%2e%2e%2f%2e%2e%2fetc%2fpasswd",
    "a%00b",
    "%ff%fe",
    "a%0d%0aSet-Cookie:%20x=1",
    "'%20OR%201=1--",
    "x" * 5000,
)


@pytest.mark.parametrize("name", IDS)
def test_a_name_that_is_none_of_ours_finds_nothing(service: Guarded, name: str) -> None:
    for path in (
        "/v1/plans/{}",
        "/v1/plans/{}/export/json",
        "/v1/plans/x/export/{}",
        "/v1/runs/{}",
        "/v1/watches/{}",
        "/v1/refreshes/{}",
        "/v1/snapshots/{}/diff",
        "/static/{}/gpuplan.css",
    ):
        answer = service.ask("GET", path.format(name), "admin")
        refused(answer, 404, 422, 405)
        assert "root:" not in answer.text
        assert "x=1" not in str(answer.headers)
    refused(service.ask("DELETE", f"/v1/keys/{name}", "admin"), 404, 405, 422)


CURSORS = (
    "x",
    "W10=",
    "bnVsbA==",
    "WyJhIiwgImIiLCAtMV0=",
    "WyJhIiwgImIiLCAxZTk5OV0=",
    "=" * 500,
    "é",
    "a\x00b",
    "WyIwIiwgImMiLCAwXQ==" * 20,
)


@pytest.mark.parametrize("cursor", CURSORS)
def test_a_cursor_from_another_life_is_refused(service: Guarded, cursor: str) -> None:
    for path in ("/v1/offers", "/v1/prices?instance_type=p5.48xlarge", "/v1/audit"):
        join = "&" if "?" in path else "?"
        refused(service.ask("GET", f"{path}{join}cursor={httpx.QueryParams({'c': cursor})}"[:4000], "admin"), 404, 422)
        refused(service.ask("GET", path, "admin", params={"cursor": cursor} | dict(httpx.URL(path).params)), 404, 422)


@pytest.mark.parametrize("etag", ['"0"', "W/", "", '"' + "x" * 5000 + '"', "\x80", ",,,,", '"a", W/"b"'])
def test_a_tag_from_another_life_is_answered_anew(service: Guarded, etag: str) -> None:
    answer = service.ask("GET", "/v1/offers?limit=1", "read", headers={"If-None-Match": etag.encode("latin-1")})
    assert answer.status_code == 200


@pytest.mark.parametrize("key", ["a b", "x" * 256, "é", "a\tb"])
def test_a_key_for_repeating_that_is_none_is_refused(service: Guarded, job: dict[str, Any], key: str) -> None:
    headers = {"Idempotency-Key": key.encode()}
    refused(service.ask("POST", "/v1/plans", "plan", json=job, headers=headers), 400)


def raw(service: Guarded, text: bytes, *, whole: bool = False) -> bytes:
    """What the service says to these very bytes, a `whole` request or something that it may wait for more of."""
    at = service.client.base_url
    with socket.create_connection((at.host, at.port or 80), timeout=60) as connection:
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(text)
        if not whole:
            connection.shutdown(socket.SHUT_WR)
        try:
            return b"".join(iter(lambda: connection.recv(65_536), b""))
        except ConnectionResetError:
            return b""


def request(service: Guarded, *lines: bytes) -> bytes:
    key = service.keys["read"].encode()
    first = b"GET /v1/presets HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer " + key + b"\r\n"
    return raw(service, first + b"".join(line + b"\r\n" for line in lines) + b"\r\n", whole=True)


def test_a_request_id_cannot_bring_a_header_or_a_line_of_its_own(service: Guarded) -> None:
    assert request(service).startswith(b"HTTP/1.1 200")
    for wrong in (b"a\rSet-Cookie: x=1", b"a\x00b", b"\xff", b"a" * 129, b"a b", b"<script>", b"\x1b[31m"):
        head = request(service, b"X-Request-ID: " + wrong).partition(b"\r\n\r\n")[0]
        assert head.startswith((b"HTTP/1.1 200", b"HTTP/1.1 400"))
        assert b"x=1" not in head
        assert wrong not in head


def test_ten_thousand_headers_are_refused_or_read_but_never_kill(service: Guarded) -> None:
    answer = request(service, *(b"X-%d: %s" % (number, b"y" * 20) for number in range(10_000)))
    assert answer == b"" or answer.startswith((b"HTTP/1.1 200", b"HTTP/1.1 4"))
    assert request(service, b"X-Long: " + b"y" * 1_000_000)[:12] in {
        b"",
        b"HTTP/1.1 200",
        b"HTTP/1.1 400",
        b"HTTP/1.1 431",
    }
    assert service.ask("GET", "/healthz").status_code == 200


@pytest.mark.parametrize(
    "text",
    [
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"POST /v1/plans HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /v1/plans HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /v1/plans HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET http://elsewhere.example/v1/presets HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"GET /\x00 HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
)
def test_what_is_no_request_is_refused_and_the_next_is_answered(service: Guarded, text: bytes) -> None:
    answer = raw(service, text)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 4")
    assert service.ask("GET", "/healthz").status_code == 200


def test_names_in_exports_cannot_leave_their_place(service: Guarded, job: dict[str, Any], tmp_path: Path) -> None:
    hostile = "$(touch x); ../../a`b`\"'"
    made = wire(service.gpuplan.plans.plan(job | {"name": hostile}, save=False))
    assert made["plan"]["job"]["name"] == hostile
    wishes = read_wishes(command="python train.py", image=None, reservation=None)
    for format_ in FORMATS:
        try:
            file = one_export(made, to=format_, phase=None, wishes=wishes)
        except UnusableInput:  # this tool cannot run this plan, and says so
            continue
        assert "/" not in file.file_name
        assert "\\" not in file.file_name
        assert not set("\r\n\"';`$") & set(file.file_name)


def test_the_same_parameter_twice_is_refused(service: Guarded) -> None:
    refused(service.ask("GET", "/v1/offers?limit=1&limit=2", "read"), 422)


@pytest.mark.parametrize("query", ["limit=1e9", "limit=-1", "limit=%00", "provider=%00", "odd=1"])
def test_a_query_that_makes_no_sense_is_refused(service: Guarded, query: str) -> None:
    refused(service.ask("GET", f"/v1/offers?{query}", "read"), 422)


def test_json_pointers_name_what_was_sent_and_nothing_else(service: Guarded) -> None:
    sent = json.dumps({"name": "x", "a~/b": 1}).encode()
    answer = service.ask("POST", "/v1/plans", "plan", content=sent, headers=JSON)
    assert "/a~0~1b" in {error["pointer"] for error in answer.json()["errors"]}


def test_a_request_that_names_two_hosts_is_refused(service: Guarded) -> None:
    answer = request(service, b"Host: elsewhere.example")
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"more than one Host header" in answer
