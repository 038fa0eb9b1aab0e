"""A spot run and its standby as the rule of `gpuplan.planner.verify.standby_replay` takes them, from snapshot and estimates.

Checks of plans with a standby and of plans that name one as fallback share these.
"""

import math
from typing import NamedTuple

import numpy as np

from gpuplan.planner.verify.schedule_check import Part
from gpuplan.planner.verify.standby_replay import Pair, Rule
from gpuplan.planner.verify.verification_context import Context
from gpuplan.planner.verify.wall_clock_hours import between_zones, interval_hours_of

#: Multiples of the interval of Young and Daly that are tried; shorter ones lose less slack.
SHORTER = (1.0, 0.5, 0.25, 0.125)
#: The shortest checkpoint interval, for checkpoints that cost nothing.
LEAST_INTERVAL_HOURS = 1 / 120


class Standby(NamedTuple):
    """The two parts of a plan, the pair and the rule to replay, and the checkpoint interval."""

    spot: Part
    standby: Part
    pair: Pair
    rule: Rule
    interval_hours: float

    @property
    def length_hours(self) -> float:
        """An interval and its checkpoint."""
        return self.interval_hours + self.pair.checkpoint_hours

    @property
    def last_hours(self) -> float:
        """The latest hour at which to call a standby that does all the work."""
        return self.rule.deadline_hours - self.length_hours - self.pair.changeover_hours

    def in_time(self) -> float:
        """P(in time): set-up, one interval, changeover and the standby's whole work end by the deadline."""
        room = self.last_hours - self.rule.setup_hours
        return chance_of_work(room, self.pair.standby_work_hours, self.pair.standby_log_sigma)


def nearest_interval(context: Context, spot: Part, stated_hours: float) -> float:
    """The checkpoint interval, of those tried, that is nearest to the stated one."""
    nodes, work = spot.named.nodes, spot.row.hours_with_goodput
    rate, _ = context.rates.preempted_cluster(spot.named.offer_group, nodes)
    best = interval_hours_of(work, context.rates.checkpoint_hours(nodes), rate)
    tried = [max(best * part, min(work, LEAST_INTERVAL_HOURS)) for part in SHORTER]
    return min(tried, key=lambda one: abs(one - stated_hours))


def rule_of(context: Context, spot: Part) -> Rule:
    """The parameters of the rule from the job, the settings and the machines on spot."""
    settings = context.submitted_plan.settings
    return Rule(
        deadline_hours=context.submitted_plan.job.deadline_hours or 0.0,
        setup_hours=context.rates.setup_hours_of(spot.named.offer_group, spot.named.nodes),
        restart_hours=settings.restart_hours,
        wait_hours=context.rates.preempted_cluster(spot.named.offer_group, spot.named.nodes)[1],
    )


def pair_of(context: Context, spot: Part, standby: Part) -> Pair:
    """The parameters of the pair from the snapshot and the estimates."""
    rates, k, m = context.rates, spot.named, standby.named
    preempted, wait = rates.preempted_cluster(k.offer_group, k.nodes)
    usd, hours = rates.moving(k.offer_group.place, m.offer_group.place)
    return Pair(
        work_hours=spot.row.hours_with_goodput,
        log_sigma=spot.row.log_sigma,
        zone_log_sigma=float(between_zones(np.array(preempted), np.array(wait))),
        preemptions_per_hour=preempted,
        checkpoint_hours=rates.checkpoint_hours(k.nodes),
        usd_per_hour=k.nodes * k.offer_group.micros / 1e6,
        clock_usd_per_hour=rates.place(k.offer_group.place).storage_per_hour,
        fixed_usd=rates.place(k.offer_group.place).egress,
        standby_work_hours=standby.row.hours_with_goodput,
        standby_log_sigma=standby.row.log_sigma,
        standby_usd_per_hour=m.nodes * (m.offer_group.micros / 1e6 + m.offer_group.machine.power_usd_per_hour)
        + rates.place(m.offer_group.place).storage_per_hour,
        standby_fixed_usd=usd,
        changeover_hours=rates.setup_hours_of(m.offer_group, m.nodes) + hours,
        offer=k.offer,
        standby_offer=m.offer,
        standby_machine_usd_per_hour=m.nodes * m.offer_group.micros / 1e6,
    )


def chance_of_work(room_hours: float, work_hours: float, sigma: float) -> float:
    """P(f x work <= room) for the lognormal error f of an estimate."""
    if room_hours <= 0:
        return 0.0
    if sigma == 0:
        return 1.0 if work_hours <= room_hours * (1 + 1e-12) else 0.0
    return 0.5 * math.erfc(-math.log(room_hours / work_hours) / sigma / math.sqrt(2))
