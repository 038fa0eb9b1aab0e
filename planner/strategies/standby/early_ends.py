"""By how many hours runs end before the deadline that call their standby."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.strategies.standby.run_segments import Segments
from gpuplan.planner.strategies.standby.spot_standby_pairs import AT_ONCE_HOURS, StandbyTerms

Floats = NDArray[np.float64]


class Early(NamedTuple):
    """By how many hours runs that call the standby end before the deadline, per z.

    Between two segments of `length` hours: evenly from `saved`, the standby's hours for one, to `length`. On a failure, in a
    share `at_once`: by the slack before the segment (evenly from `least` to `most`) plus the hours that it still had (evenly up
    to `length`), if that leaves no time for a restart, so `longest` at most. In a share `waited`, whose machines did not come
    back in time: `longest`, a segment and a restart.
    """

    length: Floats
    saved: Floats
    least: Floats
    most: Floats
    longest: Floats
    at_once: Floats
    waited: Floats

    @staticmethod
    def of(terms: StandbyTerms, runs: Segments, on_failure: Floats) -> "Early":
        """How early runs [z] end that call the standby, a part `on_failure` of them on a failure.

        Each segment that is passed takes slack, and so does each failure before, so of few only the first ones fail, at slack near
        that of the first. A failure that leaves v hours more than a restart calls with the probability e^(-v / w), for waits of mean w.
        """
        wait, most = runs.wait_hours, np.maximum(runs.slack, 0.0)
        falls = np.maximum(-runs.growth, 0.0)
        fallen = falls * np.minimum(np.floor(most / np.maximum(falls, 1e-9)), runs.count - 1.0)
        # Losses from which a run returns, at most half of the slack each, take slack from those that follow.
        room, failures = np.maximum(most - terms.restart_hours, 0.0), np.expm1(-runs.losses.log_lossless)
        back = -np.expm1(-room / np.maximum(wait, AT_ONCE_HOURS))
        lost_hours = runs.length / 2 + terms.restart_hours + np.minimum(wait, room / 2)
        least = np.maximum(most - fallen - runs.count * failures * back * lost_hours, 0.0)
        longest = runs.length + np.minimum(terms.restart_hours, most)
        # Some failures leave no time for a restart, if only few.
        least = np.minimum(least, 0.99 * longest)
        saved = np.minimum(runs.standby_hours / runs.count, runs.length)
        most = np.maximum(most, least + 1e-3 * runs.length)
        early = Early(runs.length, saved, least, most, longest, at_once=on_failure, waited=np.zeros_like(most))
        if not wait.any():
            return early
        wait = np.maximum(wait, AT_ONCE_HOURS)
        within, beyond = early.within(longest), np.maximum(most + runs.length - longest, 1e-9)
        waits = np.maximum(1.0 - within, 0.0) / beyond * wait * -np.expm1(-beyond / wait)
        waited = on_failure * waits / (waits + within)
        return early._replace(at_once=on_failure - waited, waited=waited)

    @property
    def mean(self) -> Floats:
        """The mean hours."""
        at_once = self.longest - self._summed(self.longest, 3) / self._summed(self.longest, 2)
        between = (self.saved + self.length) / 2
        return (1 - self.at_once - self.waited) * between + self.at_once * at_once + self.waited * self.longest

    def by_at_least(self, hours: float) -> Floats:
        """The probability of ending before the deadline by so many hours, at least 0."""
        between = np.clip((self.length - hours) / np.maximum(self.length - self.saved, 1e-9), 0.0, 1.0)
        every = np.maximum(self._summed(self.longest, 2), 1e-300)
        within = np.clip(self._summed(np.minimum(hours, self.longest), 2) / every, 0.0, 1.0)
        waited = self.waited * (hours <= self.longest)
        return (1 - self.at_once - self.waited) * between + self.at_once * (1 - within) + waited

    def within(self, hours: Floats) -> Floats:
        """The probability that slack and what was left of a segment are no more than these hours."""
        return self._summed(hours, 2) / (self.length * (self.most - self.least))

    def _summed(self, hours: Floats, power: int) -> Floats:
        """The distribution of that sum of two even ones up to a factor (power 2), and its integral (power 3)."""
        since = hours - self.least, hours - self.most
        parts = (np.maximum(at, 0.0) ** power - np.maximum(at - self.length, 0.0) ** power for at in since)
        after_least, after_most = parts
        return np.asarray((after_least - after_most) / (2.0 if power == 2 else 6.0))
