"""Who asks, and through which of Google's clients: made when first needed, closed after use."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from catalog.errors import ProviderFailure
from providers.said import said
from providers.sources import Sources

SCOPE = "https://www.googleapis.com/auth/cloud-platform.read-only"
HOW_TO = (
    "set GPUPLAN_GCP_PROJECT and Application Default Credentials (gcloud auth application-default login, or"
    " GOOGLE_APPLICATION_CREDENTIALS), or GPUPLAN_ANONYMOUS=1 for a local server"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The project that is asked about and the credentials; no project means that prices alone can be read."""

    project: str | None
    credentials: Any
    api_key: str | None

    @property
    def for_compute(self) -> bool:
        """Whether machines can be listed, not only prices."""
        return self.project is not None and self.credentials is not None


def account(sources: Sources) -> Account:
    """Anonymous, else Application Default Credentials, else an API key for the price list alone.

    Raises `ProviderFailure` naming what to set if there is none of them.
    """
    credentials, project, why_none = _credentials(sources)
    project = sources.gcp_project or project
    found = Account(project=project, credentials=credentials, api_key=sources.gcp_api_key)
    if not found.for_compute and not sources.gcp_api_key:
        lacks = "no project is named" if credentials is not None else "there are no credentials"
        why = f" ({why_none})" if why_none else ""
        raise ProviderFailure(f"gcp: {lacks}: {HOW_TO}. Until then earlier prices stay as they are{why}")
    return found


def _credentials(sources: Sources) -> tuple[Any, str | None, str]:
    """Credentials and the project that they name; without any, why."""
    import google.auth
    from google.auth.credentials import AnonymousCredentials
    from google.auth.exceptions import DefaultCredentialsError, GoogleAuthError

    if sources.anonymous:
        return AnonymousCredentials(), None, ""  # type: ignore[no-untyped-call]
    try:
        credentials, project = google.auth.default(scopes=[SCOPE])
    except DefaultCredentialsError as error:
        return None, None, said(error)
    except (GoogleAuthError, OSError, ValueError) as error:
        raise ProviderFailure(f"gcp: the Application Default Credentials cannot be used: {said(error)}") from error
    return credentials, project, ""


def compute_client(kind: str, who: Account, sources: Sources) -> AbstractContextManager[Any]:
    """Compute Engine's `kind`: Regions, Zones, MachineTypes, AcceleratorTypes."""
    from google.cloud import compute_v1

    made: AbstractContextManager[Any] = getattr(compute_v1, f"{kind}Client")(
        credentials=who.credentials, client_options=_options(sources.gcp_compute_endpoint, sources)
    )
    return made


def billing_client(who: Account, sources: Sources) -> AbstractContextManager[Any]:
    """The Cloud Billing Catalog over HTTPS; an API key suffices and is preferred."""
    from google.cloud import billing_v1

    options = _options(sources.gcp_billing_endpoint, sources)
    if who.api_key:
        return billing_v1.CloudCatalogClient(transport="rest", client_options={**options, "api_key": who.api_key})
    return billing_v1.CloudCatalogClient(credentials=who.credentials, transport="rest", client_options=options)


def tpu_client(who: Account, sources: Sources) -> AbstractContextManager[Any]:
    """The Cloud TPU API over HTTPS."""
    from google.cloud import tpu_v2

    return tpu_v2.TpuClient(
        credentials=who.credentials, transport="rest", client_options=_options(sources.gcp_tpu_endpoint, sources)
    )


def _options(endpoint: str | None, sources: Sources) -> dict[str, str]:
    """Credentials travel over TLS alone: plain http is for anonymous use."""
    if endpoint is None:
        return {}
    if not endpoint.startswith("https://") and not (sources.anonymous and endpoint.startswith("http://")):
        raise ProviderFailure(
            f"gcp: the endpoint {said(endpoint)} must begin with https:// (or http:// with GPUPLAN_ANONYMOUS=1)"
        )
    return {"api_endpoint": endpoint.rstrip("/")}
