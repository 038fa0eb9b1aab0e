"""Estimates with what the user's own runs teach put in: hours and peaks scaled, bands narrowed, room accordingly."""

from dataclasses import replace

import numpy as np

from planner.estimate import clusters
from planner.estimate.fastest import FREE, estimate
from planner.estimate.learned import NOTHING, Learned, least_sigma
from planner.estimate.machines import Estimates, LayoutRequest, Machines
from planner.job import Training
from planner.workload.work import Work

_TIMES = ("step_seconds", "hours", "hours_with_goodput")
_RATES = ("mfu", "units_per_second", "tflops_per_accelerator")
_PEAKS = ("peak_gib", "states_gib", "activations_gib", "other_gib")


def estimate_learned(
    work: Work,
    training: Training,
    machines: Machines,
    *,
    goodput: float,
    learned: Learned = NOTHING,
    request: LayoutRequest = FREE,
) -> Estimates:
    """`estimate`, corrected by what is learned; exactly `estimate` where that is nothing.

    A peak that turns out larger leaves less room, so layouts are chosen on devices smaller by that factor.
    """
    if not learned:
        return estimate(work, training, machines, goodput=goodput, request=request)
    found = [learned.of(chip.name) for chip in machines.accelerators]
    chip = machines.accelerator
    memory = np.array([each.memory.factor for each in found])[chip]
    capacity = clusters.clusters_of(machines, training).capacity_bytes / clusters.GIB
    room_lost_mib = (capacity - capacity / memory) * 1024
    tried = replace(machines, device_memory_mib=machines.device_memory_mib - room_lost_mib)
    plain = estimate(work, training, tried, goodput=goodput, request=request)
    hours = np.array([each.hours.factor for each in found])[chip]
    removed = np.array([each.variance_removed for each in found])[chip]
    floor = np.minimum(plain.log_sigma, least_sigma(work.task))
    return replace(
        plain,
        **{name: getattr(plain, name) * hours for name in _TIMES},
        **{name: getattr(plain, name) / hours for name in _RATES},
        **{name: getattr(plain, name) * memory for name in _PEAKS},
        terms={name: seconds * hours for name, seconds in plain.terms.items()},
        log_sigma=np.sqrt(np.maximum(plain.log_sigma**2 - removed, floor**2)),
        capacity_gib=capacity,
    )
