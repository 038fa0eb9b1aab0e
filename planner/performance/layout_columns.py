"""The inputs of the time formulas as columns: one element per layout candidate.

A candidate is a (machine row, split, ZeRO stage, checkpointing, micro-batch).
"""

from dataclasses import dataclass

import numpy as np

from gpuplan.planner.performance.estimator_request import Floats, Ints
from gpuplan.planner.performance.layout_candidates import LayoutCandidates
from gpuplan.planner.performance.layout_question import Question
from gpuplan.planner.performance.memory_options import Candidates

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
    "log2_domains",
)
_SPLIT = ("data", "tensor", "pipeline", "context", "expert")
_STATE = ("share", "dense", "expert_parameters", "frozen", "frozen_experts")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """Properties of machines and splits, one element per candidate.

    `share` is the part of the blocks on one pipeline stage, `local` the samples per replica. `full` and `some` are 1.0
    where all activations, or at least those of attention, are recomputed, else 0.0.
    """

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
    log2_domains: Floats
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


def gather(question: Question, layout_candidates: LayoutCandidates, chosen: Candidates, row: Ints) -> Gathered:
    """Columns of the `chosen` candidates of `layout_candidates`, each for its machine `row`."""
    splits, batch, footprint = layout_candidates.splits, layout_candidates.batch, layout_candidates.footprint
    clusters, index = question.clusters, layout_candidates.footprint_index.take(chosen.split)
    of_machine = {name: getattr(clusters, name).take(row) for name in _MACHINE}
    of_split = {name: getattr(splits, name).take(chosen.split) for name in _SPLIT}
    of_state = {name: getattr(footprint, name).take(index) for name in _STATE}
    stages = np.array(footprint.stages, dtype=np.float64)
    return Gathered(
        **of_machine,
        **of_split,
        **of_state,
        interleave=layout_candidates.interleave.take(chosen.split),
        local=batch.local.take(chosen.split),
        scale=batch.scale.take(chosen.split),
        stage=stages[chosen.stage],
        full=(chosen.checkpointing == 2).astype(np.float64),
        some=(chosen.checkpointing >= 1).astype(np.float64),
        micro_batch=chosen.micro_batch,
        micro_batches=chosen.micro_batches,
    )
