"""Prices in other currencies, converted at the European Central Bank's rate of the day, else at the stated rate.

Every offer's source names the amount, the rate and its date, so that a snapshot keeps the rate of its prices. A currency
without a rate is refused. https://www.ecb.europa.eu/stats/policy_and_exchange_rates/euro_reference_exchange_rates
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from gpuplan.catalog.model.exchange_rates import USD, ExchangeRate, stated_rates
from gpuplan.catalog.runtime.errors import ProviderFailure
from gpuplan.providers.feed_client import get_text, web_client
from gpuplan.providers.price_lists.field_reading import WrongField

ECB = "ECB reference rate"
EUR = "EUR"
#: The ECB publishes no rate at weekends and on holidays.
OLDEST_DAYS = 7
#: A rate that moved by more since the release is a mistake in the answer.
LARGEST_MOVE = Decimal(2)
#: The stated rate is at hand, so nobody waits long for the ECB.
ATTEMPTS = 2
_DAY = re.compile(r"""<Cube\s+time=["'](\d{4}-\d\d-\d\d)["']""")
_RATE = re.compile(r"""<Cube\s+currency=["']([A-Z]{3})["']\s+rate=["'](\d+(?:\.\d+)?)["']""")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Rates by currency, and notes about where they come from."""

    by_currency: Mapping[str, ExchangeRate]
    notes: tuple[str, ...] = ()

    def usd(self, amount: Decimal, currency: str) -> tuple[Decimal, str]:
        """US dollars, and how they were converted as words for the offer's source. Raises `WrongField`."""
        if currency == USD:
            return amount, ""
        rate = self.by_currency.get(currency)
        if rate is None:
            accepted = ", ".join([USD, *sorted(self.by_currency)])
            raise WrongField(f"currency is {currency!r:.20}, for which there is no rate; accepted: {accepted}")
        return amount * rate.usd, f"{amount} {currency} at {rate.usd} USD ({rate.as_of}, {rate.source})"


def current_rates(url: str, at: datetime) -> Rates:
    """The ECB's rates on the day of `at`; the stated rates, with a note, if the ECB cannot be read or is implausible."""
    try:
        with web_client() as client:
            return Rates(by_currency=ecb_rates(get_text(client, url, attempts=ATTEMPTS), at.date()))
    except (ProviderFailure, WrongField) as failure:
        return Rates(by_currency=stated_rates(), notes=(_stated_note(str(failure), at.date()),))


def ecb_rates(document: str, today: date) -> dict[str, ExchangeRate]:
    """US dollars per unit of each currency, from the ECB's XML of units per euro. Raises `WrongField`."""
    day = _DAY.search(document)
    per_euro = {currency: Decimal(rate) for currency, rate in _RATE.findall(document)}
    if day is None or not per_euro.get(USD):
        raise WrongField("the ECB's answer has no day or no rate of USD")
    as_of, usd = date.fromisoformat(day[1]), per_euro[USD]
    if not 0 <= (today - as_of).days <= OLDEST_DAYS:
        raise WrongField(f"the ECB's rates are of {as_of}")
    stated = stated_rates()[EUR].usd
    if not stated / LARGEST_MOVE < usd < stated * LARGEST_MOVE:
        raise WrongField(f"the ECB's rate of {usd} USD for a euro is implausible beside {stated}")
    dollars = {EUR: usd} | {name: usd / rate for name, rate in per_euro.items() if rate and name != USD}
    return {
        name: ExchangeRate(currency=name, usd=round(value, 6), as_of=as_of, source=ECB)
        for name, value in dollars.items()
    }


def _stated_note(reason: str, today: date) -> str:
    """Which stated rates are taken in place of today's, their age, and by how much they are typically off by now."""
    rates = ", ".join(
        f"{rate.currency} at {rate.usd} USD of {rate.as_of}, {(today - rate.as_of).days} days old"
        + (f", typically off by {spread:.1%} by now" if (spread := rate.spread_on(today)) else "")
        for rate in stated_rates().values()
    )
    return f"{reason}; stated rates are used: {rates}"
