"""Keys and the audit log on the command line, and whom a service lets in by where it listens."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpuplan.api.cli.serve_authentication import access_for, checked_names, hosts_for
from gpuplan.api.schemas.settings_file import Environment
from gpuplan.api.services.composition import Services, open_services
from gpuplan.catalog.runtime.errors import UnusableInput
from tests.api.conftest import Ended
from tests.api.http.guarded import ADMIN_KEY

Run = Callable[..., Ended]


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ADMIN_KEY", "ADMIN_KEY_FILE", "OIDC_ISSUER", "OIDC_AUDIENCE"):
        monkeypatch.delenv(f"GPUPLAN_{name}", raising=False)


@pytest.fixture
def command(own_store: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command line on a store of its own."""
    monkeypatch.setenv("GPUPLAN_DATABASE_URL", own_store)
    return run


def test_keys_are_made_listed_rotated_and_revoked(command: Run) -> None:
    made = command("keys", "create", "--name", "ci", "--scope", "refresh", "--expires", "90d")
    assert made.code == 0
    [key] = re.findall(r"gpk_[0-9a-f]{12}_[A-Za-z0-9_-]{43}", made.out)
    key_id = key.split("_")[1]
    listed = command("keys", "list")
    assert key_id in listed.out
    assert "holds" in listed.out
    assert key not in listed.out
    rotated = json.loads(command("keys", "rotate", key_id, "--json").out)
    assert rotated["key"] != key
    assert command("keys", "revoke", key_id).code == 0
    [shown] = json.loads(command("keys", "list", "--json").out)["keys"]
    assert (shown["name"], shown["scope"], shown["state"]) == ("ci", "refresh", "revoked")
    entries = json.loads(command("audit", "--json").out)["entries"]
    assert [entry["action"] for entry in entries] == ["key.revoke", "key.rotate", "key.create"]
    assert {entry["via"] for entry in entries} == {"command"}
    assert "key.create" in command("audit", "--since", "2020-01-01").out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--name", "", "--scope", "read"), "name: "),
        (("--name", "x", "--scope", "root"), "write one of read, plan, refresh, admin"),
        (("--name", "x", "--expires", "2001-01-01T00:00Z"), "expires: "),
        (("--name", "x", "--plans-per-day", "none"), "plans_per_day: "),
    ],
)
def test_a_key_that_cannot_be_made_is_refused_in_one_line(
    command: Run, arguments: tuple[str, ...], message: str
) -> None:
    ended = command("keys", "create", *arguments)
    assert ended.code == 2
    assert message in ended.err
    assert ended.err.count("\n") == 1


def test_a_key_that_is_not_there_is_named(command: Run) -> None:
    ended = command("keys", "revoke", "0123456789ab")
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert "0123456789ab" in ended.err


def test_plans_of_the_command_line_say_which_user_planned(
    command: Run, job_file: Callable[..., Path], job: dict[str, Any]
) -> None:
    plan = json.loads(command("plan", job_file(job), "--json").out)["plan"]["id"]
    [entry] = json.loads(command("audit", "--json").out)["entries"]
    assert (entry["action"], entry["subject"], entry["outcome"]) == ("plan", plan, "planned")
    assert entry["identity"].startswith("user:")


@pytest.fixture
def gpuplan(own_store: str) -> Services:
    return open_services(Environment(database_url=own_store))


def test_a_service_on_loopback_is_open_and_elsewhere_needs_a_key(gpuplan: Services) -> None:
    assert access_for(gpuplan, host="127.0.0.1", names=(), insecure=False).authenticator is None
    for host, names in (("0.0.0.0", ()), ("127.0.0.1", ("plan.example.com",))):
        with pytest.raises(UnusableInput, match="gpuplan keys create"):
            access_for(gpuplan, host=host, names=names, insecure=False)
        assert access_for(gpuplan, host=host, names=names, insecure=True).authenticator is None
    key = gpuplan.api_keys.make({"name": "first", "scope": "admin"})
    assert access_for(gpuplan, host="0.0.0.0", names=(), insecure=False).authenticator is not None
    gpuplan.api_keys.revoke(key.id)
    with pytest.raises(UnusableInput, match="it has no key yet"):
        access_for(gpuplan, host="0.0.0.0", names=(), insecure=False)


def test_a_key_of_the_environment_guards_loopback_too_and_may_stand_in_a_file(
    gpuplan: Services, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "admin-key"
    file.write_text(f"{ADMIN_KEY}\n", encoding="utf-8")
    monkeypatch.setenv("GPUPLAN_ADMIN_KEY_FILE", str(file))
    for host in ("127.0.0.1", "0.0.0.0"):
        authenticator = access_for(gpuplan, host=host, names=(), insecure=False).authenticator
        assert authenticator is not None
        assert authenticator.identify(ADMIN_KEY).id == "key:admin"
    monkeypatch.setenv("GPUPLAN_ADMIN_KEY", ADMIN_KEY)
    with pytest.raises(UnusableInput, match="set only one of them"):
        access_for(gpuplan, host="127.0.0.1", names=(), insecure=False)


def test_a_service_is_refused_before_it_listens(command: Run) -> None:
    ended = command("serve", "--host", "0.0.0.0", "--port", "0")
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert ended.err.startswith("gpuplan: host: with '0.0.0.0' others can reach this service")
    assert command("serve", "--allow-host", "a b").code == 2


def test_the_names_of_a_service_may_stand_in_a_variable(command: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUPLAN_ALLOW_HOST", "plan.example.com a:b")
    ended = command("serve", "--port", "0")
    assert ended.code == 2
    assert "'a:b' is not a host name" in ended.err
    monkeypatch.setenv("GPUPLAN_ALLOW_HOST", "plan.example.com plan")
    assert "with the name 'plan.example.com' others can reach" in command("serve", "--port", "0").err


@pytest.mark.parametrize(
    ("host", "names", "guarded", "expected"),
    [
        ("127.0.0.1", (), False, {"localhost", "127.0.0.1", "[::1]"}),
        ("127.0.0.1", ("plan.example.com",), True, {"localhost", "127.0.0.1", "[::1]", "plan.example.com"}),
        ("10.0.0.5", (), True, {"localhost", "127.0.0.1", "[::1]", "10.0.0.5"}),
        ("0.0.0.0", (), True, None),
        ("0.0.0.0", ("plan.example.com",), True, {"localhost", "127.0.0.1", "[::1]", "0.0.0.0", "plan.example.com"}),
    ],
)
def test_the_names_by_which_a_service_may_be_called(
    host: str, names: tuple[str, ...], guarded: bool, expected: set[str] | None
) -> None:
    assert hosts_for(host, names, insecure=False, guarded=guarded) == expected


def test_a_name_is_checked_before_it_counts() -> None:
    assert checked_names(["Plan.Example.com "]) == ("plan.example.com",)
    for wrong in ("https://plan.example.com", "plan:80", "a/b", "", "x" * 300):
        with pytest.raises(UnusableInput):
            checked_names([wrong])
