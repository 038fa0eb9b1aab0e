"""Seconds per optimizer step of every candidate, by cause.

T = T_matmul + T_attention + T_memory + T_communication + T_bubble + T_optimizer, where a share of compute hides
data-parallel traffic. All times are of the slowest device: per step it processes `local` samples, 1 / (tensor x
context) of each, and its pipeline stage's share of the blocks.
"""

from dataclasses import dataclass

import numpy as np

from gpuplan.planner.model.job import Training
from gpuplan.planner.performance import software_stacks
from gpuplan.planner.performance.communication import traffic
from gpuplan.planner.performance.estimator_request import Floats
from gpuplan.planner.performance.fitted_constants import value
from gpuplan.planner.performance.layout_columns import Gathered
from gpuplan.planner.performance.training_states import parameter_bytes
from gpuplan.planner.workload.step_work import Work

#: Share of a step's FLOPs in the forward pass: 1/3 when all weights are trained, 1/2 when the base is frozen
#: (no weight gradients). Recomputation adds this share once more.
FORWARD = {"full": 1 / 3}
FORWARD_FROZEN = 1 / 2
#: Device memory bandwidth of a V100: `counted_drag` slows chips with more. No slower chip was measured.
_DRAG_BYTES_PER_SECOND = 9e11
#: Kernels of 32-bit convolutions take either memory format.
_FULL_PRECISION_BYTES = 4.0
#: FLOP per byte of device memory of the chip to which `half_size` refers: about that of an A100 (312 TFLOP/s, 2 TB/s).
_USUAL_FLOPS_PER_BYTE = 150.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Compute:
    """Seconds of one device per step, without communication."""

    matmul: Floats
    attention: Floats
    memory_bound: Floats


def compute(work: Work, training: Training, at: Gathered) -> Compute:
    """Matmul, attention and memory-bound seconds of every candidate.

    Blocks of known shape run one after the other, so their times add. Other models have known totals only: their time
    is a roofline (Williams 2009), smoothed because some layers are bound by compute and some by memory. A step is never
    faster than the host can launch kernels or a recurrence can advance.
    """
    stack, share = software_stacks.stack_of(training), software_stacks.share_of(work)
    forward = FORWARD.get(training.method, FORWARD_FROZEN)
    units = at.local * work.units_per_sample / (at.tensor * at.context)
    units_on_stage = units * at.share
    recomputed, scored = 1.0 + (forward * _recomputed_share(work, stack)) * at.full, at.some
    if work.selective_recomputed_share:
        recomputed = recomputed + forward * work.selective_recomputed_share * (at.some - at.full)
        scored = at.full
    has_shape = work.shape is not None
    rate = at.linear_rate * (share.matmul * stack.matmul)
    if has_shape:
        rate = rate * _size_share(work, at)
    matmul = units_on_stage * recomputed * work.linear_flops_per_unit / rate
    if work.head_flops_per_unit:
        head_rate = at.wide_rate * (share.matmul * stack.matmul)
        matmul += units * work.head_flops_per_unit / (head_rate * at.pipeline)
    attention_rate = at.attention_rate * stack.attention
    attention = units_on_stage * (1.0 + scored / 3.0) * work.attention_flops_per_unit / attention_rate
    moved = units_on_stage * (1.0 + at.full / 3.0) * (at.element_bytes * (work.vector_bytes_per_unit / 2.0))
    if stack.unsplit_bytes and work.shape is not None:
        whole = (
            stack.unsplit_bytes * work.shape.layers * work.shape.hidden_size * _positions(work) / work.units_per_sample
        )
        moved = moved + units_on_stage * (1.0 + at.full / 3.0) * (at.element_bytes / 2.0) * (at.tensor - 1.0) * whole
    if work.bytes_per_pass:
        moved = moved + at.micro_batches * (1.0 + at.full / 3.0) * (at.element_bytes * (work.bytes_per_pass / 2.0))
    memory = moved / (at.memory_rate * (share.bandwidth * stack.vector))
    if training.method == "qlora":
        memory = memory + _unpacking_bytes(work, at) / at.memory_rate
    if not has_shape:
        if training.memory_format != "auto":
            memory = memory * np.where(at.element_bytes < _FULL_PRECISION_BYTES, _format_cost(training), 1.0)
        busy, norm = matmul + attention, value("roofline_norm")
        drag = np.maximum(1.0, at.memory_rate / _DRAG_BYTES_PER_SECOND) ** (stack.drag * value("counted_drag"))
        memory = (drag if work.fixed_state_gib is None else 1.0) * (busy**norm + memory**norm) ** (1.0 / norm) - busy
    kernels = work.kernels or value("kernels_unknown")
    if work.shape is not None:
        kernels = work.shape.layers * stack.kernels_per_layer + work.kernels
    launches = at.micro_batches * at.share * (1.0 + forward * at.full) * (kernels * value("kernel_seconds"))
    if work.fixed_state_gib is None:
        computing = matmul + attention + memory
        memory += np.maximum(0.0, launches - computing) + value("launch_tax") * np.minimum(launches, computing)
    if work.sequential_steps > 1:
        step = work.sequential_steps * value("recurrence_passes") * value("recurrence_seconds")
        memory += at.micro_batches * step
    return Compute(matmul=matmul, attention=attention, memory_bound=memory)


def _recomputed_share(work: Work, stack: software_stacks.Stack) -> float:
    """Share of a block's matmuls that full recomputation runs again: a compiler drops the last, whose output no gradient reads.

    Outputs of experts are read by the gradient of their weights in the sum.
    """
    shape = work.shape
    if shape is None or not stack.drops_unread:
        return 1.0
    last = 6.0 * (shape.layers - shape.moe_layers) * shape.hidden_size * shape.ffn_size
    return 1.0 - last * (_positions(work) / work.units_per_sample) / work.linear_flops_per_unit


def _format_cost(training: Training) -> float:
    """Memory traffic of convolutional networks in the stated memory format over that of runs whose format is unknown."""
    ratio = value("channels_first_traffic")
    return float(ratio ** (0.5 if training.memory_format == "channels_first" else -0.5))


def _positions(work: Work) -> float:
    """Tokens of a sample, also where the unit is the sample."""
    if work.units_per_sample > 1 or work.shape is None:
        return work.units_per_sample
    return work.shape.sequence_length


def _unpacking_bytes(work: Work, at: Gathered) -> Floats:
    """Bytes that unpacking 4-bit weights to 16 bit moves per step: they are unpacked for each pass of each micro-batch.

    Embeddings and head stay at 16 bit, as in memory.
    """
    quantised = work.parameters - work.trainable_parameters - work.embedding_parameters
    if work.shape is not None:
        quantised = quantised - work.shape.vocabulary_size * work.shape.hidden_size
    return at.micro_batches * at.share * (value("dequantise_bytes") * quantised) / at.tensor


def _size_share(work: Work, at: Gathered) -> Floats:
    """Share of the matmul rate at this hidden size, tensor parallelism and number of rows."""
    hidden = (work.shape.matmul_width or work.shape.hidden_size) if work.shape else 1.0
    rows = at.micro_batch * _positions(work) / at.context
    # Half of the loss is that of filling the units, half that of moving operands.
    balance = (1.0 + at.linear_rate / at.memory_rate / _USUAL_FLOPS_PER_BYTE) / 2.0
    thin = 1.0 + (value("half_size") / hidden) * at.tensor ** value("tensor_thinning") * balance
    return 1.0 / (thin * (1.0 + value("half_tokens") / rows))


def optimizer_seconds(training: Training, at: Gathered) -> Floats:
    """Seconds to read and write the states of the parameters that this device updates, with host traffic of offloading."""
    per = parameter_bytes(training, at.element_bytes)
    ranks = at.data * at.context
    sharded = at.stage >= 1
    shard = at.dense / np.where(sharded, ranks, 1.0)
    shard = shard + at.expert_parameters / np.where(sharded, ranks / at.expert, 1.0)
    moved = per.weights + per.gradients + 2.0 * per.optimizer
    if training.offload == "none":
        return shard * moved / at.memory_rate
    host = shard * ((per.weights + per.gradients) / at.host_rate + 2.0 * per.optimizer / value("host_memory_rate"))
    if training.offload == "parameters":
        experts = per.weights * at.expert_parameters + at.frozen_experts
        weights = (per.weights * at.dense + at.frozen + experts * at.expert) / ranks
        host = host + at.micro_batches * 2.0 * weights / at.host_rate
    return host


def _checkpoint_seconds(work: Work, at: Gathered, busy: Floats) -> Floats:
    """Exposed seconds of checkpoints to host memory and back, which copy engines move while blocks compute."""
    samples = at.local * at.share / (at.tensor * at.context)
    moved = 2.0 * samples * work.offloaded_bytes_per_sample * (at.element_bytes / 2.0)
    return np.maximum(0.0, moved / at.host_rate - busy)


TERMS = ("matmul", "attention", "memory_bound", "communication", "bubble", "optimizer", "data")


def seconds(work: Work, training: Training, at: Gathered) -> dict[str, Floats]:
    """Seconds per step of the job by cause; their sum is the step time."""
    busy = compute(work, training, at)
    total = busy.matmul + busy.attention + busy.memory_bound
    moved = traffic(work, training, at, total, matmul=busy.matmul, attention=busy.attention)
    checkpoints = _checkpoint_seconds(work, at, total) if work.offloaded_bytes_per_sample else 0.0
    bubble = (at.pipeline - 1.0) / (at.interleave * at.micro_batches) * (total + moved.in_stage)
    optimizer = optimizer_seconds(training, at)
    waits = np.zeros(len(at.local))
    if work.decode_seconds_per_sample:
        # Hosts prepare the next samples meanwhile, so accelerators wait for what takes longer than their own step.
        decoding = at.local * (work.decode_seconds_per_sample / value("host_processors"))
        waits = np.maximum(0.0, decoding - (total + moved.in_stage + moved.rest + checkpoints + bubble + optimizer))
    return {
        "matmul": busy.matmul * at.scale,
        "attention": busy.attention * at.scale,
        "memory_bound": busy.memory_bound * at.scale,
        "communication": (moved.in_stage + moved.rest + checkpoints) * at.scale,
        "bubble": bubble * at.scale,
        "optimizer": optimizer * at.scale,
        "data": waits * at.scale,
    }
