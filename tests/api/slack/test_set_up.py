"""Setting Slack up: secrets from the environment or files, the manifest, installing, and who may ask."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jsonschema_rs
import pytest
import yaml

from gpuplan.api.http.http_service import create_service
from gpuplan.api.schemas.settings_file import Environment
from gpuplan.api.services.composition import Services, open_services
from gpuplan.api.slack.installation import BOT_SCOPES, INSTALL, REDIRECT
from gpuplan.api.slack.slack_settings import API_URL, SlackEnvironment, slack_settings
from gpuplan.api.slack.slash_commands import COMMANDS
from gpuplan.api.slack.workspaces import allow
from gpuplan.catalog.runtime.errors import UnusableInput
from tests.api.conftest import Ended
from tests.api.slack.conftest import Acme, Served
from tests.clouds.slack import SECRET, TEAM, TOKEN
from tests.patience import until

ROOT = Path(__file__).resolve().parents[3]
NAMES = [f"GPUPLAN_SLACK_{name.upper()}" for name in SlackEnvironment.model_fields]


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def refusal(environment: pytest.MonkeyPatch, **given: str) -> str:
    for name, value in given.items():
        environment.setenv(f"GPUPLAN_SLACK_{name.upper()}", value)
    with pytest.raises(UnusableInput) as refused:
        slack_settings()
    return str(refused.value.faults[0])


def test_without_any_setting_there_is_no_slack(environment: pytest.MonkeyPatch) -> None:
    assert slack_settings() is None


def test_secrets_come_from_the_environment_or_from_files(environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    environment.setenv("GPUPLAN_SLACK_SIGNING_SECRET", SECRET)
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    environment.setenv("GPUPLAN_SLACK_BOT_TOKEN_FILE", str(tmp_path / "token"))
    read_settings = slack_settings()
    assert read_settings is not None
    assert (read_settings.signing_secret, read_settings.bot_token, read_settings.api_url, read_settings.installs) == (
        SECRET,
        TOKEN,
        API_URL,
        False,
    )
    assert TOKEN not in repr(read_settings)


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"bot_token": TOKEN}, "GPUPLAN_SLACK_SIGNING_SECRET: is missing"),
        (
            {"signing_secret": SECRET},
            "GPUPLAN_SLACK_BOT_TOKEN: is missing; set the bot's token (xoxb-...), or client id",
        ),
        ({"signing_secret": SECRET, "client_id": "1.2"}, "GPUPLAN_SLACK_CLIENT_SECRET: is missing"),
        ({"signing_secret": SECRET, "client_secret": "s"}, "GPUPLAN_SLACK_CLIENT_ID: is missing"),
        ({"signing_secret": TOKEN, "bot_token": TOKEN}, "GPUPLAN_SLACK_SIGNING_SECRET: is a token"),
        ({"signing_secret": SECRET, "bot_token": "xoxp-1"}, "GPUPLAN_SLACK_BOT_TOKEN: is not a bot token"),
        (
            {"signing_secret": SECRET, "bot_token": TOKEN, "api_url": "slack"},
            "GPUPLAN_SLACK_API_URL: is not a web address",
        ),
        (
            {"signing_secret": SECRET, "bot_token": TOKEN, "page_url": "gpuplan.example.com"},
            "GPUPLAN_SLACK_PAGE_URL: is not a web address",
        ),
        ({"signing_secret": "two words", "bot_token": TOKEN}, "GPUPLAN_SLACK_SIGNING_SECRET: is not a secret"),
        ({"signing_secret_file": "/nonexistent/secret"}, "GPUPLAN_SLACK_SIGNING_SECRET_FILE: cannot read"),
        ({"signing_secret_file": "/dev/null"}, "GPUPLAN_SLACK_SIGNING_SECRET_FILE: names an empty file"),
        ({"bot_token": TOKEN, "bot_token_file": "/dev/null"}, "GPUPLAN_SLACK_BOT_TOKEN: is set, and so is"),
    ],
)
def test_half_a_set_up_is_refused_by_name_and_shows_no_secret(
    environment: pytest.MonkeyPatch, given: dict[str, str], line: str
) -> None:
    message = refusal(environment, **given)
    assert message.startswith(line)
    assert TOKEN not in message
    assert SECRET not in message


def test_the_service_refuses_to_start_on_half_a_set_up(
    environment: pytest.MonkeyPatch, run: Callable[..., Ended]
) -> None:
    environment.setenv("GPUPLAN_SLACK_BOT_TOKEN", TOKEN)
    ended = run("serve", "--port", "0")
    assert ended.code == 2
    assert ended.err.startswith("gpuplan: GPUPLAN_SLACK_SIGNING_SECRET: is missing")


def test_workspaces_are_allowed_listed_and_removed(run: Callable[..., Ended]) -> None:
    assert (
        json.loads(run("slack", "allow", "t0other", "--scope", "read", "--name", "team", "--json").out)["workspace"]
        == "T0OTHER"
    )
    assert "T0OTHER is allowed to plan, as slack T0OTHER" in run("slack", "allow", "T0OTHER").out
    [row] = [
        workspace
        for workspace in json.loads(run("slack", "list", "--json").out)["workspaces"]
        if workspace["workspace"] == "T0OTHER"
    ]
    assert (row["scope"], row["name"]) == ("plan", "slack T0OTHER")
    assert "T0OTHER" in run("slack", "list").out
    assert "T0OTHER is removed" in run("slack", "remove", "T0OTHER").out
    assert "T0OTHER" not in run("slack", "list", "--json").out


def test_who_allowed_a_workspace_is_in_the_audit_log(run: Callable[..., Ended], gpuplan: Services) -> None:
    run("slack", "allow", "T0AUDIT", "--scope", "read")
    run("slack", "remove", "T0AUDIT")
    records = [entry.record for entry in gpuplan.store.access.audit(limit=20) if entry.record.subject == "T0AUDIT"]
    assert [(record.action, record.outcome, record.via) for record in records] == [
        ("slack.remove", "done", "command"),
        ("slack.allow", "read", "command"),
    ]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("allow", "acme"), "workspace: 'acme' is not a workspace; accepted: an id such as T0123ABCD"),
        (("allow", "T0123", "--scope", "admin"), "scope: 'admin' is not accepted; write one of read, plan, refresh"),
        (("allow", "T0123", "--name", "a\nb"), "name: "),
        (("remove", "T0NOBODY"), "workspace: 'T0NOBODY' is not allowed in any case"),
    ],
)
def test_a_wrong_workspace_is_refused(run: Callable[..., Ended], words: tuple[str, ...], line: str) -> None:
    ended = run("slack", *words)
    assert ended.code == 2
    assert ended.err.startswith(f"gpuplan: {line}")


def manifest() -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((ROOT / "deploy/slack/manifest.yaml").read_text())
    return document


def test_the_manifest_is_one_that_slack_takes() -> None:
    schema = json.loads((Path(__file__).parent / "schemas/manifest.json").read_text())
    validator = jsonschema_rs.Draft7Validator(schema)
    assert list(validator.iter_errors(manifest())) == []
    assert list(validator.iter_errors(manifest() | {"display_information": {"name": "x" * 36}}))


def test_the_manifest_and_the_service_agree(acme: Acme) -> None:
    made = manifest()
    [command] = made["features"]["slash_commands"]
    urls = [
        command["url"],
        made["settings"]["interactivity"]["request_url"],
        made["settings"]["event_subscriptions"]["request_url"],
    ]
    for url in urls:
        # Nobody has signed it, and so somebody is there.
        assert acme.service.post(urlsplit(url).path).status_code == 401
    assert urlsplit(made["oauth_config"]["redirect_urls"][0]).path == REDIRECT
    assert tuple(made["oauth_config"]["scopes"]["bot"]) == BOT_SCOPES


def test_the_page_on_slack_names_every_scope_setting_and_command() -> None:
    text = (ROOT / "docs/slack.md").read_text()
    for name in (*NAMES, *BOT_SCOPES, *(f"/gpuplan {command}" for command in COMMANDS)):
        assert name in text, name
    assert set(re.findall(r"GPUPLAN_SLACK_[A-Z_]+", text)) <= set(NAMES)


# Slack's SDK says so of aiohttp, and there is no newer SDK.
@pytest.mark.filterwarnings("ignore:BasicAuth is deprecated:DeprecationWarning")
def test_a_workspace_installs_the_app_is_allowed_and_asks(acme: Acme, own_store: str, served: Served) -> None:
    settings = replace(acme.settings, bot_token="", client_id="1.2", client_secret="shh")
    gpuplan = open_services(Environment(database_url=own_store))
    with served(create_service(gpuplan, slack=settings)) as service:
        begun = service.get(INSTALL)
        assert begun.status_code == 302
        state = parse_qs(urlsplit(begun.headers["location"]).query)["state"][0]
        cookie = {"Cookie": begun.headers["set-cookie"].partition(";")[0]}
        forged = service.get(REDIRECT, params={"code": "good", "state": "0" * 32}, headers=cookie)
        assert forged.status_code == 400
        done = service.get(REDIRECT, params={"code": "good", "state": state}, headers=cookie)
        assert done.status_code == 200
        again = service.get(REDIRECT, params={"code": "good", "state": state}, headers=cookie)
        assert again.status_code == 401
        assert gpuplan.store.slack.installation(TEAM) is not None
        other = Acme(acme.slack, service, gpuplan, settings)
        assert "may not use gpuplan" in other.types("price H100")["text"]
        allow(gpuplan, TEAM, scope="plan", name=None)
        message = other.asks("price H100", response_url=acme.slack.response_url(times=0))
        assert message.how == "chat.postEphemeral"
        _uninstalled(other)
        assert gpuplan.store.slack.installation(TEAM) is None
    gpuplan.store.close()


def _uninstalled(acme: Acme) -> None:
    event = {"type": "event_callback", "team_id": TEAM, "event_id": "EvGone", "event": {"type": "app_uninstalled"}}
    body = json.dumps(event).encode()
    as_json = {"Content-Type": "application/json"}
    assert acme.slack.send(acme.service, body, path="/slack/events", headers=as_json).status_code == 200
    until(lambda: acme.gpuplan.store.slack.installation(TEAM) is None)
