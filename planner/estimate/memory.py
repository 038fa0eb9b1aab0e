"""Device memory of every candidate split: states by ZeRO stage, activations by checkpointing, the largest micro-batch.

Memory is states(stage) + buffers(stage) + micro_batch x activations(checkpointing): monotone in each choice, so the
largest micro-batch per (stage, checkpointing) is a division, and a choice that saves memory without
allowing a larger micro-batch is dropped unseen.
"""

from dataclasses import dataclass

import numpy as np

from planner.estimate.clusters import GIB, Clusters
from planner.estimate.layouts import Splits
from planner.estimate.machines import CHECKPOINTING, Floats, Ints, LayoutRequest
from planner.estimate.states import ParameterBytes, Parts, parameter_bytes, parts_of
from planner.job import Training
from planner.workload.work import Work

#: What the caching allocator reserves over what is allocated at the peak, on activations. Peaks reserved
#: over peaks allocated in the litgpt tables are 1.05-1.15.
FRAGMENTATION = 1.08
#: Communication buffers of one process in a group of several, GiB: NCCL channels of one communicator.
GROUP_BUFFERS_GIB = 0.5
#: Units of a sharded model whose weights are gathered at once: the one in use and the one prefetched (FSDP).
GATHERED_UNITS = 2
STAGES = (1, 2, 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """Bytes per device of every split; first axis of `states` and `buffers` is the ZeRO stage of `stages`.

    `activations` (first axis checkpointing) and `logits` are per sample of the micro-batch.
    `dense`, `expert` are trained parameters on one device before data-parallel sharding, `frozen` the
    bytes of frozen ones.
    """

    stages: tuple[int, ...]
    states: Floats
    buffers: Floats
    activations: Floats
    context: Floats
    dense: Floats
    expert: Floats
    frozen: Floats

    def peak(self, stage: Ints, checkpointing: Ints, split: Ints, micro_batch: Floats) -> Floats:
        """Bytes at the peak: what the allocator reserves plus the context."""
        states = self.states[stage, split] + self.buffers[stage, split]
        return states + micro_batch * self.activations[checkpointing, split] + self.context[split]


def stage_share(work: Work, pipeline: Ints) -> Floats:
    """Share of the blocks on the fullest pipeline stage (blocks do not split)."""
    layers = work.shape.layers if work.shape else 1
    return -(-layers // pipeline) / float(layers)


def footprint(
    work: Work,
    training: Training,
    clusters: Clusters,
    splits: Splits,
    in_flight: Floats,
    request: LayoutRequest,
) -> Footprint:
    """The footprint of `splits`; `in_flight` is how many micro-batches the first pipeline stage holds.

    States after Rajbhandari 2020 (ZeRO-1/2/3 shard optimizer, gradients, weights over data x context);
    activations and logits as counted in `work`, split by tensor (with sequence parallelism) and context.
    """
    if work.fixed_state_gib is not None:
        return _explicit(work, clusters, splits, request)
    row = splits.row
    per = parameter_bytes(training, clusters.element_bytes)
    per = ParameterBytes(weights=per.weights[row], gradients=per.gradients[row], optimizer=per.optimizer[row])
    parts = parts_of(work)
    share = stage_share(work, splits.pipeline)
    dense = (parts.body * share + parts.ends) / splits.tensor
    expert = parts.experts * share / (splits.tensor * splits.expert)
    ranks = splits.data * splits.context
    frozen = (parts.frozen_bytes + parts.frozen_expert_bytes / splits.expert) * share / splits.tensor
    stages = STAGES if request.zero_stage is None else (request.zero_stage,)
    states = np.stack([_states(s, training, per, dense, expert, frozen, ranks, splits.expert) for s in stages])
    buffers = _buffers(stages, parts, per, frozen, splits, ranks)
    activations = _activations(work, clusters.element_bytes[row], splits, share, in_flight, request)
    return Footprint(
        stages=stages,
        states=states,
        buffers=buffers,
        activations=activations,
        context=clusters.context_bytes[row],
        dense=dense,
        expert=expert,
        frozen=frozen,
    )


def _states(
    stage: int,
    training: Training,
    per: ParameterBytes,
    dense: Floats,
    expert: Floats,
    frozen: Floats,
    ranks: Ints,
    expert_ways: Ints,
) -> Floats:
    """Weights, gradients and optimizer state on one device, less what is offloaded to the host."""
    resident = 0.0 if training.offload != "none" else 1.0
    weights = 0.0 if training.offload == "parameters" else 1.0
    dense_shards, expert_shards = 1.0 / ranks, expert_ways / ranks
    total = frozen * (dense_shards * weights if stage >= 3 else 1.0)
    for size, shards in ((dense, dense_shards), (expert, expert_shards)):
        total = total + size * (
            per.weights * (shards * weights if stage >= 3 else 1.0)
            + per.gradients * (shards if stage >= 2 else 1.0)
            + resident * per.optimizer * (shards if stage >= 1 else 1.0)
        )
    return total


def _buffers(
    stages: tuple[int, ...], parts: Parts, per: ParameterBytes, frozen: Floats, splits: Splits, ranks: Ints
) -> Floats:
    """Communication buffers, and for ZeRO-3 the gathered weights and gradients of a few blocks."""
    group = np.where(ranks * splits.tensor * splits.pipeline > 1, GROUP_BUFFERS_GIB * GIB, 0.0)
    block = (parts.body / parts.layers + parts.experts / parts.layers / splits.expert) / splits.tensor
    trained = block * (GATHERED_UNITS * per.weights + per.gradients) + parts.ends / splits.tensor * per.weights
    gathered = np.where(ranks > 1, trained + GATHERED_UNITS * frozen / parts.layers * splits.pipeline, 0.0)
    return np.stack([group + (gathered if stage >= 3 else 0.0) for stage in stages])


def _activations(
    work: Work, element_bytes: Floats, splits: Splits, share: Floats, in_flight: Floats, request: LayoutRequest
) -> Floats:
    """Bytes per sample, (3, splits): inf where the request excludes that checkpointing.

    What is kept under full checkpointing includes one block being recomputed, whatever the pipeline holds.
    """
    ways = splits.tensor * splits.context
    scale = element_bytes * (FRAGMENTATION / 2) / ways
    layers = work.shape.layers if work.shape else 1
    none, selective, full = work.activation_bytes_per_sample
    recomputed = min(none / layers, full)
    kept = np.array([none, selective, full - recomputed])[:, None] * (share * in_flight)
    kept[2] += recomputed
    if splits.pipeline.size and splits.pipeline.max() > 1:
        last_stage = kept / in_flight + work.logits_bytes_per_sample
        kept = np.where(splits.pipeline > 1, np.maximum(kept, last_stage), kept + work.logits_bytes_per_sample)
    else:
        kept += work.logits_bytes_per_sample
    kept *= scale
    if request.checkpointing is not None:
        kept[[k for k, name in enumerate(CHECKPOINTING) if name != request.checkpointing]] = np.inf
    return kept


def _explicit(work: Work, clusters: Clusters, splits: Splits, request: LayoutRequest) -> Footprint:
    """Memory that the user has stated: whole on each device, or sharded down to the least per device."""
    whole = (work.fixed_state_gib or 0.0) * GIB
    least = work.min_memory_gib_per_accelerator * GIB
    stages = (0, 3) if request.zero_stage is None else (request.zero_stage,)
    shards = [splits.data.astype(float) if stage >= 3 else np.ones(len(splits.data)) for stage in stages]
    states = np.stack([np.maximum(whole / ways, least) for ways in shards])
    activations = np.full((3, len(splits.row)), np.inf)
    kept = CHECKPOINTING.index(request.checkpointing) if request.checkpointing else 0
    activations[kept] = 0.0
    group = np.where(splits.data > 1, GROUP_BUFFERS_GIB * GIB, 0.0)
    parameters = np.full(len(splits.row), work.trainable_parameters)
    return Footprint(
        stages=stages,
        states=states,
        buffers=np.stack([group for _ in stages]),
        activations=activations,
        context=clusters.context_bytes[splits.row],
        dense=parameters,
        expert=np.zeros(len(splits.row)),
        frozen=np.zeros(len(splits.row)),
    )


def largest_micro_batch(found: Footprint, capacity: Floats) -> Floats:
    """Samples per micro-batch that fit, (stages, 3, splits); below 1 where none does."""
    room = capacity - found.context - found.states - found.buffers
    with np.errstate(divide="ignore", invalid="ignore"):
        samples = room[:, None, :] / np.maximum(found.activations, 1e-9)[None, :, :]
    return np.floor(np.maximum(samples, 0.0))
