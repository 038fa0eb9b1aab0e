"""What one run of the user's says about the estimates: how far it lay from what was predicted for it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRun:
    """One run of a class of work on an accelerator, against the estimate without any learning.

    `log_hours` is ln(measured / predicted hours of training) and `log_memory` ln(measured / predicted peak memory),
    None where not measured. `training_share` is the part of the measured time that the estimate speaks of (1.0 for
    a measured throughput), `extra_sigma` noise of that time besides the run's own. `log_sigma` is the spread that the
    estimate itself gave.
    """

    task: str
    accelerator: str
    log_hours: float | None = None
    log_memory: float | None = None
    training_share: float = 1.0
    extra_sigma: float = 0.0
    log_sigma: float = 0.0
