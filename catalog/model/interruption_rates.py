"""Spot interruption rates per node-hour, derived from published bands and preemption traces.

AWS publishes, per region and type, the share of spot capacity that it reclaimed over the trailing month, in five bands.
Read literally, a share s over a month of 730 h is a rate of -ln(1 - s) / 730: for the middle of the bands below 5 %, 5-10,
10-15, 15-20 and (taken as 25 %) above 20 %, that is one interruption in 28,800, 9,400, 5,500, 3,800 and 2,500 node-hours.

Measurements contradict that reading. The preemption traces of single p3 nodes (Wu et al., "Can't Be Late", NSDI 2024: real
clusters in us-east-1, us-east-2 and us-west-2, April to August 2023) hold 1,446.5 node-hours and 160 losses: one in 9.0 h,
by trace 1.4, 3.2 and 16.7 h. The availability traces of the same study, which probe for capacity every few minutes, give
one in 2.5 h over 7,663 V100 node-hours (by trace 0.7 to 10.5 h). p3.2xlarge is in the band above 20 % in every region that
the advisor lists.

The two sources agree if the share counts instances rather than node-months, because most spot instances live for hours. The
model therefore picks the time over which the share is lost such that the top band gives the rate of the traces: -ln(1 -
0.25) / (160 / 1446.5 h) = 2.60 h. The bands then mean one interruption in 103, 33, 19.5, 13.5 and 9.0 node-hours. This
model has one measured constant. An offer without a band takes the rate of the traces and is marked as modelled. That
includes all of GCP and Azure, whose rates (GCP's `capacityHistory` and Azure's `SpotResources` in Resource Graph) require
an account and are not read yet.

The same three traces give the wait for a machine to return in a zone. After they first had all requested machines (1, 1 and
4), they were short of some for 118.6, 36.8 and 123.0 h: 1.74 h per loss, half of the waits below an hour, a few above ten.
This is the wait in that zone; other zones mostly had capacity meanwhile.

How long a run waits in one zone differs between zones and weeks by far more than independent losses do, and does not average
out over a run: a zone that is short now is short again soon. `WAIT_LOG_SPREAD` is the standard deviation of the logarithm
of the hours, per share of them that is waiting. It is fitted to replays of 4, 24 and 48 h of work that stay in one zone of
the single-node traces, at the rate above and the typical wait of one zone in `spot_waits.csv`
(`python -m tools.fitting.spot_waits`): 7.0 from all days, 10 and 5.5 from the earlier and the later half of every trace. The
spread carries the long waits, so the wait beside it is half of the mean. About a tenth of the hours of those runs is
waiting. Where more is, the spread stays at `MOST_WAIT_LOG_SPREAD`, an assumption: in proportion, one run in twenty with a
share of 0.4 would take a hundred times as long as the others.
"""

import math

#: Losses and node-hours of the three preemption traces (see the module docstring).
TRACE_LOSSES = 160
TRACE_NODE_HOURS = 1446.5
#: Hours in which those clusters were short of a machine, and per loss.
TRACE_SHORT_HOURS = 118.6 + 36.8 + 123.0
TRACE_WAIT_HOURS = round(TRACE_SHORT_HOURS / TRACE_LOSSES, 2)
#: How waits differ between zones and weeks (see the module docstring).
WAIT_LOG_SPREAD = 7.0
MOST_WAIT_LOG_SPREAD = 2.0
DEFAULT_INTERRUPTIONS_PER_HOUR = round(TRACE_LOSSES / TRACE_NODE_HOURS, 4)
#: Middle of each published band; the open band above 20 % continues with the same step.
BAND_MIDDLE = {"<5%": 0.025, "5-10%": 0.075, "10-15%": 0.125, "15-20%": 0.175, ">20%": 0.25}
#: Upper limit of each band in percent, as in the Spot Instance Advisor's published `ranges`.
BAND_MAX_PCT = {"<5%": 5, "5-10%": 11, "10-15%": 16, "15-20%": 22, ">20%": 100}
EXPOSURE_HOURS = -math.log1p(-BAND_MIDDLE[">20%"]) / (TRACE_LOSSES / TRACE_NODE_HOURS)


def interruptions_per_hour(band: str) -> float:
    """The expected interruptions per node-hour of a published band. Raises `KeyError` for another band."""
    return round(-math.log1p(-BAND_MIDDLE[band]) / EXPOSURE_HOURS, 4)


def band_up_to(max_pct: float) -> str:
    """The band whose upper limit is `max_pct` percent, or else the next wider band."""
    return next((band for band, largest in BAND_MAX_PCT.items() if max_pct <= largest), ">20%")
