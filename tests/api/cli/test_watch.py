"""`gpuplan watch`: what it prints, where it fails, and the code that a nightly job goes by."""

import base64
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from gpuplan.api.schemas.settings_file import Environment
from gpuplan.api.services.composition import open_services
from tests.clouds.server import CloudServer, Reply, Request, answering

Run = Callable[..., Any]
Write = Callable[..., Path]


@pytest.fixture
def receiver() -> Iterator[CloudServer]:
    def take(_: Request) -> Reply:
        return Reply(body=b"ok")

    with CloudServer(take).running() as server:
        yield server


@pytest.fixture
def database_url(own_store: str) -> str:
    """A store of each test's own: watches change it."""
    return own_store


@pytest.fixture
def watch(run: Run, receiver: CloudServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run `gpuplan watch ...` with a channel of each kind."""
    settings = tmp_path / "settings.yaml"
    ops = {"name": "ops", "kind": "webhook", "url": f"{receiver.url}/hook", "secret_from": "OPS_SECRET"}
    channels = [ops | {"private": True}, {"name": "team", "kind": "slack", "url_from": "TEAM_SLACK", "private": True}]
    settings.write_text(json.dumps({"channels": channels}))
    monkeypatch.setenv("OPS_SECRET", "whsec_" + base64.b64encode(b"k" * 24).decode())
    monkeypatch.setenv("TEAM_SLACK", f"{receiver.url}/slack")
    monkeypatch.setenv("GPUPLAN_SETTINGS", str(settings))
    return lambda *arguments: run("watch", *arguments)


@pytest.fixture
def job(job: dict[str, Any]) -> dict[str, Any]:
    """From now on, whenever that is: what is watched runs by the clock."""
    return {name: value for name, value in job.items() if name != "start"}


def test_a_watch_is_added_listed_shown_and_removed(watch: Run, job_file: Write, job: dict[str, Any]) -> None:
    added = watch("add", job_file(job), "--channel", "ops", "--channel", "team", "--cheaper-by", "7%", "--name", "n")
    assert (added.code, added.err) == (0, "")
    for part in ("Watching n as watch-", "ops, team", "7 % cheaper or dearer", "$"):
        assert part in added.out
    [listed] = json.loads(watch("list", "--json").out)["watches"]
    assert (listed["cheaper_by_percent"], listed["channels"], listed["state"]) == (7.0, ["ops", "team"], "watching")
    assert listed["id"] in watch("list").out
    assert "none yet" in watch("show", listed["id"]).out
    assert json.loads(watch("show", listed["id"], "--json").out)["job"]["name"] == job["name"]
    assert "is no longer watched" in watch("remove", listed["id"]).out
    gone = watch("remove", listed["id"])
    assert (gone.code, "no watch" in gone.err) == (2, True)
    assert "Nothing is watched" in watch("list").out


def test_a_watch_of_what_cannot_be_watched_is_refused_in_one_line(
    watch: Run, job_file: Write, job: dict[str, Any]
) -> None:
    path = job_file(job)
    for arguments, message in (
        (("add", path), "--channel"),
        (("add", path, "--channel", "nobody"), "no channel 'nobody' is in the settings file; accepted: ops, team"),
        (("add", path, "--channel", "ops", "--cheaper-by", "0"), "cheaper_by_percent: '0' is not accepted"),
        (("add", job_file(job | {"deadline": "x"}, "b.yaml"), "--channel", "ops"), "deadline: "),
        (("test", "nobody"), "accepted: ops, team"),
    ):
        ended = watch(*arguments)
        assert (ended.code, ended.out) == (2, "")
        assert message in ended.err
        assert len(ended.err.splitlines()) == 1


@pytest.fixture
def due(watch: Run, job_file: Write, job: dict[str, Any], database_url: str) -> None:
    """A watch whose deadline has passed, which is to be told."""
    deadline = datetime.now(UTC) + timedelta(hours=30)
    dated = {name: value for name, value in job.items() if name != "start"} | {"deadline": deadline.isoformat()}
    assert watch("add", job_file(dated), "--channel", "ops", "--channel", "team").code == 0
    gpuplan = open_services(Environment(database_url=database_url))
    [entry] = gpuplan.store.watching.every()
    gpuplan.store.watching.forget(entry.id)
    past = {"deadline": (datetime.now(UTC) - timedelta(hours=1)).isoformat()}
    gpuplan.store.watching.save(replace(entry, job=entry.job | past))
    gpuplan.store.close()


@pytest.mark.usefixtures("due")
def test_a_check_that_told_everybody_ends_with_0(watch: Run, receiver: CloudServer) -> None:
    ended = watch("check")
    assert (ended.code, ended.err) == (0, "")
    assert "1 watch planned" in ended.out
    assert "its deadline has passed" in ended.out
    assert sorted(request.path for request in receiver.requests) == ["/hook", "/slack"]
    assert watch("check").code == 0
    assert len(receiver.requests) == 2


@pytest.mark.usefixtures("due")
def test_a_check_that_could_not_tell_somebody_ends_with_3_and_names_them(watch: Run, receiver: CloudServer) -> None:
    receiver.break_with(answering(410, b"channel_is_archived"), when=lambda request: request.path == "/slack")
    ended = watch("check", "--json")
    assert ended.code == 3
    assert "deadline_passed not delivered to team: HTTP 410 Gone: channel_is_archived" in ended.err
    answer = json.loads(ended.out)
    assert answer["deliveries"]["sent"] == 1
    assert watch("check").code == 0
    [listed] = json.loads(watch("list", "--json").out)["watches"]
    shown = watch("show", listed["id"])
    assert "given up (HTTP 410 Gone: channel_is_archived)" in shown.out
    assert "delivered" in shown.out


def test_a_test_message_says_that_it_was_taken_or_why_not(
    watch: Run, receiver: CloudServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "ops (webhook) accepted a test message" in watch("test", "ops").out
    assert json.loads(watch("test", "team", "--json").out)["delivered"] is True
    receiver.break_with(answering(403, b"invalid_token"))
    refused = watch("test", "team")
    assert (refused.code, refused.out) == (3, "")
    assert refused.err == "gpuplan: channel team: HTTP 403 Forbidden: invalid_token\n"
    monkeypatch.setenv("OPS_SECRET", "not-a-secret-of-the-scheme")
    malformed = watch("test", "ops")
    assert malformed.code == 2
    assert "OPS_SECRET" in malformed.err
    assert "not-a-secret" not in malformed.err


@pytest.mark.parametrize("arguments", [("check",), ("test", "ops")])
def test_a_proxy_that_is_none_is_refused_before_anything_is_sent(
    watch: Run, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "nonsense://proxy")
    refused = watch(*arguments)
    assert (refused.code, refused.err.startswith("gpuplan: HTTPS_PROXY: ")) == (2, True)
