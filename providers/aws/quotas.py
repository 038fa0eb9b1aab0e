"""Quotas at AWS: vCPUs by family, spot apart, per region, from Service Quotas (`servicequotas:ListServiceQuotas`)."""

from gpuplan.catalog.model.capacity_answers import QuotasRead, quota_codes, quota_fact
from gpuplan.catalog.runtime.errors import ProviderFailure
from gpuplan.providers.aws.api_calls import CallFailed, CallLimits, Calls
from gpuplan.providers.aws.capacity import signed_in
from gpuplan.providers.cloud_endpoints import Sources

LIMITS = CallLimits(connect_seconds=5, read_seconds=10, attempts=3)


def quota_source(sources: Sources) -> "AwsQuotas":
    """The account that boto3's chain signs in to. Raises `ProviderFailure` if there is none."""
    calls, _ = signed_in(sources, LIMITS)
    return AwsQuotas(calls, account=calls.account())


class AwsQuotas:
    """The quotas of one account; any number of threads may read them at the same time."""

    def __init__(self, calls: Calls, *, account: str) -> None:
        """Sends nothing yet; `account` tells the accounts apart."""
        self._calls, self.account = calls, account

    def read(self, region: str) -> QuotasRead:
        """The quotas on machines with accelerators in a region. Raises `ProviderFailure`."""
        try:
            rows = self._calls.every("service-quotas", region, "list_service_quotas", "Quotas", ServiceCode="ec2")
        except CallFailed as failure:
            raise ProviderFailure(str(failure)) from failure
        values = {row.get("QuotaCode"): row.get("Value") for row in rows if isinstance(row, dict)}
        return QuotasRead.of(
            quota_fact("aws", region, code, values.get(code), reader="Service Quotas") for code in quota_codes("aws")
        )
