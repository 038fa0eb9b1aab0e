"""Spot prices modelled from published savings over on-demand: the rule of every modelled AWS spot price."""

from decimal import Decimal

from gpuplan.catalog.model.money import MICROS_PER_USD, usd_micros

SPOT_PRICE_IS_MODELLED = ("spot_price",)
#: The advisor shows no saving above 90 %. There the price is the floor of a tenth of on-demand, which validation rejects in
#: lists and which is therefore not modelled either.
DOUBTED_SAVING_PCT = 90


def doubt_of_saving(saving_pct: int) -> str:
    """Why a saving (percent) gives no modelled price; "" if it gives one."""
    if saving_pct <= 0:
        return "a saving of zero or less is no discount to model a price from"
    return "a saving of 90 %: spot at a tenth of on-demand is the floor" if saving_pct >= DOUBTED_SAVING_PCT else ""


def spot_usd_micros(on_demand_usd_micros: int, saving_pct: int) -> int:
    """The spot price per hour: on-demand x (1 - saving), rounded once."""
    saving = Decimal(saving_pct) / 100
    return usd_micros(Decimal(on_demand_usd_micros) / MICROS_PER_USD * (1 - saving))
