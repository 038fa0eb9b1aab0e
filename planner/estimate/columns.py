"""What the formulas need of every candidate, as columns of equal length.

One element is one (machine row, split, ZeRO stage, checkpointing, micro-batch).
"""

from dataclasses import dataclass

import numpy as np

from planner.estimate.candidates import Candidates
from planner.estimate.machines import Floats, Ints
from planner.estimate.memory import stage_share
from planner.estimate.plane import Plane
from planner.estimate.question import Question

_MACHINE = (
    "linear_rate",
    "wide_rate",
    "attention_rate",
    "memory_rate",
    "peer_rate",
    "fabric_rate",
    "host_rate",
    "element_bytes",
    "domain",
    "gpus",
)
_SPLIT = ("data", "tensor", "pipeline", "context", "expert")
_STATE = ("dense", "expert_parameters", "frozen", "frozen_experts")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """Columns of machines and splits, one element per candidate."""

    linear_rate: Floats
    wide_rate: Floats
    attention_rate: Floats
    memory_rate: Floats
    peer_rate: Floats
    fabric_rate: Floats
    host_rate: Floats
    element_bytes: Floats
    domain: Floats
    gpus: Floats
    data: Floats
    tensor: Floats
    pipeline: Floats
    context: Floats
    expert: Floats
    interleave: Floats
    share: Floats
    dense: Floats
    expert_parameters: Floats
    frozen: Floats
    frozen_experts: Floats
    local: Floats
    scale: Floats
    stage: Floats
    full: Floats
    some: Floats
    micro_batch: Floats
    micro_batches: Floats


def gather(question: Question, plane: Plane, chosen: Candidates, row: Ints) -> Gathered:
    """Columns of the `chosen` candidates of `plane`, each for its machine `row`."""
    splits, batch, found = plane.splits, plane.batch, plane.found
    of_machine = {name: getattr(question.clusters, name).take(row) for name in _MACHINE}
    share = stage_share(question.layers, splits.pipeline)
    of_split = {name: getattr(splits, name).take(chosen.split) for name in _SPLIT}
    of_state = {name: getattr(found, name).take(plane.held[chosen.split]) for name in _STATE}
    stages = np.array(found.stages, dtype=np.float64)
    return Gathered(
        **of_machine,
        **of_split,
        **of_state,
        interleave=plane.interleave.take(chosen.split),
        share=share.take(chosen.split),
        local=batch.local.take(chosen.split),
        scale=batch.scale.take(chosen.split),
        stage=stages[chosen.stage],
        full=(chosen.checkpointing == 2).astype(np.float64),
        some=(chosen.checkpointing >= 1).astype(np.float64),
        micro_batch=chosen.micro_batch,
        micro_batches=chosen.micro_batches,
    )
