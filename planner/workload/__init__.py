"""The work of a job: FLOPs, bytes and states of one optimizer step, from any kind of workload."""

from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.job import OFFLOADED, Explicit, Preset, Profile, Training, Transformer, Workload
from gpuplan.planner.workload.explicit_counts import MOST_FLOPS, explicit_work
from gpuplan.planner.workload.preset_work import preset_work
from gpuplan.planner.workload.presets import PresetRow, find_preset, presets
from gpuplan.planner.workload.profiled_modules import profiled_work
from gpuplan.planner.workload.step_work import Work
from gpuplan.planner.workload.training_stages import staged
from gpuplan.planner.workload.transformer import transformer_work

__all__ = ["MOST_FLOPS", "PresetRow", "find_preset", "presets", "work_of"]

_ROUNDING = 1e-12


def work_of(workload: Workload, training: Training) -> Work:
    """The work of one optimizer step and of the whole job, for any kind of workload.

    Raises `UnusableInput` at ("workload", field) or ("training", field) for contradictory or unknown input, and for more
    than `MOST_FLOPS`.
    """
    work = _work_by_kind(workload, training)
    # Work is stored per unit, so multiplying back may round the largest accepted input above the limit.
    if not work.total_flops <= MOST_FLOPS * (1 + _ROUNDING):
        raise UnusableInput.at(
            "workload",
            "tokens" if work.unit == "tokens" else "samples",
            message=f"the job asks for {work.total_flops:.3g} FLOPs; at most {MOST_FLOPS:g} are accepted",
        )
    return work


def _work_by_kind(workload: Workload, training: Training) -> Work:
    match workload:
        case Transformer():
            return transformer_work(workload, training)
        case Preset():
            work = preset_work(workload, training)
        case Explicit():
            work = explicit_work(workload)
        case Profile():
            work = profiled_work(workload, training)
    if work.shape is None and training.activation_checkpointing == OFFLOADED:
        message = f"{OFFLOADED} checkpoints are inputs of transformer blocks, and {work.name} has none; accepted: full"
        raise UnusableInput.at("training", "activation_checkpointing", message=message)
    # Transformers apply the stage per sample, where it is cached.
    return work if work.shape is not None else staged(work, training)
