"""A service that takes part in Slack, and a local server that plays Slack, over real sockets with the real SDK."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp

from gpuplan.api.http.http_service import create_service
from gpuplan.api.services.composition import Services
from gpuplan.api.slack.slack_settings import Patience, SlackSettings
from gpuplan.api.slack.workspaces import allow
from tests.clouds.slack import SECRET, TEAM, TOKEN, Seen, Slack

QUICK = Patience(
    attempts=3,
    attempt_seconds=20.0,
    first_wait_seconds=0.01,
    longest_wait_seconds=0.2,
    look_seconds=0.1,
    store_seconds=20.0,
    stop_seconds=2.0,
)
PLAN = "plan llama-3-8b tokens=200M sequence=4096 method=lora precision=bf16 by=36h nodes=8"

Served = Callable[[ASGIApp], AbstractContextManager[httpx.Client]]


#: Where people open the page.
PAGE = "https://gpuplan.example.com"


@dataclass(slots=True)
class Acme:
    """A workspace that may plan: its Slack, and the service that it calls."""

    slack: Slack
    service: httpx.Client
    gpuplan: Services
    settings: SlackSettings

    def types(self, text: str, **fields: str) -> dict[str, Any]:
        """What is acknowledged when somebody types `/gpuplan text`; empty where that is nothing."""
        answer = self.slack.send(self.service, self.slack.command(text, **fields))
        assert answer.status_code == 200, answer.text
        body: dict[str, Any] = answer.json() if answer.content else {}
        return body

    def asks(self, text: str, **fields: str) -> Seen:
        """What somebody is told after that."""
        before = len(self.slack.seen)
        self.types(text, **fields)
        return self.slack.wait_for(before + 1)[before]

    def clicks(self, message: Seen, action: str, **fields: str) -> Seen:
        """What is told after a click."""
        before = len(self.slack.seen)
        answer = self.slack.send(self.service, self.slack.click(message, action, **fields), path="/slack/interactions")
        assert (answer.status_code, answer.content) == (200, b"")
        return self.slack.wait_for(before + 1)[before]


@pytest.fixture(scope="package")
def slack() -> Iterator[Slack]:
    slack = Slack()
    with slack.running():
        yield slack


@pytest.fixture(scope="package")
def settings(slack: Slack) -> SlackSettings:
    return SlackSettings(
        signing_secret=SECRET, bot_token=TOKEN, api_url=slack.api_url, page_url=f"{PAGE}/", patience=QUICK
    )


@pytest.fixture(scope="package")
def service(gpuplan: Services, settings: SlackSettings, served: Served) -> Iterator[httpx.Client]:
    with served(create_service(gpuplan, slack=settings)) as client:
        yield client


@pytest.fixture
def acme(slack: Slack, service: httpx.Client, gpuplan: Services, settings: SlackSettings) -> Acme:
    slack.forget()
    allow(gpuplan, TEAM, scope="plan", name="acme")
    return Acme(slack, service, gpuplan, settings)


@pytest.fixture
def slow(settings: SlackSettings) -> SlackSettings:
    """Settings under which nothing that failed is taken up again within a test."""
    return replace(settings, patience=replace(QUICK, look_seconds=600.0))
