"""One past run of the user compared with its prediction."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRun:
    """One run of a class of work on an accelerator, compared with the estimate without corrections.

    `log_hours` is ln(measured / predicted hours of training) and `log_memory` ln(measured / predicted peak memory),
    None where not measured. `training_share` is the part of the measured time that the estimate covers (1.0 for a
    measured throughput), `extra_sigma` the noise of that time besides the variation between runs. `log_sigma` is the
    spread that the estimate stated.
    """

    task: str
    accelerator: str
    log_hours: float | None = None
    log_memory: float | None = None
    training_share: float = 1.0
    extra_sigma: float = 0.0
    log_sigma: float = 0.0
