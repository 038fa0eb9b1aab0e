"""AWS: through its APIs with credentials, otherwise from its public price files."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from gpuplan.catalog.runtime.errors import ProviderFailure
from gpuplan.catalog.runtime.extras import needed_module
from gpuplan.providers.cloud_endpoints import Sources
from gpuplan.providers.contract import Provider, Rows
from gpuplan.providers.error_redaction import redacted_text

#: The region for account-wide calls unless the environment or the profile names one.
DEFAULT_REGION = "us-east-1"


def provider(sources: Sources, *, read_at: datetime) -> Provider:
    """The AWS provider for this environment; credentials come from boto3's own chain.

    Outside EC2, the chain's last source (instance metadata) times out after a second. Without boto3 no credentials are looked
    for, and the price files' provider says what the extra would add.
    """
    from gpuplan.providers.aws.price_files import WITHOUT_SDK, price_files_provider

    try:
        import boto3  # type: ignore[import-untyped]
        from botocore.exceptions import BotoCoreError  # type: ignore[import-untyped]
    except ModuleNotFoundError as error:
        return price_files_provider(sources, read_at=read_at, why=WITHOUT_SDK.format(needed_module(error)))
    try:
        session: Any = boto3.Session()
        has_credentials = session.get_credentials() is not None
    except BotoCoreError as error:
        return _Unusable(f"the AWS credentials cannot be read: {redacted_text(error)}")
    if not has_credentials:
        return price_files_provider(sources, read_at=read_at)
    from gpuplan.providers.aws.api_calls import Calls
    from gpuplan.providers.aws.live_provider import LiveAws

    calls = Calls(session, paced=sources.paced)
    return LiveAws(calls, sources, seed=session.region_name or DEFAULT_REGION, read_at=read_at)


class _Unusable:
    """AWS with an unreadable profile or credential file: every call raises the error."""

    name = "aws"
    parallel = 1

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def regions(self) -> Sequence[str]:
        raise ProviderFailure(self._reason)

    def fetch(self, region: str) -> Rows:
        raise ProviderFailure(f"{region}: {self._reason}")
