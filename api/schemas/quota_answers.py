"""The answer of `quotas`: the quotas of an account, as the settings file states them."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from gpuplan.catalog.model.capacity_answers import NotLearned
from gpuplan.planner.model.shared import MAY_BE_ABSENT


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedQuota:
    """A quota; what it does not limit by is absent."""

    provider: str
    region: str | None = field(default=None, metadata=MAY_BE_ABSENT)
    family: str
    price_kind: str | None = field(default=None, metadata=MAY_BE_ABSENT)
    code: str
    vcpus: int | None = field(default=None, metadata=MAY_BE_ABSENT)
    accelerators: int | None = field(default=None, metadata=MAY_BE_ABSENT)
    read_on: str
    """ISO 8601 date."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReusedReading:
    """A region whose quotas were read earlier."""

    provider: str
    region: str
    read_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotasMeta:
    """The time of the oldest reading, and the readings that come from the store."""

    read_at: datetime
    reused: tuple[ReusedReading, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotasAnswer:
    """The quotas of some regions, and what could not be read."""

    outcome: Literal["read"]
    quotas: tuple[StatedQuota, ...]
    not_learned: tuple[NotLearned, ...]
    meta: QuotasMeta
