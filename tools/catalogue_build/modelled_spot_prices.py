"""AWS spot prices without a listed price, modelled from the published saving over on-demand."""

from collections.abc import Iterable, Mapping, Sequence

from gpuplan.catalog.model.offer import Offer
from gpuplan.catalog.model.spot_discount import SPOT_PRICE_IS_MODELLED, doubt_of_saving, spot_usd_micros
from tools.catalogue_build.fact_tables import LEFT_OUT, QUARANTINED, Harvest, Row, SetAside, observed

PROVIDER = "aws"


def spot_from_savings(savings: Iterable[Row], listed: Sequence[Offer], left_out: Mapping[str, str]) -> Harvest:
    """One spot offer per saving above zero, at on-demand x (1 - saving), unless the type has listed spot prices.

    The date is the older of the on-demand price and the saving. Rejected are rows without an on-demand price in the region,
    with a saving at or below zero or at the floor, and those of omitted hardware.
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
    return doubt_of_saving(int(row["saving_percent"]))


def _modelled(row: Row, base: Offer) -> Offer:
    observed_at, _ = observed(row["as_of"])
    return Offer(
        provider=PROVIDER,
        region=row["region"],
        instance_type=row["instance_type"],
        price_kind="spot",
        usd_micros_per_hour=spot_usd_micros(base.usd_micros_per_hour, int(row["saving_percent"])),
        observed_at=min(base.observed_at, observed_at),
        observed_approximately=True,
        modelled=SPOT_PRICE_IS_MODELLED,
        source=f"{row['source']} ({row['saving_percent']} %); on-demand: {base.source}",
    )


def _set_aside(row: Row, fate: str, reason: str) -> SetAside:
    return SetAside(
        provider=PROVIDER,
        region=row["region"],
        zone="",
        instance_type=row["instance_type"],
        price_kind="spot",
        usd_per_hour="",
        as_of=row["as_of"],
        source=f"{row['source']} ({row['saving_percent']} %)",
        fate=fate,
        reason=reason,
    )
