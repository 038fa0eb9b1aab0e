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
offer with no band takes the traces' own rate and says that it is modelled. So do all of GCP and Azure, whose rates
(GCP's `capacityHistory` and Azure's `SpotResources` in Resource Graph) are told to accounts that sign in, and not read yet.

The same three traces say how long one waits in a zone for a machine to come back. After they first had all machines
asked for (1, 1 and 4), they were short of some for 118.6, 36.8 and 123.0 h: 1.74 h per loss, half of the waits below
an hour, a few above ten. It is the wait in that zone; other zones were mostly up meanwhile.
"""

import math

#: Losses and node-hours of the three preemption traces (see above).
TRACE_LOSSES = 160
TRACE_NODE_HOURS = 1446.5
#: Hours in which those clusters were short of a machine, and per loss.
TRACE_SHORT_HOURS = 118.6 + 36.8 + 123.0
TRACE_WAIT_HOURS = round(TRACE_SHORT_HOURS / TRACE_LOSSES, 2)
DEFAULT_INTERRUPTIONS_PER_HOUR = round(TRACE_LOSSES / TRACE_NODE_HOURS, 4)
#: Middle of each published band; the open band above 20 % is taken one step further.
BAND_MIDDLE = {"<5%": 0.025, "5-10%": 0.075, "10-15%": 0.125, "15-20%": 0.175, ">20%": 0.25}
#: The largest share, in percent, that the Spot Instance Advisor counts to each band (its `ranges`, as published).
BAND_MAX_PCT = {"<5%": 5, "5-10%": 11, "10-15%": 16, "15-20%": 22, ">20%": 100}
EXPOSURE_HOURS = -math.log1p(-BAND_MIDDLE[">20%"]) / (TRACE_LOSSES / TRACE_NODE_HOURS)


def interruptions_per_hour(band: str) -> float:
    """The expected interruptions per node-hour of a published band. Raises `KeyError` for another band."""
    return round(-math.log1p(-BAND_MIDDLE[band]) / EXPOSURE_HOURS, 4)


def band_up_to(max_pct: float) -> str:
    """The band whose largest share is `max_pct` percent, or the next wider one."""
    return next((band for band, largest in BAND_MAX_PCT.items() if max_pct <= largest), ">20%")
