"""The clouds: which credentials are there, and, when asked for, whether servers answer and tell the same time."""

import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from api.doctor.finding import Finding, broken, ok, warning
from catalog.errors import ProviderFailure
from providers.clock import MOST_OFF, clocks, server_time
from providers.clouds import cloud_names
from providers.proxies import check_proxies
from providers.sources import Sources

#: Where each cloud's libraries look, in their order: variables that suffice, then files below the home directory.
_VARIABLES = {
    "aws": (
        ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
        ("AWS_PROFILE",),
        ("AWS_WEB_IDENTITY_TOKEN_FILE",),
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI",),
        ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",),
    ),
    "gcp": (("GOOGLE_APPLICATION_CREDENTIALS",), ("GPUPLAN_GCP_API_KEY",)),
    "azure": (
        ("AZURE_CLIENT_ID", "AZURE_TENANT_ID", "AZURE_CLIENT_SECRET"),
        ("AZURE_CLIENT_ID", "AZURE_TENANT_ID", "AZURE_FEDERATED_TOKEN_FILE"),
        ("AZURE_CLIENT_ID", "AZURE_TENANT_ID", "AZURE_CLIENT_CERTIFICATE_PATH"),
    ),
}
_FILES = {
    "aws": (".aws/credentials", ".aws/config"),
    "gcp": (".config/gcloud/application_default_credentials.json",),
    "azure": (".azure/msal_token_cache.json",),
}
#: Variables that name a file: one that is not there is no credential, and each cloud's library stops at it.
_NAMING_FILES = {
    "aws": ("AWS_WEB_IDENTITY_TOKEN_FILE",),
    "gcp": ("GOOGLE_APPLICATION_CREDENTIALS",),
    "azure": ("AZURE_FEDERATED_TOKEN_FILE", "AZURE_CLIENT_CERTIFICATE_PATH"),
}
_WITHOUT = {
    "aws": ("public price files are read", "give credentials for spot by zone, savings plans and capacity blocks"),
    "gcp": ("its prices cannot be refreshed", "gcloud auth application-default login, or set GPUPLAN_GCP_API_KEY"),
    "azure": ("every price is read", "az login and AZURE_SUBSCRIPTION_ID for what the subscription may rent"),
}


def credentials(environment: Mapping[str, str] = os.environ, home: Path | None = None) -> list[Finding]:
    """Where credentials are, by name; nothing of them is read. An instance's own role shows only when asked (`--online`)."""
    return [_credentials(name, environment, home or Path.home()) for name in cloud_names()]


def _credentials(cloud: str, environment: Mapping[str, str], home: Path) -> Finding:
    name = f"credentials of {cloud}"
    lacking = [each for each in _NAMING_FILES[cloud] if environment.get(each) and not Path(environment[each]).is_file()]
    if lacking:
        return broken(name, f"{lacking[0]} names a file that is not there", f"correct or unset {lacking[0]}")
    places = [" and ".join(each) for each in _VARIABLES[cloud] if all(environment.get(part) for part in each)]
    places += [f"~/{each}" for each in _FILES[cloud] if (home / each).is_file()]
    if not places:
        found, advice = _WITHOUT[cloud]
        return warning(name, f"none in variables or files; without them {found}", advice)
    if cloud == "azure" and not environment.get("AZURE_SUBSCRIPTION_ID"):
        found = f"found in {', '.join(places)}, but no subscription is named"
        return warning(name, found, "set AZURE_SUBSCRIPTION_ID to read what it may rent")
    if cloud == "gcp" and places == ["GPUPLAN_GCP_API_KEY"]:
        advice = "gcloud auth application-default login and GPUPLAN_GCP_PROJECT for new machines and zones"
        return warning(name, "found in GPUPLAN_GCP_API_KEY, which tells prices of known machines alone", advice)
    return ok(name, f"found in {', '.join(places)}")


def online(sources: Sources) -> list[Finding]:
    """Asks each cloud for the time and, with credentials, for its list of regions: nothing that costs anything.

    Raises `UnusableInput` at each variable that names a proxy which cannot be used.
    """
    check_proxies()
    found = []
    for cloud in cloud_names():
        found += _reached(cloud, sources)
        found.append(_asked(cloud, sources))
    return found


def _reached(cloud: str, sources: Sources) -> list[Finding]:
    name = f"price server of {cloud}"
    said = server_time(clocks(sources, [cloud]))
    if said is None:
        return [
            broken(name, f"{clocks(sources, [cloud])[0].split('?')[0]} does not answer", "check network, proxy and DNS")
        ]
    there, who = said
    off = (datetime.now(UTC) - there).total_seconds()
    if abs(off) > MOST_OFF.total_seconds():
        found = f"{who} answers; this machine's clock is off by {off / 60:+.1f} minutes"
        return [broken(name, found, "set the clock (NTP): prices are dated and tokens expire by it")]
    return [ok(name, f"{who} answers; clocks agree within {max(1, round(abs(off)))} s")]


def _asked(cloud: str, sources: Sources) -> Finding:
    name = f"account at {cloud}"
    try:
        return ok(name, _ASK[cloud](sources))
    except ProviderFailure as error:
        found, advice = _WITHOUT[cloud]
        return warning(name, f"{error}; without it {found}", advice)


def _aws(sources: Sources) -> str:
    """EC2's regions: the first permission in the list of those that are needed."""
    import boto3  # type: ignore[import-untyped]
    from botocore.config import Config  # type: ignore[import-untyped]
    from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped]

    from providers.aws import DEFAULT_REGION
    from providers.said import said

    try:
        session = boto3.Session()
        who = session.get_credentials()
        if who is None:
            raise ProviderFailure("no credentials")
        config = Config(connect_timeout=5, read_timeout=10, retries={"total_max_attempts": 2})
        ec2 = session.client("ec2", region_name=session.region_name or DEFAULT_REGION, config=config)
        regions = ec2.describe_regions()["Regions"]
    except (BotoCoreError, ClientError, ValueError) as error:  # ValueError: AWS_ENDPOINT_URL_EC2 is no address
        raise ProviderFailure(f"aws: {said(error)}") from error
    return f"ec2:DescribeRegions answers with {len(regions)} regions (credentials by {who.method})"


def _gcp(sources: Sources) -> str:
    """Compute Engine's regions, or the price list's services with an API key alone."""
    from google.api_core.exceptions import GoogleAPICallError
    from google.auth.exceptions import GoogleAuthError

    from providers.gcp.clients import account, billing_client, compute_client
    from providers.said import said

    who = account(sources)
    try:
        if who.for_compute:
            with compute_client("Regions", who, sources) as client:
                regions = list(client.list(project=who.project, timeout=15))
            return f"Compute Engine lists {len(regions)} regions of the project"
        with billing_client(who, sources) as client:
            next(iter(client.list_services(timeout=15)), None)
    except (GoogleAPICallError, GoogleAuthError, ValueError) as error:
        raise ProviderFailure(f"gcp: {said(error)}") from error
    return "the price list answers to the API key"


def _azure(sources: Sources) -> str:
    """A token for Resource Manager: listing what a subscription may rent takes many seconds."""
    from azure.core.exceptions import AzureError
    from azure.identity import DefaultAzureCredential

    from providers.said import said

    if not sources.azure_subscription_id:
        raise ProviderFailure("azure: no subscription is named (AZURE_SUBSCRIPTION_ID)")
    if sources.anonymous:
        return "asked without credentials (GPUPLAN_ANONYMOUS)"
    try:
        with DefaultAzureCredential(process_timeout=10, connection_timeout=5, read_timeout=10, retry_total=1) as who:
            who.get_token("https://management.azure.com/.default")
    except AzureError as error:
        raise ProviderFailure(f"azure: {said(str(error).splitlines()[0])}") from error
    return "Microsoft Entra gives a token for the subscription's resource manager"


_ASK: dict[str, Callable[[Sources], str]] = {"aws": _aws, "gcp": _gcp, "azure": _azure}
