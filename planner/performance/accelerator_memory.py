"""Device memory of every candidate split: states by ZeRO stage, activations by checkpointing, the largest micro-batch.

Memory is states(stage) + buffers(stage) + micro_batch x activations(checkpointing). It is monotone in each choice, so
one division gives the largest micro-batch per (stage, checkpointing). A choice that saves memory without allowing a
larger micro-batch is dropped without timing it.
"""

from dataclasses import dataclass

import numpy as np

from gpuplan.planner.performance.cluster_rates import GIB
from gpuplan.planner.performance.estimator_request import CHECKPOINTING, Floats, Ints
from gpuplan.planner.performance.layout_question import Question
from gpuplan.planner.performance.layout_splits import Splits
from gpuplan.planner.performance.training_states import ParameterBytes, Parts, parameter_bytes, parts_of
from gpuplan.planner.workload.step_work import TransformerShape, Work
from gpuplan.planner.workload.training_methods import kernels_of, method_of

#: Activation memory that the caching allocator reserves, per byte allocated at the peak, by software; 1 for the others:
#: llm-foundry's fullest runs (which fitted) leave room for at most 1 %, and LitGPT's reserved and allocated peaks of the same
#: model agree within 2 % per token. Plain software fragments memory with many short-lived tensors. Its value is a
#: judgement below the 1.8 of `python -m tools.fitting.memory_facts --fit`, whose peaks are closer (6.7 instead of 6.9 % off), but
#: which refuses more of the runs that fitted (97.0 instead of 97.2 % called).
FRAGMENTATION = {"plain": 1.6}
#: Communication buffers of one process in a group of several, GiB (NCCL channels, staging of gradients): assumed.
GROUP_BUFFERS_GIB = 0.5
#: Units of a sharded model whose weights are gathered at the same time: the current and the prefetched one (FSDP).
GATHERED_UNITS = 2
#: Inputs of one block that tensor parallelism gathers: those of the attention's and the feed-forward's first matmul.
GATHERED_INPUTS = 2.0
#: A 4-bit matmul writes its weights out at 16 bit before it multiplies (bitsandbytes, MatMul4Bit).
DEQUANTISED_BYTES = 2.0
#: Share of a device's memory that a predicted peak must leave free. With it, the prediction is right for 96 % of the
#: measured runs that fitted and 79 % of those that did not, sizes next to measured peaks included
#: (`python -m tools.fitting.memory_facts`). Memory that the user states has no margin.
MARGIN = 0.04
STAGES = (1, 2, 3)
#: Activations with low-rank adapters over those without, in models that are not counted block by block.
ADAPTER_ACTIVATIONS = 1.4


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """Bytes per device of every split; the first axis of `states` and `buffers` is the ZeRO stage in `stages`.

    `activations` (first axis: checkpointing, logits included) are per sample of the micro-batch. `share` is the part of
    the blocks on the fullest pipeline stage.
    `dense` and `expert_parameters` count the trained parameters on one device before data-parallel sharding, `frozen`
    and `frozen_experts` the bytes of frozen ones. Ranks of an expert group hold different experts, so data-parallel
    sharding divides experts by ranks / expert only.
    """

    stages: tuple[int, ...]
    states: Floats
    buffers: Floats
    activations: Floats
    share: Floats
    dense: Floats
    expert_parameters: Floats
    frozen: Floats
    frozen_experts: Floats

    def peak(self, stage: Ints, checkpointing: Ints, split: Ints, micro_batch: Floats) -> Floats:
        """Bytes that the allocator reserves at the peak, without the process context."""
        states = self.states[stage, split] + self.buffers[stage, split]
        return states + micro_batch * self.activations[checkpointing, split]


def room_bytes(question: Question) -> Floats:
    """Bytes that each row has for states, buffers and activations: capacity less the margin and the context."""
    margin = MARGIN if question.work.fixed_state_gib is None else 0.0
    return question.clusters.capacity_bytes * (1.0 - margin) - question.clusters.context_bytes


def stage_share(layers: int, pipeline: Floats) -> Floats:
    """Share of the blocks on the fullest pipeline stage (blocks do not split)."""
    return np.asarray(np.ceil(layers / pipeline) / layers)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unsharded:
    """Per split: parameters and bytes per parameter on one device before sharding over `ranks`."""

    per: ParameterBytes
    dense: Floats
    expert: Floats
    frozen: Floats
    frozen_experts: Floats
    ranks: Floats


def footprint(question: Question, splits: Splits, element_bytes: Floats, in_flight: Floats) -> Footprint:
    """The memory of `splits`. An activation has `element_bytes`; the first pipeline stage holds `in_flight` micro-batches.

    States follow Rajbhandari 2020 (ZeRO-1/2/3 shard optimizer, gradients, weights over data x context). Activations and
    logits are those counted in the work, split by tensor (with sequence parallelism) and context.
    Raises `UnusableInput` for an unknown optimizer.
    """
    work, request = question.work, question.request
    if work.fixed_state_gib is not None:
        return _explicit(question, splits)
    parts = parts_of(work)
    share = stage_share(question.layers, splits.pipeline)
    unsharded = _Unsharded(
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
        states=np.stack([_states(stage, question.training.offload, unsharded, splits) for stage in stages])
        + _tables(work, splits),
        buffers=_buffers(question, stages, parts, unsharded, splits),
        activations=_activations(question, element_bytes, splits, share * in_flight, in_flight),
        share=share,
        dense=unsharded.dense,
        expert_parameters=unsharded.expert,
        frozen=unsharded.frozen,
        frozen_experts=unsharded.frozen_experts,
    )


def _states(stage: int, offload: str, unsharded: _Unsharded, splits: Splits) -> Floats:
    """Bytes of weights, gradients and optimizer state on one device, less those offloaded to the host.

    An optimizer on the host receives each gradient as soon as it is computed (Ren 2021, ZeRO-Offload, section 4.1).
    """
    weights = 0.0 if offload == "parameters" else 1.0
    optimizer, gradients = (unsharded.per.optimizer, unsharded.per.gradients) if offload == "none" else (0.0, 0.0)
    shards = 1.0 / unsharded.ranks
    total = unsharded.frozen + unsharded.frozen_experts
    if stage >= 3:
        # The ranks of an expert group already hold different experts, so only its replicas are left to shard over.
        total = (unsharded.frozen + unsharded.frozen_experts * splits.expert) * (shards * weights)
    for size, part in ((unsharded.dense, shards), (unsharded.expert, splits.expert * shards)):
        per = unsharded.per.weights * (part * weights) if stage >= 3 else unsharded.per.weights
        per = (
            per + (gradients * part if stage >= 2 else gradients) + unsharded.per.copies * (part if stage >= 3 else 1.0)
        )
        total = total + size * (per + (optimizer * part if stage >= 1 else optimizer))
        if not unsharded.expert.any():
            break
    return total


def _tables(work: Work, splits: Splits) -> Floats:
    """Bytes of embedding tables, sharded over all devices: fp32 rows under plain SGD, as in DLRM's reference code."""
    return 4.0 * work.table_parameters / (splits.data * splits.tensor * splits.pipeline * splits.context)


def _buffers(
    question: Question, stages: tuple[int, ...], parts: Parts, unsharded: _Unsharded, splits: Splits
) -> Floats:
    """Bytes of communication buffers, and for ZeRO-3 of the gathered weights and gradients of a few blocks.

    Offloaded weights also pass through the device a few blocks at a time. 4-bit weights are unpacked to 16 bit block by
    block, and a copy of the head is multiplied with.
    """
    group = np.where(unsharded.ranks * splits.tensor * splits.pipeline > 1, GROUP_BUFFERS_GIB * GIB, 0.0)
    block = (parts.body / parts.layers + parts.experts / parts.layers / splits.expert) / splits.tensor
    ends = parts.ends / splits.tensor * (unsharded.per.weights + unsharded.per.gradients)
    trained = block * (GATHERED_UNITS * unsharded.per.weights + unsharded.per.gradients) + ends
    frozen = (parts.frozen_bytes + parts.frozen_expert_bytes / splits.expert) / splits.tensor
    passing = trained + GATHERED_UNITS / parts.layers * frozen
    offload = question.training.offload
    always = group + _dequantised(question) / splits.tensor
    if offload == "optimizer":
        always = always + block * unsharded.per.gradients
    gathered = passing if offload == "parameters" else np.where(unsharded.ranks > 1, passing, 0.0)
    return np.stack([always + gathered if stage >= 3 else always for stage in stages])


def _dequantised(question: Question) -> float:
    """Bytes of one block and the head at 16 bit where matmuls unpack 4-bit weights, else 0.

    A loss that is computed by parts of the tokens multiplies them with the head as it is held.
    """
    work = question.work
    if work.shape is None or not method_of(question.training).quantised:
        return 0.0
    head = float(work.shape.vocabulary_size * work.shape.hidden_size)
    copied = head if work.logits_bytes_per_sample else 0.0
    body = work.parameters - work.trainable_parameters - work.embedding_parameters - head
    return DEQUANTISED_BYTES * (max(0.0, body) / work.shape.layers + copied)


def _activations(
    question: Question, element_bytes: Floats, splits: Splits, first_stage: Floats, in_flight: Floats
) -> Floats:
    """Bytes of activations per sample, (3, splits): inf where the request excludes that checkpointing.

    The first pipeline stage holds its blocks for all micro-batches in flight, the last stage its own blocks and the
    logits. Full checkpointing includes the one block that is being recomputed, after the logits are gone.
    """
    work = question.work
    none, selective, full = work.activation_bytes_per_sample
    recomputed = work.working_set_bytes_per_sample or min(none / question.layers, full)
    stored = np.array([none, selective, full - recomputed])[:, None] * first_stage
    logits = work.logits_bytes_per_sample
    # The backward pass starts with the logits, which are gone when the first block has its gradients.
    again = max(work.gradient_bytes_per_sample, recomputed - selective / question.layers)
    blocks = np.array([[work.gradient_bytes_per_sample], [again if work.selective_recomputed_share else 0.0]])
    first = np.maximum(logits, blocks)
    if splits.pipeline.max(initial=1.0) > 1:
        last = np.where(splits.pipeline > 1, stored / in_flight, stored)
        last[:2] += first
        last[2] += max(recomputed, logits)
        stored[:2] += blocks
        stored[2] += recomputed
        stored = np.where(splits.pipeline > 1, np.maximum(stored, last), last)
    else:
        stored[:2] += first
        stored[2] += max(recomputed, logits)
    extra = ADAPTER_ACTIVATIONS if work.shape is None and method_of(question.training).adapters else 1.0
    extra *= FRAGMENTATION.get(kernels_of(question.training), 1.0)
    stored *= element_bytes * (extra / 2) / (splits.tensor * splits.context)
    if work.shape is not None and splits.tensor.max(initial=1.0) > 1:
        stored += _unsplit(question, work.shape, splits, first_stage) * element_bytes
    asked = question.request.checkpointing
    if asked is not None:
        stored[[kind for kind, name in enumerate(CHECKPOINTING) if name != asked]] = np.inf
    return stored


def _unsplit(question: Question, shape: TransformerShape, splits: Splits, first_stage: Floats) -> Floats:
    """Elements per sample that tensor parallelism leaves whole, less their part counted as split, (3, splits).

    With sequence parallelism (Korthikanti 2022) the inputs of the column-parallel matmuls of one block are gathered while
    it runs. Without it (`plain` software), every rank holds the whole norms and residuals of each block: 5 of the elements
    that are saved, or the input alone under full checkpointing.
    """
    hidden = float(shape.hidden_size * shape.sequence_length) / splits.context
    whole = hidden * (1.0 - 1.0 / splits.tensor)
    gathered = GATHERED_INPUTS * whole
    if kernels_of(question.training) != "plain":
        return np.stack([gathered] * 3)
    blocks = question.layers * first_stage
    return np.stack([gathered + whole * blocks * count for count in (5.0, 5.0, 1.0)])


def _explicit(question: Question, splits: Splits) -> Footprint:
    """The memory that the user states: whole on each device, or sharded down to the stated minimum per device."""
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
        share=stage_share(question.layers, splits.pipeline),
        dense=np.full(count, work.trainable_parameters),
        expert_parameters=np.zeros(count),
        frozen=np.zeros(count),
        frozen_experts=np.zeros(count),
    )


def largest_micro_batch(footprint: Footprint, footprint_index: Ints, room: Floats) -> Floats:
    """Samples per micro-batch that fit into `room` bytes, (stages, 3, splits); below 1 where none fits.

    `footprint_index` is the element of `footprint` for each split.
    """
    free = np.maximum(room - (footprint.states + footprint.buffers)[:, footprint_index], 0.0)
    samples = free[:, None, :] * (1.0 / np.maximum(footprint.activations, 1e-9))[:, footprint_index]
    return np.floor(samples, out=samples)
