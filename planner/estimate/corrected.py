"""Estimates with what the user's own runs teach put in: hours and peaks scaled, bands narrowed, room accordingly."""

from dataclasses import dataclass, replace

import numpy as np

from planner.estimate import clusters
from planner.estimate.fastest import FREE, estimate
from planner.estimate.learned import NOTHING, Learned, least_sigma
from planner.estimate.machines import Estimates, Floats, LayoutRequest, Machines, arrays_of
from planner.job import Training
from planner.workload.work import Work

_RATES = ("mfu", "units_per_second", "tflops_per_accelerator")
_PEAKS = ("peak_gib", "states_gib", "activations_gib", "other_gib")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PerStep:
    """Estimates of a step, whatever the length of the job: `hours` of `estimates` mean nothing.

    A job takes its steps x `plain_seconds`, x `factor` where past runs teach one.
    """

    estimates: Estimates
    plain_seconds: Floats
    factor: Floats | None

    def nbytes(self) -> int:
        """Bytes that all arrays take."""
        arrays = [getattr(self.estimates, name) for name in arrays_of(self.estimates)]
        own = [self.plain_seconds, *([] if self.factor is None else [self.factor])]
        return sum(int(each.nbytes) for each in (*arrays, *self.estimates.terms.values(), *own))


def estimate_learned(
    work: Work,
    training: Training,
    machines: Machines,
    *,
    goodput: float,
    learned: Learned = NOTHING,
    request: LayoutRequest = FREE,
) -> Estimates:
    """`estimate`, corrected by what is learned; exactly `estimate` where that is nothing."""
    return whole(per_step(work, training, machines, learned=learned, request=request), work.steps, goodput)


def whole(found: PerStep, steps: float, goodput: float) -> Estimates:
    """The estimates of a job of so many steps."""
    hours = steps * found.plain_seconds / 3600
    busy = hours / goodput
    if found.factor is not None:
        hours, busy = hours * found.factor, busy * found.factor
    return replace(found.estimates, hours=hours, hours_with_goodput=busy)


def per_step(
    work: Work,
    training: Training,
    machines: Machines,
    *,
    learned: Learned = NOTHING,
    request: LayoutRequest = FREE,
) -> PerStep:
    """What a step of the work takes on every row.

    A peak that turns out larger leaves less room, so layouts are chosen on devices smaller by that factor.
    """
    if not learned:
        plain = estimate(work, training, machines, goodput=1.0, request=request)
        return PerStep(estimates=plain, plain_seconds=plain.step_seconds, factor=None)
    found = [learned.of(chip.name) for chip in machines.accelerators]
    chip = machines.accelerator
    memory = np.array([each.memory.factor for each in found])[chip]
    capacity = clusters.clusters_of(machines, training).capacity_bytes / clusters.GIB
    room_lost_mib = (capacity - capacity / memory) * 1024
    tried = replace(machines, device_memory_mib=machines.device_memory_mib - room_lost_mib)
    plain = estimate(work, training, tried, goodput=1.0, request=request)
    hours = np.array([each.hours.factor for each in found])[chip]
    removed = np.array([each.variance_removed for each in found])[chip]
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
