"""Cloud credentials: which exist, and, with `--online`, whether servers answer and clocks agree."""

import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from gpuplan.api.observability.doctor.finding import Finding, broken, ok, warning
from gpuplan.catalog.model.provider_names import provider_names
from gpuplan.catalog.model.regions import is_place_unknown
from gpuplan.catalog.runtime.errors import ProviderFailure
from gpuplan.catalog.runtime.extras import needed_module
from gpuplan.providers.capacity.capacity_queries import CapacityQuery, ask_capacity
from gpuplan.providers.capacity.capacity_sources import CapacitySources
from gpuplan.providers.cloud_endpoints import Sources
from gpuplan.providers.cloud_registry import chosen_clouds, cloud_names, made
from gpuplan.providers.proxy_settings import check_proxies
from gpuplan.providers.refresh.server_clock import MOST_OFF, clocks, server_time

#: Where each cloud's libraries look, in order: sufficient variables, then files below the home directory.
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
#: Variables that name a file. A missing file is no credential, and each cloud's library stops at it.
_NAMING_FILES = {
    "aws": ("AWS_WEB_IDENTITY_TOKEN_FILE",),
    "gcp": ("GOOGLE_APPLICATION_CREDENTIALS",),
    "azure": ("AZURE_FEDERATED_TOKEN_FILE", "AZURE_CLIENT_CERTIFICATE_PATH"),
}
_WITHOUT = {
    "aws": ("public price files are read", "add credentials for spot by zone, savings plans and capacity blocks"),
    "gcp": ("its prices cannot be refreshed", "gcloud auth application-default login, or set GPUPLAN_GCP_API_KEY"),
    "azure": ("every price is read", "az login and AZURE_SUBSCRIPTION_ID for what the subscription may rent"),
}
#: One query per cloud, about a machine that it has for years.
_PROBES = {
    "aws": ("g4dn.xlarge", "us-east-1"),
    "azure": ("Standard_NC4as_T4_v3", "eastus"),
    "gcp": ("g2-standard-4", "us-central1"),
}
PERMISSIONS = {
    "aws": "allow ec2:GetSpotPlacementScores",
    "azure": "assign the role Compute Recommendations Role, and Reader for eviction bands, on the subscription",
    "gcp": "grant compute.advice.capacity and compute.advice.capacityHistory",
}
LIMIT_SECONDS = 10.0


def credentials(environment: Mapping[str, str] = os.environ, home: Path | None = None) -> list[Finding]:
    """Where credentials exist, by name, without reading them. The role of an instance only shows with `--online`."""
    return [_credentials(name, environment, home or Path.home()) for name in cloud_names()]


def _credentials(cloud: str, environment: Mapping[str, str], home: Path) -> Finding:
    name = f"credentials of {cloud}"
    if provider_names()[cloud].endpoint:
        return _key(name, cloud, environment)
    lacking = [
        variable
        for variable in _NAMING_FILES[cloud]
        if environment.get(variable) and not Path(environment[variable]).is_file()
    ]
    if lacking:
        return broken(name, f"{lacking[0]} names a file that does not exist", f"correct or unset {lacking[0]}")
    places = [
        " and ".join(variables) for variables in _VARIABLES[cloud] if all(environment.get(part) for part in variables)
    ]
    places += [f"~/{path}" for path in _FILES[cloud] if (home / path).is_file()]
    if not places:
        limitation, advice = _WITHOUT[cloud]
        return warning(name, f"none in variables or files; without them {limitation}", advice)
    if cloud == "azure" and not environment.get("AZURE_SUBSCRIPTION_ID"):
        summary = f"found in {', '.join(places)}, but no subscription is named"
        return warning(name, summary, "set AZURE_SUBSCRIPTION_ID to read what it may rent")
    if cloud == "gcp" and places == ["GPUPLAN_GCP_API_KEY"]:
        advice = "gcloud auth application-default login and GPUPLAN_GCP_PROJECT for new machines and zones"
        return warning(name, "in GPUPLAN_GCP_API_KEY, which only gives prices of known machines", advice)
    return ok(name, f"found in {', '.join(places)}")


def _key(name: str, cloud: str, environment: Mapping[str, str]) -> Finding:
    """Whether the key of a provider with one REST API is set."""
    variable, needed = provider_names()[cloud].key_variable, provider_names()[cloud].needs_key
    if not needed and not any(environment.get(name_) for name_ in (variable, f"{variable}_FILE")):
        return ok(name, f"none needed: gpuplan refresh --provider {cloud} reads its public prices")
    if any(environment.get(name_) for name_ in (variable, f"{variable}_FILE")):
        return ok(name, f"found in {variable}")
    return warning(
        name, f"none in {variable}; its prices stay those of this release", f"set {variable} to refresh them"
    )


def online(sources: Sources) -> list[Finding]:
    """Query each cloud for the time and, with credentials, for its regions; causes no cost.

    Raises `UnusableInput` at each variable that names an unusable proxy.
    """
    check_proxies()
    findings = []
    for cloud in chosen_clouds(None, cloud_names()):
        findings += _reached(cloud, sources)
        findings.append(_asked(cloud, sources))
    return findings + capacity_access(sources)


def _reached(cloud: str, sources: Sources) -> list[Finding]:
    name = f"price server of {cloud}"
    answer = server_time(clocks(sources, [cloud]))
    if answer is None and provider_names()[cloud].endpoint:
        return []  # what the account is asked for says why
    if answer is None:
        return [
            broken(name, f"{clocks(sources, [cloud])[0].split('?')[0]} does not answer", "check network, proxy and DNS")
        ]
    server_clock, server = answer
    off = (datetime.now(UTC) - server_clock).total_seconds()
    if abs(off) > MOST_OFF.total_seconds():
        summary = f"{server} answers; this machine's clock is off by {off / 60:+.1f} minutes"
        return [broken(name, summary, "set the clock (NTP): prices are dated and tokens expire by it")]
    return [ok(name, f"{server} answers; clocks agree within {max(1, round(abs(off)))} s")]


def _asked(cloud: str, sources: Sources) -> Finding:
    name = f"account at {cloud}"
    if provider_names()[cloud].endpoint:
        return _listed(name, cloud, sources)
    try:
        return ok(name, _ASK[cloud](sources))
    except ModuleNotFoundError as error:
        needed, _, hint = needed_module(error).partition(": ")
        return warning(name, f"not asked: {needed} is not installed; without it {_WITHOUT[cloud][0]}", hint)
    except ProviderFailure as error:
        limitation, advice = _WITHOUT[cloud]
        return warning(name, f"{error}; without it {limitation}", advice)


def _listed(name: str, cloud: str, sources: Sources) -> Finding:
    """Whether a provider with one REST API gives its list to the account's key."""
    try:
        places = [
            region for region in made(cloud, sources, datetime.now(UTC)).regions() if not is_place_unknown(region)
        ]
    except ProviderFailure as error:
        return warning(name, f"{error}; its prices stay those of this release", "check the key and the endpoint")
    return ok(name, f"the price list answers and names {len(places)} regions")


def _aws(sources: Sources) -> str:
    """EC2's regions: the first permission in the list of required ones."""
    import boto3  # type: ignore[import-untyped]
    from botocore.config import Config  # type: ignore[import-untyped]
    from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped]

    from gpuplan.providers.aws import DEFAULT_REGION
    from gpuplan.providers.error_redaction import redacted_text

    try:
        session = boto3.Session()
        credentials = session.get_credentials()
        if credentials is None:
            raise ProviderFailure("no credentials")
        config = Config(connect_timeout=5, read_timeout=10, retries={"total_max_attempts": 2})
        ec2 = session.client("ec2", region_name=session.region_name or DEFAULT_REGION, config=config)
        regions = ec2.describe_regions()["Regions"]
    except (BotoCoreError, ClientError, ValueError) as error:  # ValueError: AWS_ENDPOINT_URL_EC2 is no address
        raise ProviderFailure(f"aws: {redacted_text(error)}") from error
    return f"ec2:DescribeRegions answers with {len(regions)} regions (credentials by {credentials.method})"


def _gcp(sources: Sources) -> str:
    """Compute Engine's regions, or the price list with an API key alone."""
    from gpuplan.providers.error_redaction import redacted_text
    from gpuplan.providers.gcp.clients import account, compute_client
    from gpuplan.providers.gcp.price_list import check_access

    shared_account = account(sources)
    if not shared_account.for_compute:
        check_access(shared_account, sources)
        return "the price list answers to the API key"
    from google.api_core.exceptions import GoogleAPICallError
    from google.auth.exceptions import GoogleAuthError

    try:
        with compute_client("Regions", shared_account, sources) as client:
            regions = list(client.list(project=shared_account.project, timeout=15))
    except (GoogleAPICallError, GoogleAuthError, ValueError) as error:
        raise ProviderFailure(f"gcp: {redacted_text(error)}") from error
    return f"Compute Engine lists {len(regions)} regions of the project"


def _azure(sources: Sources) -> str:
    """A token for Resource Manager: listing what a subscription may rent takes many seconds."""
    from azure.core.exceptions import AzureError
    from azure.identity import DefaultAzureCredential

    from gpuplan.providers.error_redaction import redacted_text

    if not sources.azure_subscription_id:
        raise ProviderFailure("azure: no subscription is named (AZURE_SUBSCRIPTION_ID)")
    if sources.anonymous:
        return "asked without credentials (GPUPLAN_ANONYMOUS)"
    try:
        with DefaultAzureCredential(
            process_timeout=10, connection_timeout=5, read_timeout=10, retry_total=1
        ) as credential:
            credential.get_token("https://management.azure.com/.default")
    except AzureError as error:
        raise ProviderFailure(f"azure: {redacted_text(str(error).splitlines()[0])}") from error
    return "Microsoft Entra gives a token for the subscription's resource manager"


_ASK: dict[str, Callable[[Sources], str]] = {"aws": _aws, "gcp": _gcp, "azure": _azure}


def capacity_access(sources: Sources) -> list[Finding]:
    """A finding per cloud; asks each once, free of charge."""
    queries = [
        CapacityQuery(provider=cloud, machines=(machine,), nodes=1, kind="spot", places=(region,))
        for cloud, (machine, region) in _PROBES.items()
    ]
    learned = ask_capacity(CapacitySources(sources), queries, asked_at=datetime.now(UTC), limit_seconds=LIMIT_SECONDS)
    findings = []
    for cloud in _PROBES:
        name = f"capacity at {cloud}"
        reasons = [row.reason for row in learned.not_learned if row.provider == cloud]
        if any(answer.provider == cloud for answer in learned.answers) and not reasons:
            findings.append(ok(name, "tells how likely machines are obtained"))
        else:
            what = "in part not learned" if any(row.provider == cloud for row in learned.answers) else "not learned"
            reason = reasons[0] if reasons else "no answer"
            findings.append(warning(name, f"{what}: {reason}; gpuplan capacity then leaves it out", PERMISSIONS[cloud]))
    return findings
