"""Negotiated discounts, credits and savings plans of the settings file."""

from datetime import datetime
from typing import Annotated, Self

from pydantic import model_validator

from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.catalog.parsing.accelerator_names import accelerator_family_text
from gpuplan.catalog.parsing.document_fields import Document, Label, Reads, choice, quantity
from gpuplan.catalog.parsing.place_names import PROVIDER_ALIASES, PROVIDERS
from gpuplan.catalog.parsing.quantities import count, moment, shown, usd
from gpuplan.planner.model.settings import Credit, Discount, ExistingSpendCommitment

#: AWS accepts 0.001 to 5,000 USD per hour for one savings plan; larger commitments need several.
_MOST_USD_SPENT = 100_000.0
#: Price kinds with a term are the rates of spend commitments; the row names the plan of a rate.
_TERMS = tuple(name for name, kind in price_kinds().items() if kind.term_hours)
#: The inventory sets the price of owned machines.
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
    """One discount: its scope (at least one of the first six fields), and either `percent` or `usd_per_hour`."""

    provider: _Cloud | None = None
    family: Annotated[str, Label] | None = None
    instance_type: Annotated[str, Label] | None = None
    accelerator: Annotated[str, Reads(accelerator_family_text, {"type": "string"})] | None = None
    price_kind: Annotated[str, choice(_RENTED)] | None = None
    region: Annotated[str, Label] | None = None
    percent: _Percent | None = None
    usd_per_hour: _Rate | None = None

    @model_validator(mode="after")
    def _one_price(self) -> Self:
        if (self.percent is None) == (self.usd_per_hour is None):
            raise ValueError("give either percent or usd_per_hour")
        if self.usd_per_hour is not None and (self.instance_type is None or self.price_kind is None):
            raise ValueError(
                "usd_per_hour is the price of one machine under one price kind; give instance_type and price_kind too"
            )
        if self.family is not None and self.instance_type is not None:
            raise ValueError("instance_type implies the family; give only one of the two")
        return self

    def discount(self) -> Discount:
        """The planner's type of this part."""
        return Discount(**{name: value for name, value in self.model_dump().items() if value is not None})


class CreditDocument(Document):
    """A credit granted by a provider."""

    provider: _Cloud
    usd: _Usd
    expires: Annotated[datetime, Reads(moment, {"type": "string", "format": "date-time"})] | None = None

    def credit(self) -> Credit:
        """The planner's type of this part."""
        return Credit(provider=self.provider, usd=self.usd, expires=self.expires)


class SpendCommitmentDocument(Document):
    """An existing savings plan: dollars per hour, on any machine or on one family in one region."""

    provider: _Cloud
    price_kind: Annotated[str, choice(_TERMS)]
    usd_per_hour: Annotated[float, quantity(lambda value: usd(value, top=_MOST_USD_SPENT), "US dollars per hour", 12.5)]
    region: Annotated[str, Label] = ""
    family: Annotated[str, Label] = ""

    def held(self) -> ExistingSpendCommitment:
        """The planner's type of this part."""
        return ExistingSpendCommitment(**self.model_dump())
