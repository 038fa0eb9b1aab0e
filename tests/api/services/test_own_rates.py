"""Lists of own rates from the settings to a plan: files, addresses over a real socket, limits, and what is refused."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpuplan.api.schemas.settings_file import Environment, SettingsFile
from gpuplan.api.services import own_rates as reading
from gpuplan.api.services.own_rates import rates_source
from gpuplan.catalog.parsing.document_fields import read_as
from gpuplan.catalog.runtime.errors import ProviderFailure, UnusableInput
from tests.clouds.server import CloudServer, Reply, answering

LIST = (
    b"instance_type,accelerator,accelerator_count,price_kind,usd_per_hour,region\n8xH100,H100,8,on_demand,12,rack-1\n"
)


@pytest.fixture
def server() -> Iterator[CloudServer]:
    with CloudServer(lambda _: Reply(body=LIST, content_type="text/csv")).running() as running:
        yield running


def text_at(url: str, **keys: Any) -> str:
    rates = {"name": "own-campus", "url": url, "private": True} | keys
    [listed] = read_as(SettingsFile, {"rates": [rates]}).rates
    return rates_source(listed, Environment()).read()


def test_a_list_of_a_file_is_refreshed_and_planned_on(
    run: Any, own_store: str, tmp_path: Path, job: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUPLAN_DATABASE_URL", own_store)
    (tmp_path / "campus.csv").write_bytes(LIST)
    (tmp_path / "job.json").write_text(json.dumps(job | {"constraints": {"providers": ["own-campus"]}}))
    (tmp_path / "settings.yaml").write_text("rates: [{name: own-campus, file: campus.csv}]")
    settings = ("--settings", str(tmp_path / "settings.yaml"))
    done = json.loads(run("refresh", "--provider", "own-campus", "--json", *settings).out)
    assert [(row["provider"], row["outcome"], row["rows"]) for row in done["providers"]] == [("own-campus", "whole", 1)]
    plan = json.loads(run("plan", str(tmp_path / "job.json"), "--json").out)
    [phase] = plan["plan"]["phases"]
    assert (phase["provider"], phase["region"], phase["price_source"]) == ("own-campus", "rack-1", "campus.csv")
    assert any("no price of storage at own-campus is known" in line for line in plan["plan"]["assumptions"])
    findings = {row["name"]: row for row in json.loads(run("doctor", "--json", *settings).out)["findings"]}
    assert findings["rates own-campus"]["found"] == "1 prices in 1 places"


def test_a_list_of_an_address_is_read_with_its_token(server: CloudServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAMPUS_TOKEN", "secret-of-campus")
    assert text_at(f"{server.url}/rates.csv?format=csv", token_from="CAMPUS_TOKEN") == LIST.decode()
    [request] = server.requests
    assert (request.headers["authorization"], request.query) == ("Bearer secret-of-campus", {"format": ["csv"]})


def test_a_missing_token_names_its_variable(server: CloudServer) -> None:
    with pytest.raises(ProviderFailure, match="set CAMPUS_TOKEN"):
        text_at(server.url, token_from="CAMPUS_TOKEN")
    assert server.requests == []


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (answering(302, b"", Location="http://169.254.169.254/latest"), "HTTP 302: a redirect, which is not followed"),
        (answering(401, b""), "HTTP 401 Unauthorized; check token_from"),
        (answering(403, b""), "HTTP 403 Forbidden; check token_from"),
        (answering(404, b""), "HTTP 404 Not Found"),
        (answering(200, b"x" * (reading.MOST_BYTES + 1)), "is larger than 4 MiB"),
        (answering(200, b"\xff\xfe"), "is not UTF-8 text"),
    ],
)
def test_an_answer_that_is_no_list_is_refused_at_once(server: CloudServer, reply: Any, why: str) -> None:
    server.break_with(reply)
    with pytest.raises(ProviderFailure, match=why):
        text_at(f"{server.url}/rates.csv?key=secret-in-query")
    assert len(server.requests) == 1


def test_throttling_and_server_errors_are_asked_for_again(server: CloudServer) -> None:
    server.break_with(answering(429, b""), times=1)
    server.break_with(answering(500, b""), times=1)
    assert text_at(server.url) == LIST.decode()


def test_an_answer_that_takes_too_long_ends(server: CloudServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_SECONDS", 0.05)
    server.latency_seconds = 0.3
    with pytest.raises(ProviderFailure, match=r"did not answer completely within 0.05 s"):
        text_at(server.url)


def test_a_name_that_leads_to_this_network_is_refused_unless_allowed(
    server: CloudServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolved = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.1.2.3", 443))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: resolved)
    with pytest.raises(ProviderFailure, match=r"resolves to 10\.1\.2\.3, which is not public"):
        text_at("https://rates.example.org/list.csv", private=False)


def test_a_file_that_is_missing_or_too_large_is_named(tmp_path: Path) -> None:
    [listed] = read_as(SettingsFile, {"rates": [{"name": "own-campus", "file": "campus.csv"}]}).rates
    source = rates_source(listed, Environment(settings=tmp_path / "settings.yaml"))
    with pytest.raises(ProviderFailure, match=r"^campus\.csv: cannot be read: No such file"):
        source.read()
    (tmp_path / "campus.csv").write_bytes(b"x" * (reading.MOST_BYTES + 1))
    with pytest.raises(ProviderFailure, match="is larger than 4 MiB"):
        source.read()


@pytest.mark.parametrize(
    ("rates", "field", "why"),
    [
        ([{"name": "campus", "file": "x"}], ("rates", 0, "name"), "is not the name of a list; write own-"),
        ([{"name": "own-x"}], ("rates", 0), "give either file or url"),
        ([{"name": "own-x", "file": "x", "url": "https://example.org"}], ("rates", 0), "give either file or url"),
        ([{"name": "own-x", "file": "x", "private": True}], ("rates", 0), "are about a url"),
        ([{"name": "own-x", "url": "http://example.org/x"}], ("rates", 0, "url"), "is plain http"),
        ([{"name": "own-x", "url": "https://u:p@example.org"}], ("rates", 0, "url"), "contains a user or password"),
        ([{"name": "own-x", "url": "https://127.0.0.1/x"}], ("rates", 0, "url"), "points to this machine"),
        ([{"name": "own-x", "url": "https://169.254.169.254/x"}], ("rates", 0, "url"), "points to this machine"),
        ([{"name": "own-x", "url": "file:///etc/passwd"}], ("rates", 0, "url"), "is not a web address"),
        ([{"name": "own-x", "file": "x"}] * 2, ("rates",), "own-x: used more than once"),
    ],
)
def test_settings_that_name_no_list_are_refused(rates: Any, field: tuple[Any, ...], why: str) -> None:
    with pytest.raises(UnusableInput) as caught:
        read_as(SettingsFile, {"rates": rates})
    assert [fault.path for fault in caught.value.faults] == [field]
    assert why in caught.value.faults[0].message


def test_a_misspelt_list_in_a_job_says_that_nothing_is_offered(run: Any, tmp_path: Path, job: dict[str, Any]) -> None:
    (tmp_path / "job.json").write_text(json.dumps(job | {"constraints": {"providers": ["own-canpus"]}}))
    ended = run("plan", str(tmp_path / "job.json"))
    assert ended.code != 0
    assert "own-canpus" in ended.out + ended.err
