"""An environment with made-up AWS keys and nothing else of AWS, and the adapter pointed at a local server."""

import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest
from botocore.loaders import create_loader  # type: ignore[import-untyped]
from botocore.retries.standard import ExponentialBackoff  # type: ignore[import-untyped]

from gpuplan.providers.aws import api_calls, provider
from gpuplan.providers.cloud_endpoints import Sources
from gpuplan.providers.contract import Provider
from tests.clouds.aws import ADVISOR_PATH
from tests.clouds.server import CloudServer
from tests.providers.conftest import MOST_SECONDS

READ_AT = datetime(2026, 11, 21, 2, 30, tzinfo=UTC)
KEY_ID = "AKIAIOSFODNN7EXAMPLE"
SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
type AskAws = Callable[[CloudServer], Provider]


@pytest.fixture(scope="session", autouse=True)
def models_are_read_once() -> Iterator[None]:
    """boto3 reads what it knows of EC2 for each session again: a fifth of a second, in nearly every test."""
    models = create_loader()
    with pytest.MonkeyPatch.context() as shared:
        shared.setattr("botocore.session.create_loader", lambda _: models)
        yield


@pytest.fixture(autouse=True)
def short_waits_of_the_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    """As between our own attempts, of which the SDK's are part."""
    waited = ExponentialBackoff.delay_amount

    def shorter(backoff: ExponentialBackoff, context: object) -> float:
        return min(float(waited(backoff, context)), MOST_SECONDS)

    monkeypatch.setattr(ExponentialBackoff, "delay_amount", shorter)


@pytest.fixture
def no_aws_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever this machine knows of AWS is out of sight."""
    forget_aws(monkeypatch)


@pytest.fixture
def ask_aws(monkeypatch: pytest.MonkeyPatch) -> AskAws:
    """The adapter over boto3 against a running server."""
    made_up_keys(monkeypatch)
    return lambda server: aws_at(server, monkeypatch)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two attempts per call, so that what fails for good does so soon."""
    monkeypatch.setattr(api_calls, "SDK_ATTEMPTS", 2)
    monkeypatch.setattr(api_calls, "WHOLE_ATTEMPTS", 2)


def forget_aws(environment: pytest.MonkeyPatch) -> None:
    for name in [item for item in os.environ if item.startswith("AWS_")]:
        environment.delenv(name)
    environment.setenv("AWS_EC2_METADATA_DISABLED", "true")
    environment.setenv("AWS_CONFIG_FILE", os.devnull)
    environment.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)


def made_up_keys(environment: pytest.MonkeyPatch) -> None:
    forget_aws(environment)
    environment.setenv("AWS_ACCESS_KEY_ID", KEY_ID)
    environment.setenv("AWS_SECRET_ACCESS_KEY", SECRET)


def aws_at(server: CloudServer, environment: pytest.MonkeyPatch) -> Provider:
    """The adapter with boto3 pointed at the server."""
    for service in ("EC2", "PRICING", "SAVINGSPLANS"):
        environment.setenv(f"AWS_ENDPOINT_URL_{service}", server.url)
    advisor, files = server.url + ADVISOR_PATH, server.url + "/none"
    return provider(Sources(aws_spot_advisor_url=advisor, aws_price_files_url=files, paced=False), read_at=READ_AT)
