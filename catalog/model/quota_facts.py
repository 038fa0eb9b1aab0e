"""Quotas of an account as its cloud states them, and which machines each of them limits (`data/service_quotas.csv`)."""

from dataclasses import dataclass

from gpuplan.catalog.model.capacity_answers import NotLearned
from gpuplan.catalog.model.data_tables import data_table


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaFact:
    """The most vCPUs of the machines that `family` (a glob) matches, for spot or on_demand, as the cloud's `code` says."""

    provider: str
    region: str
    family: str
    price_kind: str
    vcpus: int
    code: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotasRead:
    """What one region's answer held, and what it did not."""

    quotas: tuple[QuotaFact, ...] = ()
    not_learned: tuple[NotLearned, ...] = ()


def quota_codes(provider: str) -> dict[str, dict[str, str]]:
    """The provider's quotas on machines with accelerators: code -> row with family, price_kind and name."""
    return {row["code"]: row for row in data_table("service_quotas.csv") if row["provider"] == provider}
