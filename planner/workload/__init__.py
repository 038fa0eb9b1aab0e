"""From a job's workload to what one optimizer step asks of the machines."""

from catalog.errors import UnusableInput
from planner.job import Explicit, Preset, Profile, Training, Transformer, Workload
from planner.workload.explicit import MOST_FLOPS, explicit_work
from planner.workload.presets import PresetRow, find_preset, presets
from planner.workload.profiled import profiled_work
from planner.workload.published import preset_work
from planner.workload.transformer import transformer_work
from planner.workload.work import Work

__all__ = ["MOST_FLOPS", "PresetRow", "find_preset", "presets", "work_of"]

_ROUNDING = 1e-12


def work_of(workload: Workload, training: Training) -> Work:
    """The work of one optimizer step and of the whole job, whatever kind of workload it is.

    Raises `UnusableInput` at ("workload", field) or ("training", field) for input that contradicts
    itself, is not known, or asks for more than `MOST_FLOPS`.
    """
    work = _counted(workload, training)
    # Work is counted per unit: the most that may be stated must not be refused for what multiplying back rounds.
    if not work.total_flops <= MOST_FLOPS * (1 + _ROUNDING):
        raise UnusableInput.at(
            "workload",
            "tokens" if work.unit == "tokens" else "samples",
            message=f"the job asks for {work.total_flops:.3g} FLOPs; at most {MOST_FLOPS:g} are accepted",
        )
    return work


def _counted(workload: Workload, training: Training) -> Work:
    match workload:
        case Transformer():
            return transformer_work(workload, training)
        case Preset():
            return preset_work(workload, training)
        case Explicit():
            return explicit_work(workload)
        case Profile():
            return profiled_work(workload, training)
