"""Commitments to spend so much per hour: `data/spend_plans.csv`, one row each, and which of a snapshot's rates are theirs.

Under such a plan of c USD per hour, machines are charged at the plan's rates until the rates add up to c in that hour;
what runs beyond it is charged on demand, and what is not used of c is lost with the hour. `scope` says what one plan
covers: `any` machine of the provider, or one `family` (the part of the name before the point) in one region. The source
text of a price row says whose rate it is. GCP's flexible commitments are left out: no catalogue source has their rates
for accelerators. Azure's are left out for the same reason.
"""

from dataclasses import dataclass
from functools import cache

from catalog.data_tables import data_table
from catalog.offer import Offer

SCOPES = ("any", "family")


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendPlan:
    """One kind of plan: rows of `provider` whose source holds `rate_mark` are its rates."""

    name: str
    provider: str
    rate_mark: str
    scope: str
    source: str
    as_of: str

    def __post_init__(self) -> None:
        """Refuse a row whose scope nobody reads."""
        if self.scope not in SCOPES or not (self.rate_mark and self.source and self.as_of):
            raise ValueError(f"spend plan {self.name}: scope, rate_mark, source and date are needed")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Pool:
    """Rates that one commitment covers together: empty `region` and `family` for any."""

    provider: str
    price_kind: str
    region: str = ""
    family: str = ""

    def covers(self, offer: Offer) -> bool:
        """Whether this commitment is charged for such a machine; the plan's own scope is not looked at."""
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
    """The commitment that this row is a rate of; None for what is no such rate."""
    for each in spend_plans():
        if each.provider == offer.provider and each.rate_mark in offer.source:
            narrow = each.scope == "family"
            return Pool(
                provider=offer.provider,
                price_kind=offer.price_kind,
                region=offer.region if narrow else "",
                family=family_of(offer.instance_type) if narrow else "",
            )
    return None
