"""How often a spot node is taken away: the published bands and the traces, as one rate per node-hour.

AWS publishes, per region and type, the share of spot capacity that it reclaimed over the trailing
month, in five bands. Read literally, that share s over a month of 730 h is a rate of
-ln(1 - s) / 730: for the middle of the bands below 5 %, 5-10, 10-15, 15-20 and (taken as 25 %)
above 20 % that is one interruption in 28,800, 9,400, 5,500, 3,800 and 2,500 node-hours.

Nobody who keeps V100 nodes sees that. The published preemption traces of single p3 nodes (Wu et
al., "Can't Be Late", NSDI 2024: real clusters kept up in us-east-1, us-east-2 and us-west-2,
April to August 2023) hold 1,446.5 node-hours and 160 losses: one in 9.0 h, by trace 1.4, 3.2 and
16.7 h. The availability traces of the same study, which probe for capacity every few minutes, give
one in 2.5 h over 7,663 V100 node-hours (by trace 0.7 to 10.5 h). p3.2xlarge stands in the band
above 20 % in every region that the advisor lists.

The two agree if the share is of instances rather than of node-months: most spot instances live
hours. So the rule here takes the time over which the share is lost as the one at which the top
band gives the traces' rate: -ln(1 - 0.25) / (160 / 1446.5 h) = 2.60 h. The bands then mean one
interruption in 103, 33, 19.5, 13.5 and 9.0 node-hours. It is a model with one measured constant; an
offer with no band takes the traces' own rate and says that it is modelled.
"""

import math
from collections.abc import Iterable
from dataclasses import replace

from catalog.build.fact_tables import Row
from catalog.offer import Offer
from catalog.price_kinds import price_kinds

#: Losses and node-hours of the three preemption traces (see above).
TRACE_LOSSES = 160
TRACE_NODE_HOURS = 1446.5
DEFAULT_INTERRUPTIONS_PER_HOUR = round(TRACE_LOSSES / TRACE_NODE_HOURS, 4)
#: Middle of each published band; the open band above 20 % is taken one step further.
BAND_MIDDLE = {"<5%": 0.025, "5-10%": 0.075, "10-15%": 0.125, "15-20%": 0.175, ">20%": 0.25}
EXPOSURE_HOURS = -math.log1p(-BAND_MIDDLE[">20%"]) / (TRACE_LOSSES / TRACE_NODE_HOURS)


def interruptions_per_hour(band: str) -> float:
    """The expected interruptions per node-hour of a published band. Raises `KeyError` for another band."""
    return round(-math.log1p(-BAND_MIDDLE[band]) / EXPOSURE_HOURS, 4)


def with_interruptions(offers: Iterable[Offer], bands: Iterable[Row]) -> list[Offer]:
    """The offers with a rate on every interruptible one: by its AWS band, else the traces' and marked as modelled."""
    rates = {
        (row["region"], row["instance_type"]): interruptions_per_hour(row["interruption_frequency"]) for row in bands
    }
    kinds = price_kinds()
    return [_with_rate(offer, rates) if kinds[offer.price_kind].interruptible else offer for offer in offers]


def _with_rate(offer: Offer, rates: dict[tuple[str, str], float]) -> Offer:
    """Only AWS names regions and types as the band table does, so the pair alone is the key."""
    rate = rates.get((offer.region, offer.instance_type))
    if rate is not None:
        return replace(offer, interruptions_per_hour=rate)
    return replace(
        offer,
        interruptions_per_hour=DEFAULT_INTERRUPTIONS_PER_HOUR,
        modelled=(*offer.modelled, "interruption_rate"),
    )
