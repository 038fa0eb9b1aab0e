"""AWS spot prices that no table lists, modelled from the published saving over on-demand."""

from collections.abc import Iterable, Mapping, Sequence

from catalog.build.account import LEFT_OUT, QUARANTINED, Harvest, SetAside
from catalog.build.fact_tables import Row
from catalog.build.observation import observed
from catalog.offer import Offer
from catalog.saving import SPOT_PRICE_IS_MODELLED, doubt_of_saving, spot_usd_micros

PROVIDER = "aws"
#: The month in which the savings were published.
SAVINGS_AS_OF = "2025-06"
SAVINGS_SOURCE = "AWS Spot Instance Advisor, saving over on-demand, June 2025"


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
    return doubt_of_saving(int(row["savings_vs_on_demand_pct"]))


def _modelled(row: Row, base: Offer) -> Offer:
    observed_at, _ = observed(SAVINGS_AS_OF)
    return Offer(
        provider=PROVIDER,
        region=row["region"],
        instance_type=row["instance_type"],
        price_kind="spot",
        usd_micros_per_hour=spot_usd_micros(base.usd_micros_per_hour, int(row["savings_vs_on_demand_pct"])),
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
