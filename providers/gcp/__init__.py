"""Google Cloud: Compute Engine and Cloud TPU with Google's own clients, the Cloud Billing Catalog over HTTPS."""

from datetime import datetime

from gpuplan.providers.cloud_endpoints import Sources
from gpuplan.providers.contract import Provider
from gpuplan.providers.gcp.api_calls import Patience
from gpuplan.providers.gcp.gcp_provider import GcpProvider

PATIENCE = Patience()


def provider(sources: Sources, *, read_at: datetime, patience: Patience = PATIENCE) -> Provider:
    """GCP through `sources`; every offer is observed at `read_at`. Sends nothing before `regions()`."""
    return GcpProvider(sources, read_at=read_at, patience=patience)
