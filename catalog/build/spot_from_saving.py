"""AWS spot prices that no table lists, modelled from the published saving over on-demand."""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

from catalog.build.account import LEFT_OUT, QUARANTINED, Harvest, SetAside
from catalog.build.fact_tables import Row
from catalog.build.observation import observed
from catalog.money import MICROS_PER_USD, usd_micros
from catalog.offer import Offer

PROVIDER = "aws"
#: The month in which the savings were published.
SAVINGS_AS_OF = "2025-06"
SAVINGS_SOURCE = "AWS Spot Instance Advisor, saving over on-demand, June 2025"
SPOT_PRICE_IS_MODELLED = ("spot_price",)
#: The advisor shows no saving above 90 %: there the price is the floor of a tenth of on-demand, which
#: is doubted where it is listed and so is not modelled either.
DOUBTED_SAVING_PCT = 90


def spot_from_savings(savings: Iterable[Row], listed: Sequence[Offer], left_out: Mapping[str, str]) -> Harvest:
    """One spot offer per saving above zero, at on-demand x (1 - saving), unless the type has listed spot prices.

    The date is the older of the on-demand price and the saving. Rows are set aside where there is
    no on-demand price in that region, where the saving is zero or less or at the floor, and for hardware left out.
    """
    on_demand = {
        (offer.region, offer.instance_type): offer
        for offer in listed
        if offer.provider == PROVIDER and offer.price_kind == "on_demand" and not offer.zone
    }
    has_spot = {offer.instance_type for offer in listed if offer.provider == PROVIDER and offer.price_kind == "spot"}
    harvest = Harvest()
    for row in savings:
        harvest.counts["savings read"] += 1
        base = on_demand.get((row["region"], row["instance_type"]))
        if row["instance_type"] in has_spot:
            harvest.counts["savings not needed: the type has listed spot prices"] += 1
            continue
        reason = _why_not(row, base, left_out)
        if base is None or reason:
            fate = QUARANTINED if reason == _doubt(row) else LEFT_OUT
            harvest.counts[f"savings {fate}: {reason}"] += 1
            harvest.set_aside.append(_set_aside(row, fate, reason))
        else:
            harvest.counts["spot prices modelled from a saving"] += 1
            harvest.offers.append(_modelled(row, base))
    return harvest


def _why_not(row: Row, base: Offer | None, left_out: Mapping[str, str]) -> str:
    if row["instance_type"] in left_out:
        return left_out[row["instance_type"]]
    if doubt := _doubt(row):
        return doubt
    return "" if base else "no on-demand price in this region"


def _doubt(row: Row) -> str:
    saving_pct = int(row["savings_vs_on_demand_pct"])
    if saving_pct <= 0:
        return "a saving of zero or less is no discount to model a price from"
    return "a saving of 90 %: spot at a tenth of on-demand is the floor" if saving_pct >= DOUBTED_SAVING_PCT else ""


def _modelled(row: Row, base: Offer) -> Offer:
    saving = Decimal(row["savings_vs_on_demand_pct"]) / 100
    observed_at, _ = observed(SAVINGS_AS_OF)
    return Offer(
        provider=PROVIDER,
        region=row["region"],
        instance_type=row["instance_type"],
        price_kind="spot",
        usd_micros_per_hour=usd_micros(Decimal(base.usd_micros_per_hour) / MICROS_PER_USD * (1 - saving)),
        observed_at=min(base.observed_at, observed_at),
        observed_approximately=True,
        modelled=SPOT_PRICE_IS_MODELLED,
        source=f"{SAVINGS_SOURCE} ({row['savings_vs_on_demand_pct']} %); on-demand: {base.source}",
    )


def _set_aside(row: Row, fate: str, reason: str) -> SetAside:
    return SetAside(
        provider=PROVIDER,
        region=row["region"],
        zone="",
        instance_type=row["instance_type"],
        price_kind="spot",
        usd_per_hour="",
        as_of=SAVINGS_AS_OF,
        source=f"{SAVINGS_SOURCE} ({row['savings_vs_on_demand_pct']} %)",
        fate=fate,
        reason=reason,
    )
