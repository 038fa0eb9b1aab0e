"""Discounts and credits in the settings file: what the user has negotiated, read strictly."""

from datetime import datetime
from typing import Annotated, Self

from pydantic import model_validator

from api.documents.words import PROVIDER_ALIASES, PROVIDERS
from catalog.accelerator_names import accelerator_text
from catalog.document_fields import Document, Label, Reads, choice, quantity
from catalog.price_kinds import price_kinds
from catalog.quantities import count, moment, shown, usd
from planner.settings import Credit, Discount, HeldSpend

#: AWS takes 0.001 to 5,000 USD per hour for one plan; larger ones are several.
_MOST_USD_SPENT = 100_000.0
#: Kinds that are rates of a commitment to spend are those with a term; which plan a rate is of, its row says.
_TERMS = tuple(name for name, kind in price_kinds().items() if kind.term_hours)
#: Owned machines have the price that the inventory says.
_RENTED = tuple(name for name, kind in price_kinds().items() if not kind.owned)
_CLOUDS = tuple(name for name in PROVIDERS if name != "local")
_MOST_USD_PER_HOUR = 5000.0


def _percent(value: object) -> float:
    """A discount in per cent: `12`, or `12%`."""
    accepted = "write per cent off the list price, above 0 and below 100, such as 12 or 12%"
    text = value.strip().removesuffix("%").strip() if isinstance(value, str) else value
    try:
        percent = count(text, top=100)
    except ValueError:
        raise ValueError(f"{shown(value)} is not accepted; {accepted}") from None
    if not 0 < percent < 100:
        raise ValueError(f"{shown(value)} is not accepted; {accepted}")
    return percent


_Cloud = Annotated[str, choice(_CLOUDS, PROVIDER_ALIASES)]
_Percent = Annotated[float, quantity(_percent, "per cent off the list price", 12, "12%")]
_Rate = Annotated[float, quantity(lambda value: usd(value, top=_MOST_USD_PER_HOUR), "US dollars per node-hour", 42.5)]
_Usd = Annotated[float, quantity(usd, "US dollars", 25_000, "25k")]


class DiscountDocument(Document):
    """One discount: what it holds for (at least one of the first six), and either `percent` or `usd_per_hour`."""

    provider: _Cloud | None = None
    family: Annotated[str, Label] | None = None
    instance_type: Annotated[str, Label] | None = None
    accelerator: Annotated[str, Reads(accelerator_text, {"type": "string"})] | None = None
    price_kind: Annotated[str, choice(_RENTED)] | None = None
    region: Annotated[str, Label] | None = None
    percent: _Percent | None = None
    usd_per_hour: _Rate | None = None

    @model_validator(mode="after")
    def _one_price(self) -> Self:
        if (self.percent is None) == (self.usd_per_hour is None):
            raise ValueError("give either percent or usd_per_hour, one of the two")
        if self.usd_per_hour is not None and (self.instance_type is None or self.price_kind is None):
            raise ValueError(
                "usd_per_hour is the price of one machine under one price kind; give instance_type and price_kind too"
            )
        if self.family is not None and self.instance_type is not None:
            raise ValueError("instance_type already says the family; give one of the two")
        return self

    def discount(self) -> Discount:
        """As the planner takes it."""
        return Discount(**{name: value for name, value in self.model_dump().items() if value is not None})


class CreditDocument(Document):
    """Money that a provider has granted."""

    provider: _Cloud
    usd: _Usd
    expires: Annotated[datetime, Reads(moment, {"type": "string", "format": "date-time"})] | None = None

    def credit(self) -> Credit:
        """As the planner takes it."""
        return Credit(provider=self.provider, usd=self.usd, expires=self.expires)


class HeldSpendDocument(Document):
    """A savings plan that is already paid for: so many dollars per hour, on any machine or one family in one region."""

    provider: _Cloud
    price_kind: Annotated[str, choice(_TERMS)]
    usd_per_hour: Annotated[float, quantity(lambda value: usd(value, top=_MOST_USD_SPENT), "US dollars per hour", 12.5)]
    region: Annotated[str, Label] = ""
    family: Annotated[str, Label] = ""

    def held(self) -> HeldSpend:
        """As the planner takes it."""
        return HeldSpend(**self.model_dump())
