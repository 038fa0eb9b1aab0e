"""Quotas at AWS: vCPUs by family, spot apart, per region, from Service Quotas (`servicequotas:ListServiceQuotas`)."""

from typing import Any

from gpuplan.catalog.model.capacity_answers import NotLearned
from gpuplan.catalog.model.quota_facts import QuotaFact, QuotasRead, quota_codes
from gpuplan.catalog.runtime.errors import ProviderFailure
from gpuplan.providers.aws.api_calls import CallFailed, CallLimits, Calls
from gpuplan.providers.aws.capacity import signed_in
from gpuplan.providers.cloud_endpoints import Sources

LIMITS = CallLimits(connect_seconds=5, read_seconds=10, attempts=3)
#: Most vCPUs that count as a quota; larger values are no limit that anyone was given.
MOST_VCPUS = 10_000_000


def quota_source(sources: Sources) -> "AwsQuotas":
    """The account that boto3's chain signs in to. Raises `ProviderFailure` if there is none."""
    calls, _ = signed_in(sources, LIMITS)
    return AwsQuotas(calls)


class AwsQuotas:
    """The quotas of one account; any number of threads may read them at the same time."""

    def __init__(self, calls: Calls) -> None:
        """Sends nothing yet."""
        self._calls = calls

    def read(self, region: str) -> QuotasRead:
        """The quotas on machines with accelerators in a region. Raises `ProviderFailure`."""
        try:
            rows = self._calls.every("service-quotas", region, "list_service_quotas", "Quotas", ServiceCode="ec2")
        except CallFailed as failure:
            raise ProviderFailure(str(failure)) from failure
        values = {row.get("QuotaCode"): row.get("Value") for row in rows if isinstance(row, dict)}
        parts = [_fact(region, code, row, values.get(code)) for code, row in quota_codes("aws").items()]
        return QuotasRead(
            quotas=tuple(part for part in parts if isinstance(part, QuotaFact)),
            not_learned=tuple(part for part in parts if isinstance(part, NotLearned)),
        )


def _fact(region: str, code: str, row: dict[str, str], value: Any) -> QuotaFact | NotLearned:
    """One quota. A value that no quota can have is not believed."""
    about = f"{code} ({row['name']})"
    if value is None:
        return NotLearned(provider="aws", region=region, reason=f"Service Quotas does not list {about}", what="quota")
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST_VCPUS:
        reason = f"{about} is {value!r}; accepted: 0 to {MOST_VCPUS}"[:200]
        return NotLearned(provider="aws", region=region, reason=reason, what="quota")
    return QuotaFact(
        provider="aws",
        region=region,
        family=row["family"],
        price_kind=row["price_kind"],
        vcpus=int(value),
        code=code,
    )
