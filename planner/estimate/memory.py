"""Device memory of every candidate split: states by ZeRO stage, activations by checkpointing, the largest micro-batch.

Memory is states(stage) + buffers(stage) + micro_batch x activations(checkpointing): monotone in each choice, so the
largest micro-batch per (stage, checkpointing) is a division, and a choice that saves memory without
allowing a larger micro-batch is dropped unseen.
"""

from dataclasses import dataclass

import numpy as np

from planner.estimate.clusters import GIB
from planner.estimate.layouts import Splits
from planner.estimate.machines import CHECKPOINTING, Floats, Ints
from planner.estimate.question import Question
from planner.estimate.states import ParameterBytes, Parts, parameter_bytes, parts_of
from planner.workload.methods import is_fused, method_of
from planner.workload.work import Work

#: What the caching allocator reserves over what is allocated at the peak, on activations. Fused stacks: none, since
#: llm-foundry's fullest runs (which did fit) leave no room for more than 1 %, and LitGPT's reserved and allocated peaks
#: of the same model agree within 2 % per token. Plain ones, whose many short-lived tensors leave more holes: fitted by
#: `python -m benchmarks.memory_facts --fit` to the batches that ran and those that did not in the BERT runs of 2020
#: on V100s, which allow 1.2 to 2.4, and to PEFT's table; bounds 1 to 2.
FRAGMENTATION = {True: 1.0, False: 1.8}
#: Communication buffers of one process in a group of several, GiB (NCCL channels, staging of gradients): assumed.
GROUP_BUFFERS_GIB = 0.5
#: Units of a sharded model whose weights are gathered at once: the one in use and the one prefetched (FSDP).
GATHERED_UNITS = 2
#: A 4-bit matmul writes its weights out at 16 bit before it multiplies (bitsandbytes, MatMul4Bit).
DEQUANTISED_BYTES = 2.0
#: Share of a device's memory that a predicted peak must leave free: of the measured runs and the sizes next to measured
#: peaks it leaves 97 % of those that fit and 90 % of those that do not called so, each source predicted by the others
#: (`python -m benchmarks.memory_facts --fit`). None is kept of memory that the user states.
MARGIN = 0.04
STAGES = (1, 2, 3)
#: Activations kept with low-rank adapters over those without, in models that are not counted block by block.
ADAPTER_ACTIVATIONS = 1.4


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """Bytes per device of every split; first axis of `states` and `buffers` is the ZeRO stage of `stages`.

    `activations` (first axis checkpointing) and `logits` are per sample of the micro-batch.
    `dense`, `expert_parameters` are trained parameters on one device before data-parallel sharding, `frozen` and
    `frozen_experts` the bytes of frozen ones. Ranks of an expert group hold different experts, so that data-parallel
    sharding divides those by ranks / expert alone.
    """

    stages: tuple[int, ...]
    states: Floats
    buffers: Floats
    activations: Floats
    dense: Floats
    expert_parameters: Floats
    frozen: Floats
    frozen_experts: Floats

    def peak(self, stage: Ints, checkpointing: Ints, split: Ints, micro_batch: Floats) -> Floats:
        """Bytes at the peak that the allocator reserves, without the context."""
        states = self.states[stage, split] + self.buffers[stage, split]
        return states + micro_batch * self.activations[checkpointing, split]


def room_bytes(question: Question) -> Floats:
    """What each row has for states, buffers and activations: its capacity less the margin and the context."""
    margin = MARGIN if question.work.fixed_state_gib is None else 0.0
    return question.clusters.capacity_bytes * (1.0 - margin) - question.clusters.context_bytes


def stage_share(layers: int, pipeline: Floats) -> Floats:
    """Share of the blocks on the fullest pipeline stage (blocks do not split)."""
    return np.asarray(np.ceil(layers / pipeline) / layers)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """Per split: parameters and bytes per parameter on one device before sharding over `ranks`."""

    per: ParameterBytes
    dense: Floats
    expert: Floats
    frozen: Floats
    frozen_experts: Floats
    ranks: Floats


def footprint(question: Question, splits: Splits, element_bytes: Floats, in_flight: Floats) -> Footprint:
    """The footprint of `splits`; activations have `element_bytes`, and the first pipeline stage holds `in_flight` micro-batches.

    States after Rajbhandari 2020 (ZeRO-1/2/3 shard optimizer, gradients, weights over data x context);
    activations and logits as counted in the work, split by tensor (with sequence parallelism) and context.
    Raises `UnusableInput` for an unknown optimizer.
    """
    work, request = question.work, question.request
    if work.fixed_state_gib is not None:
        return _explicit(question, splits)
    parts = parts_of(work)
    share = stage_share(question.layers, splits.pipeline)
    held = _Held(
        per=parameter_bytes(question.training, element_bytes),
        dense=(parts.body * share + parts.ends) / splits.tensor,
        expert=parts.experts * share / (splits.tensor * splits.expert),
        frozen=parts.frozen_bytes * share / splits.tensor,
        frozen_experts=parts.frozen_expert_bytes * share / (splits.tensor * splits.expert),
        ranks=splits.data * splits.context,
    )
    stages = STAGES if request.zero_stage is None else (request.zero_stage,)
    return Footprint(
        stages=stages,
        states=np.stack([_states(stage, question.training.offload, held, splits) for stage in stages])
        + _tables(work, splits),
        buffers=_buffers(question, stages, parts, held, splits),
        activations=_activations(question, element_bytes, splits, share * in_flight, in_flight),
        dense=held.dense,
        expert_parameters=held.expert,
        frozen=held.frozen,
        frozen_experts=held.frozen_experts,
    )


def _states(stage: int, offload: str, held: _Held, splits: Splits) -> Floats:
    """Weights, gradients and optimizer state on one device, less what is offloaded to the host.

    An optimizer on the host is handed each gradient as it is made (Ren 2021, ZeRO-Offload, section 4.1).
    """
    weights = 0.0 if offload == "parameters" else 1.0
    optimizer, gradients = (held.per.optimizer, held.per.gradients) if offload == "none" else (0.0, 0.0)
    shards = 1.0 / held.ranks
    total = held.frozen + held.frozen_experts
    if stage >= 3:
        # Experts are apart over the ranks of their group already: what is left to shard them over are its replicas.
        total = (held.frozen + held.frozen_experts * splits.expert) * (shards * weights)
    for size, part in ((held.dense, shards), (held.expert, splits.expert * shards)):
        per = held.per.weights * (part * weights) if stage >= 3 else held.per.weights
        per = per + (gradients * part if stage >= 2 else gradients) + held.per.copies * (part if stage >= 3 else 1.0)
        total = total + size * (per + (optimizer * part if stage >= 1 else optimizer))
        if not held.expert.any():
            break
    return total


def _tables(work: Work, splits: Splits) -> Floats:
    """Embedding tables spread over all devices: fp32 rows under plain SGD, as DLRM's reference keeps them."""
    return 4.0 * work.table_parameters / (splits.data * splits.tensor * splits.pipeline * splits.context)


def _buffers(question: Question, stages: tuple[int, ...], parts: Parts, held: _Held, splits: Splits) -> Floats:
    """Communication buffers, and for ZeRO-3 the gathered weights and gradients of a few blocks.

    What is offloaded passes through the device a few blocks at a time as well, and 4-bit weights are written out
    at 16 bit block by block, those of the head with their gradient's operand.
    """
    group = np.where(held.ranks * splits.tensor * splits.pipeline > 1, GROUP_BUFFERS_GIB * GIB, 0.0)
    block = (parts.body / parts.layers + parts.experts / parts.layers / splits.expert) / splits.tensor
    ends = parts.ends / splits.tensor * (held.per.weights + held.per.gradients)
    trained = block * (GATHERED_UNITS * held.per.weights + held.per.gradients) + ends
    frozen = (parts.frozen_bytes + parts.frozen_expert_bytes / splits.expert) / splits.tensor
    passing = trained + GATHERED_UNITS / parts.layers * frozen
    offload = question.training.offload
    always = group + _dequantised(question) / splits.tensor
    if offload == "optimizer":
        always = always + block * held.per.gradients
    gathered = passing if offload == "parameters" else np.where(held.ranks > 1, passing, 0.0)
    return np.stack([always + gathered if stage >= 3 else always for stage in stages])


def _dequantised(question: Question) -> float:
    """Bytes of one block and the head at 16 bit, where matmuls unpack 4-bit weights."""
    work = question.work
    if work.shape is None or not method_of(question.training).quantised:
        return 0.0
    head = float(work.shape.vocabulary_size * work.shape.hidden_size)
    body = work.parameters - work.trainable_parameters - work.embedding_parameters - head
    return DEQUANTISED_BYTES * (max(0.0, body) / work.shape.layers + head)


def _activations(
    question: Question, element_bytes: Floats, splits: Splits, first_stage: Floats, in_flight: Floats
) -> Floats:
    """Bytes per sample, (3, splits): inf where the request excludes that checkpointing.

    The first pipeline stage holds its blocks for all micro-batches in flight, the last one its own and
    the logits. What full checkpointing keeps includes one block that is being recomputed.
    """
    work = question.work
    none, selective, full = work.activation_bytes_per_sample
    recomputed = min(none / question.layers, full)
    kept = np.array([none, selective, full - recomputed])[:, None] * first_stage
    kept[2] += recomputed
    logits = work.logits_bytes_per_sample
    if splits.pipeline.max(initial=1.0) > 1:
        kept = np.where(splits.pipeline > 1, np.maximum(kept, kept / in_flight + logits), kept + logits)
    else:
        kept += logits
    extra = ADAPTER_ACTIVATIONS if work.shape is None and method_of(question.training).adapters else 1.0
    extra *= FRAGMENTATION[is_fused(question.training)]
    kept *= element_bytes * (extra / 2) / (splits.tensor * splits.context)
    asked = question.request.checkpointing
    if asked is not None:
        kept[[kind for kind, name in enumerate(CHECKPOINTING) if name != asked]] = np.inf
    return kept


def _explicit(question: Question, splits: Splits) -> Footprint:
    """Memory that the user has stated: whole on each device, or sharded down to the least per device."""
    work, request, count = question.work, question.request, len(splits.row)
    whole, least = (work.fixed_state_gib or 0.0) * GIB, work.min_memory_gib_per_accelerator * GIB
    stages = (0, 3) if request.zero_stage is None else (request.zero_stage,)
    activations = np.full((3, count), np.inf)
    activations[CHECKPOINTING.index(request.checkpointing) if request.checkpointing else 0] = 0.0
    group = np.where(splits.data > 1, GROUP_BUFFERS_GIB * GIB, 0.0)
    sharded = np.maximum(whole / splits.data, least)
    return Footprint(
        stages=stages,
        states=np.stack([sharded if stage >= 3 else np.full(count, max(whole, least)) for stage in stages]),
        buffers=np.stack([group for _ in stages]),
        activations=activations,
        dense=np.full(count, work.trainable_parameters),
        expert_parameters=np.zeros(count),
        frozen=np.zeros(count),
        frozen_experts=np.zeros(count),
    )


def largest_micro_batch(found: Footprint, held: Ints, room: Floats) -> Floats:
    """Samples per micro-batch that fit into `room` bytes, (stages, 3, splits); below 1 where none does.

    `held` says where in `found` each split stands.
    """
    free = np.maximum(room - (found.states + found.buffers)[:, held], 0.0)
    samples = free[:, None, :] * (1.0 / np.maximum(found.activations, 1e-9))[:, held]
    return np.floor(samples, out=samples)
