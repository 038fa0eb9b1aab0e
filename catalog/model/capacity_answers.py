"""What clouds say about getting machines: one record per answer, and one for what was not learned.

A cloud publishes a score, a share or a word. `probability` is gpuplan's reading of it by `data/capacity_scores.csv`: one
monotone mapping per cloud, marked as modelled, because no cloud publishes how often each score came true.

Quotas of an account as its cloud states them, and which machines each of them limits (`data/service_quotas.csv`).
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from gpuplan.catalog.model.data_tables import data_table
from gpuplan.catalog.model.offer import Implausible

#: The source of an answer that is one try of a run of this installation: its probability is 1 (obtained) or 0 (refused).
OWN_RUN = "own run"
OBTAINED = "obtained"
#: A larger hazard loses a machine within half a minute, which is no running machine.
MOST_INTERRUPTIONS_PER_HOUR = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityAnswer:
    """One cloud's answer for `nodes` machines of one type in one place; an empty `zone` means the region.

    `published` is the cloud's value as it was; `probability` (0 to 1) is read from it. `scored_types` are the types that
    the cloud scored together, of which `instance_type` is one. `interruptions_per_hour` is the hazard of one machine, read
    from `interruptions_published`; None and empty if the cloud says nothing. `uptime_hours` is the cloud's own estimate of
    the time until the loss. `quota_available` is None if unknown. `starts_at` is set for machines that can be booked from
    that time on. `modelled` names the fields that gpuplan derived. Raises `Implausible`.
    """

    provider: str
    region: str
    zone: str
    instance_type: str
    nodes: int
    price_kind: str
    probability: float
    published: str
    asked_at: datetime
    source: str
    scored_types: tuple[str, ...] = ()
    interruptions_per_hour: float | None = None
    interruptions_published: str = ""
    uptime_hours: float | None = None
    quota_available: bool | None = None
    starts_at: datetime | None = None
    modelled: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        what = f"capacity of {self.instance_type} in {self.zone or self.region}"
        if not self.provider or not self.region or not self.instance_type or self.nodes < 1:
            raise Implausible(f"{what}: provider, region, instance type and at least one node are needed")
        if not 0 <= self.probability <= 1:
            raise Implausible(f"{what}: probability {self.probability} is outside 0..1")
        hazard = self.interruptions_per_hour
        if hazard is not None and not 0 <= hazard <= MOST_INTERRUPTIONS_PER_HOUR:
            raise Implausible(f"{what}: {hazard} interruptions per hour are outside 0..{MOST_INTERRUPTIONS_PER_HOUR}")
        if self.uptime_hours is not None and not 0 <= self.uptime_hours < math.inf:
            raise Implausible(f"{what}: an uptime of {self.uptime_hours} h is not possible")

    @property
    def wait_hours(self) -> float | None:
        """Hours from `asked_at` until the machines can start; None if the cloud names no time."""
        if self.starts_at is None:
            return None
        return max(0.0, (self.starts_at - self.asked_at).total_seconds() / 3600)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotLearned:
    """A question without an answer, and why; an empty `region` or `instance_type` means all that were asked.

    `what` is capacity, price_kind if the cloud publishes nothing about such machines, interruptions if only these are
    missing, or quota.
    """

    provider: str
    reason: str
    region: str = ""
    instance_type: str = ""
    what: str = "capacity"


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityAnswers:
    """All that was learned, and all that was not, in the order of provider, region and instance type."""

    answers: tuple[CapacityAnswer, ...] = ()
    not_learned: tuple[NotLearned, ...] = ()


def probability_of(provider: str, price_kind: str, published: str) -> float:
    """The probability that `published` of this provider stands for. Raises `Implausible` for any other value."""
    known = _probabilities().get((provider, price_kind), {})
    if published not in known:
        raise Implausible(f"score {published[:40]!r} is none of {', '.join(known)}")
    return known[published]


@cache
def _probabilities() -> dict[tuple[str, str], dict[str, float]]:
    """By provider and price kind, the probability of each published value."""
    table: dict[tuple[str, str], dict[str, float]] = {}
    for row in data_table("capacity_scores.csv"):
        table.setdefault((row["provider"], row["price_kind"]), {})[row["published"]] = float(row["probability"])
    return table


def capacity_errors(provider: str) -> tuple[str, ...]:
    """The codes by which a provider says that it has no machines now, and the word for any provider, which comes last."""
    return tuple(row["code"] for row in data_table("capacity_errors.csv") if row["provider"] in (provider, ""))


def hazard_of_share(share: float, hours: float) -> float:
    """The rate per hour at which a share (0 to below 1) is lost within `hours`: -ln(1 - share) / hours.

    Raises `Implausible` for any other share; no finite rate loses all.
    """
    if not 0 <= share < 1:
        raise Implausible(f"a share of {share:g} is outside 0..1 or gives no rate")
    return -math.log1p(-share) / hours


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
