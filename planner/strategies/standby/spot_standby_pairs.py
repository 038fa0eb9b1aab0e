"""Pairs of a spot machine and its standby as arrays, and the figures that all pairs share."""

from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class StandbyTerms:
    """Figures shared by all pairs: hours to the deadline, confidence and restart."""

    deadline_hours: float
    confidence: float
    restart_hours: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spots:
    """Interruptible configurations.

    Set-up ends with the first step. Work is hours at the stated goodput. Prices are for all nodes together: `usd_per_hour` while up, `storage_usd_per_hour`
    also while waiting. `fixed_usd` is data egress. `rate` is preemptions per hour of all nodes, above 0,
    each followed by `wait_hours` on average without machines where the estimate is right. `log_sigma` is the spread of the
    paid hours; with the waits, hours spread by `wall_log_sigma`, which is no less (`Pairs.waits_at`).
    """

    setup_hours: Floats
    work_hours: Floats
    log_sigma: Floats
    wall_log_sigma: Floats
    rate: Floats
    wait_hours: Floats
    checkpoint_hours: Floats
    usd_per_hour: Floats
    storage_usd_per_hour: Floats
    fixed_usd: Floats
    step_hours: Floats
    minimum_hours: Floats

    def __len__(self) -> int:
        """How many there are."""
        return len(self.work_hours)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pairs(Spots):
    """One element per pair of a spot machine and its standby; `spot` and `standby` are the caller's indices.

    `standby_fixed_usd`, egress of data and checkpoint, is paid only if the standby is used.
    """

    spot: Ints
    standby: Ints
    standby_work_hours: Floats
    standby_log_sigma: Floats
    standby_usd_per_hour: Floats
    standby_storage_usd_per_hour: Floats
    standby_fixed_usd: Floats
    standby_step_hours: Floats
    standby_minimum_hours: Floats
    changeover_hours: Floats

    def take(self, which: NDArray[np.int64] | NDArray[np.bool_] | slice) -> "Pairs":
        """The pairs at these elements."""
        return Pairs(**{name: getattr(self, name)[which] for name in _OF_SPOT + _OF_STANDBY})

    def work_at(self, z: Floats) -> tuple[Floats, Floats]:
        """Hours of all the work on spot and on the standby at deviations [..., z]."""
        return (
            self.work_hours[..., None] * np.exp(self.log_sigma[..., None] * z),
            self.standby_work_hours[..., None] * np.exp(self.standby_log_sigma[..., None] * z),
        )

    def waits_at(self, z: Floats) -> Floats:
        """Mean hours without machines after each preemption, at deviations z of each pair: [..., z], or of all alike: [z].

        Paid hours are T e^(sigma z), and each of them brings `rate` waits, so with waits of v e.g. (1 + rate v) T e^(sigma z). That
        total spreads by s instead, since mean waits differ between zones (`wait_log_spread`), so

            v(z) = max(0, ((1 + rate v) e^((s - sigma) z) - 1) / rate)
        """
        further = [1] * max(z.ndim - self.rate.ndim, 1)
        rate, wait, apart = (
            values.reshape(*values.shape, *further)
            for values in (self.rate, self.wait_hours, self.wall_log_sigma - self.log_sigma)
        )
        if not wait.any():
            return wait
        return np.asarray(np.maximum(((1.0 + rate * wait) * np.exp(apart * z) - 1.0) / rate, 0.0))

    def briefly(self) -> "Pairs":
        """The same pairs as arrays that broadcast: if all have one spot, its fields have a single element."""
        if len(self) < 2 or (self.spot != self.spot[0]).any():
            return self
        of_spot = {name: getattr(self, name)[:1] for name in _OF_SPOT}
        return Pairs(**of_spot, **{name: getattr(self, name) for name in _OF_STANDBY})


#: A wait that is as good as none.
AT_ONCE_HOURS = 1e-9


class Hazard(NamedTuple):
    """How one run on spot is preempted: times per hour, and hours per restart."""

    rate: float
    restart_hours: float

    @staticmethod
    def of(pair: Pairs, terms: StandbyTerms) -> "Hazard":
        """The hazard of the first of these pairs."""
        return Hazard(float(pair.rate[0]), terms.restart_hours)


_OF_SPOT = ("spot", *(field.name for field in fields(Spots)))
_OF_STANDBY = tuple(field.name for field in fields(Pairs) if field.name not in _OF_SPOT)
