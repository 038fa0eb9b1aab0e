"""AWS: through its APIs if there are credentials, else from its public price files."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from catalog.errors import ProviderFailure
from providers.contract import Provider, Rows
from providers.said import said
from providers.sources import Sources

#: Where an account's regions are asked for unless the environment or the profile names a region.
DEFAULT_REGION = "us-east-1"


def provider(sources: Sources, *, read_at: datetime) -> Provider:
    """AWS as this environment may see it; credentials come from boto3's own chain.

    Outside EC2 the last link of that chain, the instance's metadata, is given up after a second.
    """
    import boto3  # type: ignore[import-untyped]
    from botocore.exceptions import BotoCoreError  # type: ignore[import-untyped]

    try:
        session: Any = boto3.Session()
        has_credentials = session.get_credentials() is not None
    except BotoCoreError as error:
        return _Unusable(f"the AWS credentials cannot be read: {said(error)}")
    if not has_credentials:
        from providers.aws.price_files import price_files_provider

        return price_files_provider(sources, read_at=read_at)
    from providers.aws.calls import Calls
    from providers.aws.live import LiveAws

    calls = Calls(session, paced=sources.paced)
    return LiveAws(calls, sources, seed=session.region_name or DEFAULT_REGION, read_at=read_at)


class _Unusable:
    """AWS with a profile or credential file that cannot be read: it says so when it is asked."""

    name = "aws"
    parallel = 1

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def regions(self) -> Sequence[str]:
        raise ProviderFailure(self._reason)

    def fetch(self, region: str) -> Rows:
        raise ProviderFailure(f"{region}: {self._reason}")
