"""Hourly spend commitments: `data/spend_plans.csv`, and which rates of a snapshot belong to them.

Under a plan of c USD per hour, machines are charged at the plan's rates until the charges reach c in that hour. Usage
beyond c is charged on demand; the unused part of c is lost. `scope` is what one plan covers: `any` machine of the provider,
or one `family` (the part of the name before the point) in one region. The source text of a price row identifies its plan.
GCP's and Azure's commitments are left out, because no catalogue source has their rates for accelerators.
"""

from dataclasses import dataclass
from functools import cache

from gpuplan.catalog.model.data_tables import data_table
from gpuplan.catalog.model.offer import Offer

SCOPES = ("any", "family")


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendPlan:
    """One kind of plan: price rows of `provider` whose source contains `rate_mark` are its rates."""

    name: str
    provider: str
    rate_mark: str
    scope: str
    source: str
    as_of: str

    def __post_init__(self) -> None:
        """Reject a row with an unknown scope."""
        if self.scope not in SCOPES or not (self.rate_mark and self.source and self.as_of):
            raise ValueError(f"spend plan {self.name}: scope, rate_mark, source and date are needed")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Pool:
    """Rates that one commitment covers together; empty `region` and `family` match any."""

    provider: str
    price_kind: str
    region: str = ""
    family: str = ""

    def covers(self, offer: Offer) -> bool:
        """Whether this commitment covers such a machine, regardless of the plan's own scope."""
        return (
            (offer.provider, offer.price_kind) == (self.provider, self.price_kind)
            and self.region in ("", offer.region)
            and self.family in ("", family_of(offer.instance_type))
        )


def family_of(instance_type: str) -> str:
    """`p5` of p5.48xlarge."""
    return instance_type.partition(".")[0]


@cache
def spend_plans() -> tuple[SpendPlan, ...]:
    """Every row, in the order of the table."""
    return tuple(SpendPlan(**row) for row in data_table("spend_plans.csv"))


def pool_of(offer: Offer) -> Pool | None:
    """The commitment that this row is a rate of; None if it is not a plan's rate."""
    for spend_plan in spend_plans():
        if spend_plan.provider == offer.provider and spend_plan.rate_mark in offer.source:
            narrow = spend_plan.scope == "family"
            return Pool(
                provider=offer.provider,
                price_kind=offer.price_kind,
                region=offer.region if narrow else "",
                family=family_of(offer.instance_type) if narrow else "",
            )
    return None
