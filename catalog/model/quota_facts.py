"""Quotas of an account as its cloud states them, and which machines each of them limits (`data/service_quotas.csv`)."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from gpuplan.catalog.model.capacity_answers import NotLearned
from gpuplan.catalog.model.data_tables import data_table

#: How the metrics of Compute Engine begin that limit spot machines.
PREEMPTIBLE = "PREEMPTIBLE_"
#: Most vCPUs or accelerators that count as a quota; larger values are no limit that anyone was given.
MOST_UNITS = 10_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaFact:
    """The most vCPUs or accelerators of the machines that `family` (a glob) matches, as the cloud's `code` says.

    `price_kind` is spot, on_demand or empty for both; an empty `region` means all regions together.
    """

    provider: str
    region: str
    family: str
    price_kind: str
    code: str
    vcpus: int | None = None
    accelerators: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotasRead:
    """What one region's answer held, and what it did not."""

    quotas: tuple[QuotaFact, ...] = ()
    not_learned: tuple[NotLearned, ...] = ()

    @staticmethod
    def of(parts: Iterable[QuotaFact | NotLearned]) -> "QuotasRead":
        """Quotas and reasons in the order read."""
        every = tuple(parts)
        return QuotasRead(
            quotas=tuple(part for part in every if isinstance(part, QuotaFact)),
            not_learned=tuple(part for part in every if isinstance(part, NotLearned)),
        )


def quota_codes(provider: str) -> dict[str, dict[str, str]]:
    """The provider's quotas on machines with accelerators: code -> row with family, unit, price_kind and name."""
    return {row["code"]: row for row in data_table("service_quotas.csv") if row["provider"] == provider}


def quota_fact(provider: str, region: str, code: str, value: Any, *, reader: str) -> QuotaFact | NotLearned:
    """The quota `code` at the value that `reader`, the cloud's method, states. A value that no quota has is not believed."""
    row = quota_codes(provider)[code]
    about = code if code == row["name"] else f"{code} ({row['name']})"
    if value is None:
        return NotLearned(provider=provider, region=region, reason=f"{reader} does not list {about}", what="quota")
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST_UNITS:
        reason = f"{about} is {value!r}; accepted: 0 to {MOST_UNITS}"[:200]
        return NotLearned(provider=provider, region=region, reason=reason, what="quota")
    whole = int(value)
    return QuotaFact(
        provider=provider,
        region=region,
        family=row["family"],
        price_kind=row["price_kind"],
        code=code,
        vcpus=whole if row["unit"] == "vcpus" else None,
        accelerators=whole if row["unit"] == "accelerators" else None,
    )
