"""Price plausibility: `data/price_bounds.csv` bounds each kind relative to its accelerator's usual price."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from statistics import median

from gpuplan.catalog.model.data_tables import data_table
from gpuplan.catalog.model.money import MICROS_PER_USD
from gpuplan.catalog.model.offer import InstanceType, Offer
from gpuplan.catalog.model.price_kinds import PriceKind, price_kinds
from gpuplan.catalog.model.provider_names import CLOUD, MARKETPLACE, provider_kind

#: Dollars per accelerator-hour for any kind: an eighth of an L4 on a three-year term costs above 0.02, a GB200 in the
#: dearest region 54.
LEAST_USD_PER_ACCELERATOR_HOUR = 0.01
MOST_USD_PER_ACCELERATOR_HOUR = 150.0

HOURS_PER_MONTH = 730

#: The bounds of prices on demand at sellers without bounds of their own.
PLAIN = "plain"
#: Those of the user's own rates, which are of no kind of seller.
OWN_RATES_GROUP = "own"

Types = Mapping[tuple[str, str], InstanceType]


def usual_prices(offers: Iterable[Offer], types: Types) -> dict[str, float]:
    """The median on-demand price by accelerator, dollars per accelerator-hour, over complete prices outside marketplaces."""
    usual: dict[str, list[float]] = defaultdict(list)
    for offer in offers:
        seller = provider_kind(offer.provider, offer.instance_type)
        if not offer.partial and seller != MARKETPLACE and _group(price_kinds()[offer.price_kind]) == PLAIN:
            kind = types[offer.provider, offer.instance_type]
            usual[kind.accelerator].append(usd_per_accelerator(offer, kind))
    return {name: median(values) for name, values in usual.items()}


def why_implausible(offer: Offer, kind: InstanceType, usual: Mapping[str, float]) -> str | None:
    """The offer's price and the bounds that it violates, or None if it is plausible.

    `usual` is the result of `usual_prices`; an accelerator missing from it has only the global bounds.
    """
    usd = usd_per_accelerator(offer, kind)
    low, high = price_bounds(
        usual.get(kind.accelerator), offer.price_kind, provider_kind(offer.provider, offer.instance_type)
    )
    if low <= usd <= high:
        return None
    return f"{usd:.4f} USD per accelerator-hour is outside {low:.4f}..{high:.4f}{_likely_unit(usd, kind, low, high)}"


def _likely_unit(usd: float, kind: InstanceType, low: float, high: float) -> str:
    """The mistake that would explain the price, as a question; empty if none would."""
    if low <= usd / HOURS_PER_MONTH <= high:
        return "; is it a price per month?"
    return "; is it the price of one accelerator?" if low <= usd * kind.devices <= high else ""


def usd_per_accelerator(offer: Offer, kind: InstanceType) -> float:
    """Dollars per accelerator-hour of an offer for a machine of this kind."""
    return offer.usd_micros_per_hour / MICROS_PER_USD / float(kind.accelerator_count)


def price_bounds(usual: float | None, price_kind: str, seller: str | None = CLOUD) -> tuple[float, float]:
    """The minimum and maximum price of this kind at such a seller, given the accelerator's usual price if known."""
    if usual is None:
        return LEAST_USD_PER_ACCELERATOR_HOUR, MOST_USD_PER_ACCELERATOR_HOUR
    low, high = _ratios()[_group(price_kinds()[price_kind], seller)]
    return (
        max(LEAST_USD_PER_ACCELERATOR_HOUR, usual * low),
        min(MOST_USD_PER_ACCELERATOR_HOUR, usual * high),
    )


def _group(kind: PriceKind, seller: str | None = CLOUD) -> str:
    """The row of `data/price_bounds.csv` for a kind and a seller, by their properties."""
    if kind.interruptible:
        return "interruptible"
    if kind.max_run_hours:
        return "booked"
    if kind.term_hours:
        return "term"
    name = OWN_RATES_GROUP if seller is None else seller
    return name if name in _ratios() else PLAIN


@cache
def _ratios() -> dict[str, tuple[float, float]]:
    rows = data_table("price_bounds.csv")
    return {row["kind_group"]: (float(row["low_ratio"]), float(row["high_ratio"])) for row in rows}
