"""Estimates corrected by the user's past runs: scaled hours and memory peaks, narrower bands, less usable memory."""

from dataclasses import dataclass, replace

import numpy as np

from gpuplan.planner.model.job import Training
from gpuplan.planner.model.learned import NOTHING, LearnedCorrections
from gpuplan.planner.performance import cluster_rates
from gpuplan.planner.performance.estimator_request import Estimates, Floats, Ints, LayoutRequest, Machines, arrays_of
from gpuplan.planner.performance.fastest_layout import FREE, estimate, reasons, step_seconds
from gpuplan.planner.performance.goodput import goodput_of
from gpuplan.planner.performance.learned_corrections import least_sigma
from gpuplan.planner.workload.step_work import Work

_RATES = ("mfu", "units_per_second", "tflops_per_accelerator")
_PEAKS = ("peak_gib", "states_gib", "activations_gib", "other_gib")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PerStep:
    """Estimates of one step, independent of the length of the job; the `hours` of `estimates` are not meaningful.

    A job takes steps x `plain_seconds` x `factor`; `factor` is None without a correction from past runs.
    """

    estimates: Estimates
    plain_seconds: Floats
    factor: Floats | None

    def nbytes(self) -> int:
        """Bytes of all arrays."""
        arrays = [getattr(self.estimates, name) for name in arrays_of(self.estimates)]
        step_arrays = [self.plain_seconds, *([] if self.factor is None else [self.factor])]
        return sum(int(array.nbytes) for array in (*arrays, *self.estimates.terms.values(), *step_arrays))


def estimate_learned(
    work: Work,
    training: Training,
    machines: Machines,
    *,
    goodput: float | None,
    learned: LearnedCorrections = NOTHING,
    request: LayoutRequest = FREE,
) -> Estimates:
    """`estimate` with the corrections in `learned`; exactly `estimate` if there are none."""
    return whole(per_step(work, training, machines, learned=learned, request=request), work.steps, goodput)


def reasons_learned(
    work: Work, training: Training, machines: Machines, *, learned: LearnedCorrections, request: LayoutRequest
) -> Ints:
    """The `reason` of every row as `estimate_learned` states it, from memory alone."""
    return reasons(work, training, _tried(machines, training, learned), request=request)


def hours_of_one(
    work: Work, training: Training, machines: Machines, *, learned: LearnedCorrections, request: LayoutRequest
) -> float:
    """The `hours` of the only row as `estimate_learned` states them, without the rest; inf where the job cannot run."""
    seconds = step_seconds(work, training, _tried(machines, training, learned), request)
    hours = work.steps * seconds / 3600
    if learned:
        hours *= learned.of(machines.accelerators[int(machines.accelerator[0])].name).hours.factor
    return hours


def _tried(machines: Machines, training: Training, learned: LearnedCorrections) -> Machines:
    """The machines on which layouts are tried: smaller where past runs measured larger peaks."""
    if not learned:
        return machines
    capacity_gib = cluster_rates.clusters_of(machines, training).capacity_bytes / cluster_rates.GIB
    factor = np.array([learned.of(chip.name).memory.factor for chip in machines.accelerators])[machines.accelerator]
    room_lost_mib = (capacity_gib - capacity_gib / factor) * 1024
    return replace(machines, device_memory_mib=machines.device_memory_mib - room_lost_mib)


def whole(per_step: PerStep, steps: float, goodput: float | None) -> Estimates:
    """The estimates of a job of this many steps; `goodput` is the share of wall time that trains, None for the modelled one."""
    hours = steps * per_step.plain_seconds / 3600
    busy = hours / goodput_of(goodput, per_step.estimates.accelerators)
    if per_step.factor is not None:
        hours, busy = hours * per_step.factor, busy * per_step.factor
    return replace(per_step.estimates, hours=hours, hours_with_goodput=busy)


def per_step(
    work: Work,
    training: Training,
    machines: Machines,
    *,
    learned: LearnedCorrections = NOTHING,
    request: LayoutRequest = FREE,
) -> PerStep:
    """Time and memory of one step of the work on every row.

    Where past runs measured larger peaks, layouts are chosen on devices that are smaller by that factor.
    """
    if not learned:
        plain = estimate(work, training, machines, goodput=1.0, request=request)
        return PerStep(estimates=plain, plain_seconds=plain.step_seconds, factor=None)
    corrections = [learned.of(chip.name) for chip in machines.accelerators]
    chip = machines.accelerator
    memory = np.array([correction.memory.factor for correction in corrections])[chip]
    capacity = cluster_rates.clusters_of(machines, training).capacity_bytes / cluster_rates.GIB
    plain = estimate(work, training, _tried(machines, training, learned), goodput=1.0, request=request)
    hours = np.array([correction.hours.factor for correction in corrections])[chip]
    removed = np.array([correction.variance_removed for correction in corrections])[chip]
    floor = np.minimum(plain.log_sigma, least_sigma(work.task))
    corrected = replace(
        plain,
        step_seconds=plain.step_seconds * hours,
        **{name: getattr(plain, name) / hours for name in _RATES},
        **{name: getattr(plain, name) * memory for name in _PEAKS},
        terms={name: seconds * hours for name, seconds in plain.terms.items()},
        log_sigma=np.sqrt(np.maximum(plain.log_sigma**2 - removed, floor**2)),
        capacity_gib=capacity,
    )
    return PerStep(estimates=corrected, plain_seconds=plain.step_seconds, factor=hours)
