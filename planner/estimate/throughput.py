"""Seconds per optimizer step of every candidate, by cause.

T = T_matmul + T_attention + T_memory + T_communication + T_bubble + T_optimizer, where data-parallel traffic
hides behind compute up to a share of it. All times are of one device, the slowest: per step it works
on `local` samples, 1 / (tensor x context) of each and its pipeline stage's share of the blocks.
"""

from dataclasses import dataclass

import numpy as np

from planner.estimate import stacks
from planner.estimate.columns import Gathered
from planner.estimate.communication import traffic
from planner.estimate.constants import value
from planner.estimate.machines import Floats
from planner.estimate.states import parameter_bytes
from planner.job import Training
from planner.workload.work import Work

#: Forward share of the FLOPs of a step: 1/3 when all weights are trained, 1/2 when the base is frozen
#: (no weight gradients); recomputation adds it once more.
FORWARD = {"full": 1 / 3}
FORWARD_FROZEN = 1 / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Compute:
    """Seconds of one device per step, without communication."""

    matmul: Floats
    attention: Floats
    memory_bound: Floats


def compute(work: Work, training: Training, at: Gathered) -> Compute:
    """Matmul, attention and memory-bound seconds.

    Blocks of known shape run one after the other, so their times add; of other models only totals
    are known: a roofline (Williams 2009), smoothed since some layers are bound by compute and some by memory. Never
    faster than the host can launch kernels, nor than a recurrence can step.
    """
    stack, share = stacks.stack_of(training), stacks.share_of(work)
    forward = FORWARD.get(training.method, FORWARD_FROZEN)
    units = at.local * work.units_per_sample / (at.tensor * at.context)
    here = units * at.share
    again = 1.0 + forward * at.full
    shapely = work.shape is not None
    rate = at.linear_rate * (share.matmul * stack.matmul)
    if shapely:
        rate = rate * _size_share(work, at)
    matmul = here * again * work.linear_flops_per_unit / rate
    if work.head_flops_per_unit:
        head_rate = at.wide_rate * (share.matmul * stack.matmul)
        matmul += units * work.head_flops_per_unit / (head_rate * at.pipeline)
    attention_rate = at.attention_rate * stack.attention
    attention = here * (1.0 + at.some / 3.0) * work.attention_flops_per_unit / attention_rate
    moved = here * (1.0 + at.full / 3.0) * (at.element_bytes * (work.vector_bytes_per_unit / 2.0))
    if work.bytes_per_pass:
        moved = moved + at.micro_batches * (1.0 + at.full / 3.0) * (at.element_bytes * (work.bytes_per_pass / 2.0))
    memory = moved / (at.memory_rate * (share.bandwidth * stack.vector))
    if not shapely:
        busy, norm = matmul + attention, value("roofline_norm")
        memory = (busy**norm + memory**norm) ** (1.0 / norm) - busy
    kernels = work.shape.layers * stack.kernels_per_layer if work.shape else work.kernels or value("kernels_unknown")
    launches = at.micro_batches * at.share * (1.0 + forward * at.full) * (kernels * value("kernel_seconds"))
    if work.fixed_state_gib is None:
        memory += np.maximum(0.0, launches - (matmul + attention + memory))
    if work.sequential_steps > 1:
        step = work.sequential_steps * value("recurrence_passes") * value("recurrence_seconds")
        memory += at.micro_batches * step
    return Compute(matmul=matmul, attention=attention, memory_bound=memory)


def _size_share(work: Work, at: Gathered) -> Floats:
    """How far matmuls of this hidden size, thinned by tensor parallelism, and this many rows fill the chip."""
    hidden = work.shape.hidden_size if work.shape else 1.0
    rows = at.micro_batch * work.units_per_sample / at.context
    if work.units_per_sample <= 1 and work.shape is not None:
        rows = rows * work.shape.sequence_length
    thin = 1.0 + (value("half_size") / hidden) * at.tensor ** value("tensor_thinning")
    return 1.0 / (thin * (1.0 + value("half_tokens") / rows))


def optimizer_seconds(training: Training, at: Gathered) -> Floats:
    """Reading and writing the states of the parameters that this device updates, and host traffic of offload."""
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


TERMS = ("matmul", "attention", "memory_bound", "communication", "bubble", "optimizer", "data")


def seconds(work: Work, training: Training, at: Gathered) -> dict[str, Floats]:
    """Seconds per step of the job by cause; their sum is the step."""
    busy = compute(work, training, at)
    total = busy.matmul + busy.attention + busy.memory_bound
    moved = traffic(work, at, total, busy.attention)
    bubble = (at.pipeline - 1.0) / (at.interleave * at.micro_batches) * (total + moved.in_stage)
    optimizer = optimizer_seconds(training, at)
    return {
        "matmul": busy.matmul * at.scale,
        "attention": busy.attention * at.scale,
        "memory_bound": busy.memory_bound * at.scale,
        "communication": (moved.in_stage + moved.rest) * at.scale,
        "bubble": bubble * at.scale,
        "optimizer": optimizer * at.scale,
        "data": np.zeros(len(at.local)),
    }
