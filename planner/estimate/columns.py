"""What the formulas need of every candidate, as columns of equal length.

One element is one (machine row, split, ZeRO stage, checkpointing, micro-batch).
"""

from dataclasses import dataclass

import numpy as np

from planner.estimate.candidates import Batch, Candidates
from planner.estimate.clusters import Clusters
from planner.estimate.layouts import Splits
from planner.estimate.machines import Floats
from planner.estimate.memory import Footprint, stage_share
from planner.workload.work import Work

_MACHINE = (
    "linear_rate",
    "wide_rate",
    "memory_rate",
    "peer_rate",
    "fabric_rate",
    "host_rate",
    "element_bytes",
    "domain",
    "gpus",
)
_SPLIT = (
    "data",
    "tensor",
    "pipeline",
    "context",
    "expert",
    "interleave",
    "share",
    "dense",
    "expert_parameters",
    "frozen",
    "local",
    "scale",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """Columns of machines and splits, one element per candidate."""

    linear_rate: Floats
    wide_rate: Floats
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
    local: Floats
    scale: Floats
    stage: Floats
    full: Floats
    some: Floats
    micro_batch: Floats
    micro_batches: Floats
    crosses_nodes: Floats


def gather(
    work: Work,
    clusters: Clusters,
    splits: Splits,
    interleave: Floats,
    batch: Batch,
    found: Footprint,
    chosen: Candidates,
) -> Gathered:
    """Columns of `chosen`; one two-dimensional take per table instead of one per column."""
    machine = np.stack(
        [
            clusters.linear_rate,
            clusters.wide_rate,
            clusters.memory_rate,
            clusters.peer_rate,
            clusters.fabric_rate,
            clusters.host_rate,
            clusters.element_bytes,
            clusters.domain,
            clusters.gpus,
        ]
    )
    split = np.stack(
        [
            splits.data,
            splits.tensor,
            splits.pipeline,
            splits.context,
            splits.expert,
            interleave,
            stage_share(work, splits.pipeline),
            found.dense,
            found.expert,
            found.frozen,
            batch.local,
            batch.scale,
        ]
    )
    of_machine = machine.take(splits.row[chosen.split], axis=1)
    of_split = split.take(chosen.split, axis=1)
    stages = np.array(found.stages, dtype=np.float64)
    full = (chosen.checkpointing == 2).astype(np.float64)
    return Gathered(
        **dict(zip(_MACHINE, of_machine, strict=True)),
        **dict(zip(_SPLIT, of_split, strict=True)),
        stage=stages[chosen.stage],
        full=full,
        some=(chosen.checkpointing >= 1).astype(np.float64),
        micro_batch=chosen.micro_batch,
        micro_batches=chosen.micro_batches,
        crosses_nodes=(of_machine[8] > of_machine[7]).astype(np.float64),
    )
