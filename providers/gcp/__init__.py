"""Google Cloud: Compute Engine, Cloud TPU and the Cloud Billing Catalog, read with Google's own clients."""

from datetime import datetime

from providers.contract import Provider
from providers.gcp.calls import Patience
from providers.gcp.cloud import GcpProvider
from providers.sources import Sources

PATIENCE = Patience()


def provider(sources: Sources, *, read_at: datetime, patience: Patience = PATIENCE) -> Provider:
    """GCP as `sources` reach it; every offer is observed at `read_at`. Nothing is asked before `regions()`."""
    return GcpProvider(sources, read_at=read_at, patience=patience)
