"""Replay of availability: the cost of a rule and whether it met the deadline, for many starts at once.

Runs are rows of arrays; time advances in the steps of the availability. At each step a rule sees which zones are up
(now and before, never later) and names the place to run at. The simulator bills the step, counts down changeover and
work, and removes machines whose zone went down, with the work since their last checkpoint. All figures are real-valued:
changeovers and speeds need not be whole steps. A run that is late continues on-demand until it is done.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.spot_policy.run_parameters import SpotTerms

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

WAITING = -1
_DONE = 1e-9


@dataclass(slots=True, kw_only=True, eq=False)
class RunState:
    """The input of a rule, one row per run.

    `place` runs (`WAITING`: none), `home` has the data, `to_go_hours` of changeover are left, `left_hours` remain to the
    deadline. `work_hours` are left now, `saved_work_hours` are left if the machine went down now. `up`, `age_hours` and
    `age_known` [runs, zones] say how long each zone has kept its state, or at least how long.
    """

    left_hours: float
    work_hours: Floats
    saved_work_hours: Floats
    place: Ints
    home: Ints
    to_go_hours: Floats
    up: Flags
    age_hours: Floats
    age_known: Flags


class Rule(Protocol):
    """A way to decide; each replay needs a fresh one, since a rule may have memory."""

    def decide(self, seen: RunState) -> Ints:
        """The place of each run during the coming step: a place's index, or `WAITING`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Replay:
    """Per run: USD paid, hours past the deadline (0: in time), billed hours on spot and on-demand, starts, preemptions.

    `spot_work_hours` is the work done on spot, including work that was lost again.
    """

    usd: Floats
    late_hours: Floats
    spot_hours: Floats
    on_demand_hours: Floats
    spot_work_hours: Floats
    starts: Ints
    preemptions: Ints


def replay(terms: SpotTerms, up: Flags, rule: Rule) -> Replay:
    """Run `rule` over availability `up` [runs, steps of `terms.step_hours`, zones], which covers the deadline."""
    runs = _Runs(terms, len(up))
    for t in range(up.shape[1]):
        if not runs.live.any():
            break
        runs.see(up[:, t], up[:, t - 1] if t else up[:, t])
        runs.go_to(np.where(runs.live, rule.decide(runs.seen(t * terms.step_hours, up[:, t])), WAITING))
        runs.advance(t * terms.step_hours)
    return runs.result(up.shape[1] * terms.step_hours)


class _Runs:
    """The state of all runs of a replay, one row each."""

    def __init__(self, terms: SpotTerms, runs: int) -> None:
        self.terms, self.demand, self.rows = terms, len(terms.places), np.arange(runs)
        places = range(self.demand + 1)
        usd = [*(place.usd_per_hour for place in terms.places), terms.on_demand_usd_per_hour]
        self.usd_per_step = np.array(usd) * terms.step_hours
        self.speed = np.array([*(place.speed for place in terms.places), 1.0])
        self.move_hours = np.array([[terms.moving_hours(i, j) for j in places] for i in places])
        self.move_usd = np.array([[terms.moving_usd(i, j) for j in places] for i in places])
        self.work = np.full(runs, terms.work_hours)
        self.saved, self.since_saved = self.work.copy(), np.zeros(runs)
        self.place, self.home, self.to_go = np.full(runs, WAITING), np.full(runs, self.demand), np.zeros(runs)
        self.age, self.known = np.zeros((runs, self.demand)), np.zeros((runs, self.demand), np.bool_)
        self.usd, self.spot, self.paid, self.late, self.done = (np.zeros(runs) for _ in range(5))
        self.starts, self.preemptions = (np.zeros(runs, np.int64) for _ in range(2))

    @property
    def live(self) -> Flags:
        """Which runs are not done."""
        return np.asarray(self.work > _DONE)

    def see(self, now: Flags, before: Flags) -> None:
        """Update the zones' ages, and remove machines whose zone went down."""
        flipped = now != before
        self.known |= flipped
        self.age = np.where(flipped, 0.0, self.age) + self.terms.step_hours
        is_up = np.hstack((now, np.ones((len(now), 1), np.bool_)))
        gone = self.live & (self.place >= 0) & ~is_up[self.rows, self.place]
        self.work = np.where(gone, self.saved, self.work)
        self.place = np.where(gone, WAITING, self.place)
        self.preemptions += gone

    def seen(self, passed_hours: float, up: Flags) -> RunState:
        """The state that a rule may see."""
        return RunState(
            left_hours=self.terms.deadline_hours - passed_hours,
            work_hours=self.work,
            saved_work_hours=self.saved,
            place=self.place,
            home=self.home,
            to_go_hours=self.to_go,
            up=up,
            age_hours=self.age,
            age_known=self.known,
        )

    def go_to(self, target: Ints) -> None:
        """Start machines where the place changes; a run that leaves by choice writes a checkpoint first."""
        changes = self.live & (target != self.place)
        self.saved = np.where(changes, self.work, self.saved)
        self.since_saved = np.where(changes, 0.0, self.since_saved)
        begins = changes & (target >= 0)
        self.usd += np.where(begins, self.move_usd[self.home, target], 0.0)
        self.to_go = np.where(begins, self.move_hours[self.home, target], self.to_go)
        self.home = np.where(begins, target, self.home)
        self.starts += begins
        self.place = target

    def advance(self, passed_hours: float) -> None:
        """One step: bill it, count down changeover and work, write checkpoints that are due."""
        step, runs_on = self.terms.step_hours, self.live & (self.place >= 0)
        changing = np.where(runs_on, np.minimum(self.to_go, step), 0.0)
        ran = np.where(runs_on, step - changing, 0.0)
        needed = self.work / self.speed[self.place]
        ends = runs_on & (needed <= ran + _DONE)
        # The last step is billed in full, but the finish is exact.
        over = passed_hours + changing + needed - self.terms.deadline_hours
        self.late = np.where(ends & (over > _DONE), over, self.late)
        self.usd += np.where(runs_on, self.usd_per_step[self.place], 0.0)
        self.spot += np.where(runs_on & (self.place < self.demand), step, 0.0)
        self.paid += np.where(runs_on & (self.place == self.demand), step, 0.0)
        did = np.minimum(ran * self.speed[self.place], self.work)
        self.done += np.where(runs_on & (self.place < self.demand), did, 0.0)
        self.to_go = np.maximum(self.to_go - changing, 0.0)
        self.work = np.where(ends, 0.0, self.work - ran * self.speed[self.place])
        self.since_saved += ran
        due = self.since_saved >= self.terms.checkpoint_every_hours - _DONE
        saves = runs_on & (due | (self.place == self.demand))
        self.saved = np.where(saves, self.work, self.saved)
        self.since_saved = np.where(saves, 0.0, self.since_saved)

    def result(self, end_hours: float) -> Replay:
        """The sums; runs that are not done continue on-demand."""
        fresh = self.move_hours[self.home, self.demand]
        rest = np.where(self.live, np.where(self.place == self.demand, self.to_go, fresh) + self.work, 0.0)
        late = np.where(self.live, np.maximum(end_hours + rest - self.terms.deadline_hours, 0.0), self.late)
        return Replay(
            usd=self.usd + rest * self.terms.on_demand_usd_per_hour,
            late_hours=late,
            spot_hours=self.spot,
            on_demand_hours=self.paid,
            spot_work_hours=self.done,
            starts=self.starts,
            preemptions=self.preemptions,
        )
