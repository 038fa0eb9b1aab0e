"""Quotas at Azure: vCPUs by family of sizes, of a region, and of all spot machines (`Microsoft.Compute/locations/usages`).

The role Reader allows the question. Azure spells a family's name with and without blanks and in more than one case.
"""

from contextlib import ExitStack

from azure.core.exceptions import AzureError

from gpuplan.catalog.model.capacity_answers import QuotasRead, quota_codes, quota_fact
from gpuplan.catalog.runtime.errors import ProviderFailure
from gpuplan.providers.azure.arm_client import compute_client, reason_of
from gpuplan.providers.cloud_endpoints import Sources

_CALL = "usage.list of azure-mgmt-compute"
#: The exceptions of the SDK for bodies of another shape, in addition to its own errors.
_ODD_ANSWERS = (ValueError, TypeError, AttributeError, KeyError)


def quota_source(sources: Sources) -> "AzureQuotas":
    """The subscription named. Raises `ProviderFailure` without one."""
    if not sources.azure_subscription_id:
        raise ProviderFailure("no subscription given (AZURE_SUBSCRIPTION_ID)")
    return AzureQuotas(sources)


class AzureQuotas:
    """The quotas of one subscription; any number of threads may read them at the same time."""

    def __init__(self, sources: Sources) -> None:
        """Sends nothing yet."""
        self._sources, self.account = sources, str(sources.azure_subscription_id)

    def read(self, region: str) -> QuotasRead:
        """The quotas on machines with accelerators in a region. Raises `ProviderFailure`."""
        try:
            with ExitStack() as resources:
                rows = list(compute_client(self._sources, resources, call=_CALL).usage.list(region))
                values = {plain_code(row.name.value): row.limit for row in rows}
        except AzureError as error:
            raise ProviderFailure(f"{_CALL}: {reason_of(error)}") from error
        except _ODD_ANSWERS as error:
            raise ProviderFailure(
                f"{_CALL}: the answer does not have the form that the API documents; check the endpoint and any proxy"
            ) from error
        return QuotasRead.of(
            quota_fact("azure", region, code, values.get(plain_code(code)), reader=_CALL)
            for code in quota_codes("azure")
        )


def plain_code(name: object) -> str:
    """A quota's name without blanks, in lower case."""
    return "".join(str(name).split()).lower()
