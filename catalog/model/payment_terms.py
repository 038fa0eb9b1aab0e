"""How providers are paid beside the price: first payments, credit, spend limits and bids (`data/payment_terms.csv`).

None of it changes the cost of a run; it decides whether machines start and go on.
"""

from dataclasses import dataclass
from functools import cache

from gpuplan.catalog.model.data_tables import data_table
from gpuplan.catalog.model.money import usd_micros


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentTerms:
    """The terms of one provider; None where it has none.

    `first_payment_micros` is the least payment of a new account in micro-dollars, `credit_hours` the hours of the machines
    that credit must cover before they start, `spend_limit_micros_per_hour` the usual limit of an account. With
    `spot_is_bid`, spot prices are bids. `prepaid` machines stop when the credit ends.
    """

    first_payment_micros: int | None
    credit_hours: float | None
    spend_limit_micros_per_hour: int | None
    spot_is_bid: bool
    prepaid: bool


NO_TERMS = PaymentTerms(
    first_payment_micros=None,
    credit_hours=None,
    spend_limit_micros_per_hour=None,
    spot_is_bid=False,
    prepaid=False,
)


def payment_terms(provider: str) -> PaymentTerms:
    """The terms of a provider; `NO_TERMS` for one that charges what was used."""
    return _terms().get(provider, NO_TERMS)


@cache
def _terms() -> dict[str, PaymentTerms]:
    return {
        row["provider"]: PaymentTerms(
            first_payment_micros=_micros(row["first_payment_usd"]),
            credit_hours=float(row["credit_hours"]) if row["credit_hours"] else None,
            spend_limit_micros_per_hour=_micros(row["spend_limit_usd_per_hour"]),
            spot_is_bid=row["spot_is_bid"] == "yes",
            prepaid=row["prepaid"] == "yes",
        )
        for row in data_table("payment_terms.csv")
    }


def _micros(usd: str) -> int | None:
    return usd_micros(usd) if usd else None
