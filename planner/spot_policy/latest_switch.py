"""Spot first, then on-demand: the latest switch, and its expected cost.

For a fixed moment s, some k segments must be saved by then: the fewest whose rest on-demand can do in D - s - c. With
T_k the time of k segments on spot, P(in time) = P(T_k <= s_k) at the latest moment s_k for each k. Where
on-demand is no slower than spot this never rises with k (T_(k+1) >= T_k + tau, and s_(k+1) <= s_k + tau), so bisection
finds the latest moment that keeps the requested confidence. Otherwise the moments are tried from the last one down.

The adaptive rule watches the run instead: it goes on-demand when the time left is the work left / speed + c, and so
always meets the deadline. On machines of equal speed only checkpoints and losses use up the slack
S = D - c - w: the i-th segment is passed while i d + losses <= S. That probability is carried from segment
to segment by convolution, dropping what exceeds S, which gives the expected cost.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.spot_policy.finish_distribution import SpotRun, finish, segment_transform
from gpuplan.planner.strategies.standby.preemption_losses import segment_losses

_POINTS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescue:
    """The on-demand standby: `speed` hours of work per hour, after `changeover_hours`; the price is for all nodes."""

    changeover_hours: float
    usd_per_hour: float
    speed: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotFirst:
    """The outcome of spot first with the adaptive switch, from start to end.

    `switch_probability` is the probability of going on-demand. `usd` is the total expected cost, `spot_hours` and
    `on_demand_hours` are the expected billed hours.
    """

    usd: float
    spot_hours: float
    on_demand_hours: float
    switch_probability: float


def latest_switch(run: SpotRun, rescue: Rescue, deadline_hours: float, confidence: float) -> float | None:
    """The latest fixed hour for a switch to on-demand that meets the deadline with probability `confidence`.

    None if there is none: on-demand alone is too slow. Returns the deadline itself if the run ends on spot
    at the requested confidence.
    """
    run.checked()
    if finish(run).probability_by(deadline_hours) >= confidence:
        return deadline_hours
    moments = [_moment(run, rescue, deadline_hours, segments) for segments in range(run.segments[0] + 1)]
    if rescue.speed < 1.0:
        confident_moments = (
            s for s in reversed(moments) if s >= 0 and in_time(run, rescue, deadline_hours, s) >= confidence
        )
        return next(confident_moments, None)
    if moments[-1] < 0 or in_time(run, rescue, deadline_hours, max(moments[0], 0.0)) < confidence:
        return None
    low, high = 0, len(moments)
    while high - low > 1:
        middle = (low + high) // 2
        if moments[middle] < 0 or in_time(run, rescue, deadline_hours, moments[middle]) >= confidence:
            low = middle
        else:
            high = middle
    return moments[low]


def _moment(run: SpotRun, rescue: Rescue, deadline_hours: float, segments: int) -> float:
    """The latest hour at which on-demand can still do the work that `segments` saved ones leave."""
    left = run.work_hours - segments * run.interval_hours
    return deadline_hours - rescue.changeover_hours - left / rescue.speed


def in_time(run: SpotRun, rescue: Rescue, deadline_hours: float, switch_hours: float) -> float:
    """The probability of meeting the deadline with a switch to on-demand `switch_hours` after the start.

    Unsaved work is lost at the switch, so only whole segments count.
    """
    room = max(deadline_hours - switch_hours - rescue.changeover_hours, 0.0) * rescue.speed
    segments = math.ceil((run.work_hours - room) / run.interval_hours - 1e-9)
    if segments <= 0:
        return 1.0
    part = replace(run, work_hours=min(segments * run.interval_hours, run.work_hours))
    return finish(part).probability_by(switch_hours)


def spot_first(run: SpotRun, rescue: Rescue, deadline_hours: float, spot_usd_per_hour: float) -> SpotFirst:
    """The expected cost of spot first with the adaptive switch, on machines of the speed of the on-demand ones.

    Waits for machines are not billed: their mean share of the losses is subtracted. Raises `UnusableInput` if on-demand alone
    would be late.
    """
    run.checked()
    slack = deadline_hours - rescue.changeover_hours - run.work_hours
    if slack < 0:
        least = rescue.changeover_hours + run.work_hours
        message = f"{deadline_hours:.4g} h is too short even on-demand; give at least {least:.4g} h"
        raise UnusableInput.at("deadline_hours", message=message)
    whole, rest = run.segments
    lengths = [run.interval_hours] * whole + ([rest] if rest else [])
    # Twice the slack, so that losses beyond it in one segment cannot wrap around into it.
    lattice = max(slack, 1e-6) / (_POINTS // 2 - 1)
    transforms = {length: _kernel(run, length, lattice) for length in set(lengths)}
    alive = np.zeros(_POINTS)
    alive[0] = 1.0
    at = np.arange(_POINTS) * lattice
    spot = demand = switched = done = 0.0
    paid = _paid_share(run)
    for i, length in enumerate(lengths):
        before = alive.sum()
        passed = np.maximum(np.fft.irfft(np.fft.rfft(alive) * transforms[length], _POINTS), 0.0)
        alive = np.where(at + (i + 1) * run.checkpoint_hours <= slack + 1e-9, passed, 0.0)
        crossed = max(before - alive.sum(), 0.0)
        # A crossing uses all slack: the work done so far and the slack have passed, and the rest runs on-demand.
        spot += crossed * (done + slack - (1.0 - paid) * (slack - i * run.checkpoint_hours))
        demand += crossed * (rescue.changeover_hours + run.work_hours - done)
        switched += crossed
        done += length
    spot += paid * float(alive @ at) + alive.sum() * (run.work_hours + len(lengths) * run.checkpoint_hours)
    return SpotFirst(
        usd=float(spot * spot_usd_per_hour + demand * rescue.usd_per_hour),
        spot_hours=float(spot),
        on_demand_hours=float(demand),
        switch_probability=float(switched),
    )


def _paid_share(run: SpotRun) -> float:
    """The share of lost hours during which machines are up and billed: all but the waits."""
    if run.wait_hours == 0 or run.preemptions_per_hour == 0:
        return 1.0
    length = np.array([min(run.interval_hours, run.work_hours) + run.checkpoint_hours])
    losses = segment_losses(length, np.array([run.preemptions_per_hour]), run.restart_hours, np.array([run.wait_hours]))
    return float((losses.paid_hours[0] - length[0]) / losses.mean_hours[0])


def _kernel(run: SpotRun, length: float, lattice: float) -> np.ndarray[tuple[int], np.dtype[np.complex128]]:
    """The transform of one segment's losses, with losses beyond the lattice cut off instead of wrapped around."""
    if run.preemptions_per_hour == 0:
        return np.ones(_POINTS // 2 + 1, np.complex128)
    wide = _POINTS * 16
    mass = np.fft.irfft(segment_transform(length + run.checkpoint_hours, run, lattice, wide), wide)
    # Losses longer than the slack exceed it in any case: they are dropped and so count as crossings.
    within = np.where(np.arange(_POINTS) <= _POINTS // 2, np.maximum(mass[:_POINTS], 0.0), 0.0)
    return np.asarray(np.fft.rfft(within))
