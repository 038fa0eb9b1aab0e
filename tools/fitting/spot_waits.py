"""Fit how waits for preempted machines differ between zones and weeks: `python -m tools.fitting.spot_waits TRACES`.

A run stays in the zone of a trace: it works while the zone is up, saves at the interval of Young and Daly, and waits while
the zone is down. It starts at every hour at which the zone is up, with 4, 24 and 48 h of work and deadlines of 1.25, 1.5
and 2 times that. Given the rate and the wait in `gpuplan.catalog.model.interruption_rates`, the log-spread per share of
waiting is the one under which the runs of one node that ended in time are likeliest.
"""

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.interruption_rates import DEFAULT_INTERRUPTIONS_PER_HOUR, ONE_ZONE_WAIT_HOURS
from gpuplan.planner.cost.preemption_and_checkpoint_interval import checkpoint_interval, interrupted, wait_log_spread
from gpuplan.planner.model.settings import PlannerSettings
from gpuplan.planner.spot_policy.availability_traces import DEFAULT_STEP_HOURS
from gpuplan.planner.spot_policy.run_parameters import Place, SpotTerms
from gpuplan.planner.spot_policy.trace_replay import WAITING, RunState, replay
from tools.fitting.capacity_prior import NamedTrace, named_traces

Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]

WORK_HOURS, SLACKS = (4.0, 24.0, 48.0), (1.25, 1.5, 2.0)
#: Hours to write a checkpoint, and the settings whose set-up and restart a run takes.
WRITE_HOURS, SETTINGS = 1 / 60, PlannerSettings()
STEP = DEFAULT_STEP_HOURS
#: Log-spreads to choose from.
GRID = np.arange(0.25, 15.0, 0.25)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempts:
    """Runs of `work_hours` on so many nodes with one deadline: which ended in time, and the day of each start."""

    nodes: int
    work_hours: float
    deadline_hours: float
    in_time: Flags
    days: Ints

    def chance(self, wait_hours: float, per_share: float) -> float:
        """The modelled chance, for a mean wait per loss and a log-spread per share of waiting."""
        rate, wait = np.array([DEFAULT_INTERRUPTIONS_PER_HOUR * self.nodes]), wait_hours
        ran = interrupted(
            np.array([self.work_hours]), np.array([WRITE_HOURS]), SETTINGS.restart_hours, rate, wait_hours=wait
        )
        known = float(wait_log_spread(rate, wait)[0]) if wait else 0.0
        asked = float(wait_log_spread(rate, wait, per_share=per_share)[0])
        sigma = math.sqrt(float(ran.log_variance[0]) - known**2 + asked**2)
        room = (self.deadline_hours - SETTINGS.setup_hours) / float(ran.run_hours[0] + ran.waiting_hours[0])
        return NormalDist().cdf(math.log(room) / sigma)


class AnyZone:
    """Stays where it runs, else takes the first zone that is up; never on-demand."""

    def decide(self, seen: RunState) -> Ints:
        """The zone of each run, or none."""
        first = np.where(seen.up.any(axis=1), seen.up.argmax(axis=1), WAITING)
        return np.where(seen.place == WAITING, first, seen.place)


def attempts(up: Flags, nodes: int) -> Iterator[Attempts]:
    """Runs of every length and deadline over zones up [steps, zones], each from every hour at which one is up."""
    rate = np.array([DEFAULT_INTERRUPTIONS_PER_HOUR * nodes])
    for work in WORK_HOURS:
        every = float(checkpoint_interval(np.array([work]), np.array([WRITE_HOURS]), rate)[0])
        for slack in SLACKS:
            steps = math.ceil(work * slack / STEP - 1e-9)
            begins = [at for at in range(0, len(up) - steps + 1, round(1 / STEP)) if up[at].any()]
            terms = SpotTerms(
                work_hours=work,
                deadline_hours=work * slack,
                step_hours=STEP,
                changeover_hours=SETTINGS.restart_hours,
                on_demand_usd_per_hour=1.0,
                places=tuple(Place(name=str(zone), usd_per_hour=1.0) for zone in range(up.shape[1])),
                checkpoint_every_hours=every,
            )
            if begins:
                done = replay(terms, np.stack([up[at : at + steps] for at in begins]), AnyZone())
                yield Attempts(
                    nodes=nodes,
                    work_hours=work,
                    deadline_hours=work * slack,
                    in_time=done.late_hours <= 1e-9,
                    days=np.array(begins) // round(24 / STEP),
                )


def half(trace: NamedTrace, number: int) -> NamedTrace:
    """The earlier (0) or later (1) half of a trace."""
    count = len(trace.trace.available)
    part = trace.trace.available[count * number // 2 : count * (number + 1) // 2]
    return replace(trace, trace=replace(trace.trace, available=part))


def in_zone(traces: Sequence[NamedTrace]) -> list[Attempts]:
    """The runs that stay in the zone of their trace."""
    return [one for trace in traces for one in attempts(trace.trace.up(trace.nodes, STEP)[:, None], trace.nodes)]


def fitted(runs: Sequence[Attempts], wait_hours: float) -> float:
    """The log-spread per share of waiting of greatest likelihood."""
    return max((_log_likelihood(runs, wait_hours, float(value)), float(value)) for value in GRID)[1]


def _log_likelihood(runs: Sequence[Attempts], wait_hours: float, per_share: float) -> float:
    total = 0.0
    for one in runs:
        chance = min(max(one.chance(wait_hours, per_share), 1e-6), 1 - 1e-6)
        good = int(one.in_time.sum())
        total += good * math.log(chance) + (len(one.in_time) - good) * math.log(1 - chance)
    return total


def main(folder: str) -> None:
    """Print the fitted spread: from all days, and from each half of them."""
    traces = [trace for trace in named_traces(Path(folder)) if trace.nodes == 1]
    halves = [in_zone([half(trace, number) for trace in traces]) for number in (0, 1)]
    for name, runs in (("all days", halves[0] + halves[1]), ("earlier half", halves[0]), ("later half", halves[1])):
        print(f"{name}: {fitted(runs, ONE_ZONE_WAIT_HOURS):.2f}")


if __name__ == "__main__":
    main(sys.argv[1])
