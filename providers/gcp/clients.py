"""Credentials and Google's clients: created on first use, closed after use. The extra `gcp` installs them."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from gpuplan.catalog.runtime.errors import ProviderFailure
from gpuplan.catalog.runtime.extras import needed_module
from gpuplan.providers.cloud_endpoints import Sources
from gpuplan.providers.error_redaction import redacted_text

SCOPE = "https://www.googleapis.com/auth/cloud-platform.read-only"
#: The advice methods do not accept the read-only scope; permissions still limit what the credentials may do.
ADVICE_SCOPE = "https://www.googleapis.com/auth/compute"
HOW_TO = (
    "set GPUPLAN_GCP_PROJECT and Application Default Credentials (gcloud auth application-default login, or"
    " GOOGLE_APPLICATION_CREDENTIALS), or GPUPLAN_GCP_API_KEY for prices alone, or GPUPLAN_ANONYMOUS=1 for a local server"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The project to query and the credentials; without a project only prices can be read.

    `why_none` is the reason for having no credentials.
    """

    project: str | None
    credentials: Any
    api_key: str | None
    why_none: str = ""

    @property
    def for_compute(self) -> bool:
        """Whether machines can be listed, not only prices."""
        return self.project is not None and self.credentials is not None


def account(sources: Sources, *, scope: str = SCOPE) -> Account:
    """Anonymous, else Application Default Credentials for `scope`, else an API key for the price list only.

    Raises `ProviderFailure` with what to set, or to install, if there is none of them.
    """
    try:
        credentials, project, why_none = _credentials(sources, scope)
    except ModuleNotFoundError as error:
        credentials, project, why_none = None, None, f"credentials need {needed_module(error)}"
    project = sources.gcp_project or project
    account = Account(project=project, credentials=credentials, api_key=sources.gcp_api_key, why_none=why_none)
    if not account.for_compute and not sources.gcp_api_key:
        lacks = "no project is named" if credentials is not None else "there are no credentials"
        why = f" ({why_none})" if why_none else ""
        raise ProviderFailure(f"gcp: {lacks}: {HOW_TO}. Until then earlier prices stay as they are{why}")
    return account


def _credentials(sources: Sources, scope: str) -> tuple[Any, str | None, str]:
    """Credentials and the project that they name, or the reason for having none."""
    import google.auth
    from google.auth.credentials import AnonymousCredentials
    from google.auth.exceptions import DefaultCredentialsError, GoogleAuthError

    if sources.anonymous:
        return AnonymousCredentials(), None, ""  # type: ignore[no-untyped-call]
    try:
        credentials, project = google.auth.default(scopes=[scope])
    except DefaultCredentialsError as error:
        return None, None, redacted_text(error)
    except (GoogleAuthError, OSError, ValueError) as error:
        raise ProviderFailure(
            f"gcp: the Application Default Credentials cannot be used: {redacted_text(error)}"
        ) from error
    return credentials, project, ""


def compute_client(kind: str, account: Account, sources: Sources) -> AbstractContextManager[Any]:
    """Compute Engine's `kind`: Regions, Zones, MachineTypes, AcceleratorTypes."""
    from google.cloud import compute_v1

    made: AbstractContextManager[Any] = getattr(compute_v1, f"{kind}Client")(
        credentials=account.credentials, client_options=_options(sources.gcp_compute_endpoint, sources)
    )
    return made


def request_headers(account: Account, url: str) -> dict[str, str]:
    """Headers that authenticate a request without Google's clients; an API key suffices and is preferred.

    Raises `ProviderFailure` if the credentials give no token.
    """
    if account.api_key:
        return {"User-Agent": "gpuplan", "X-Goog-Api-Key": account.api_key}
    return token_headers(account, url)


def token_headers(account: Account, url: str) -> dict[str, str]:
    """Headers that authenticate a request by the account's token. Raises `ProviderFailure` if there is none."""
    headers = {"User-Agent": "gpuplan"}
    from google.auth.exceptions import GoogleAuthError
    from google.auth.transport.requests import Request

    try:
        account.credentials.before_request(Request(), "GET", url, headers)
    except GoogleAuthError as error:
        raise ProviderFailure(f"gcp: the credentials give no token: {redacted_text(error)}") from error
    return headers


def tpu_client(account: Account, sources: Sources) -> AbstractContextManager[Any]:
    """The Cloud TPU API over HTTPS."""
    from google.cloud import tpu_v2

    return tpu_v2.TpuClient(
        credentials=account.credentials, transport="rest", client_options=_options(sources.gcp_tpu_endpoint, sources)
    )


def _options(endpoint: str | None, sources: Sources) -> dict[str, str]:
    """Client options."""
    address = checked_endpoint(endpoint, sources)
    return {} if address is None else {"api_endpoint": address}


def checked_endpoint(endpoint: str | None, sources: Sources) -> str | None:
    """The endpoint, None for the default. Credentials require TLS: plain http is for anonymous use."""
    if endpoint is None:
        return None
    if not endpoint.startswith("https://") and not (sources.anonymous and endpoint.startswith("http://")):
        raise ProviderFailure(
            f"gcp: the endpoint {redacted_text(endpoint)} must begin with https:// (or http:// with GPUPLAN_ANONYMOUS=1)"
        )
    return endpoint.rstrip("/")
