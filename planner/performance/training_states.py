"""Memory of a job's parameters: weights, gradients and optimizer state, by precision and method."""

from dataclasses import dataclass

import numpy as np

from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.job import MOMENT_BYTES, Training
from gpuplan.planner.performance.estimator_request import Floats
from gpuplan.planner.workload.step_work import Work
from gpuplan.planner.workload.training_methods import is_fused

GIB = float(1 << 30)
_FULL_PRECISIONS = ("fp32", "tf32")


def offloaded_gib(work: Work, training: Training) -> float:
    """GiB offloaded to hosts: optimizer states, and under `parameters` all weights; 0 without offloading.

    If the precision is `auto`, weights count at 16 bit, the least that they take. Memory that the user states is not
    offloaded.
    """
    if training.offload == "none" or work.fixed_state_gib is not None:
        return 0.0
    element = 4.0 if training.precision in _FULL_PRECISIONS else 2.0
    moments = MOMENT_BYTES[training.optimizer]
    if training.states == "pure_bf16":
        optimizer = moments if element > 2 else moments / 2
    else:
        optimizer = moments if element > 2 else moments + 4.0
    moved = work.trainable_parameters * optimizer
    if training.offload == "parameters":
        moved += work.trainable_parameters * element + work.frozen_parameter_bytes
    return moved / GIB


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterBytes:
    """Bytes per trained parameter, per machine row: `weights`, `gradients`, and `optimizer` (master copy, moments).

    `copies` are the weights that autocast casts to 16 bit once per step and caches.
    """

    weights: Floats
    gradients: Floats
    optimizer: Floats
    copies: Floats


def parameter_bytes(training: Training, element_bytes: Floats) -> ParameterBytes:
    """Bytes per trained parameter if activations have `element_bytes` (4: fp32, else 16-bit training).

    Mixed precision with Adam is 2 + 2 + 12 (Rajbhandari 2020, section 3.1). Plain software stores weights and gradients
    in 32 bit, which is the same sum, and the cast weights in addition (PyTorch's autocast caches them). Under
    `fp32_gradients` they are summed in 32 bit (Megatron-LM with bf16). `pure_bf16` has no fp32 master copy and 16-bit moments. Raises `UnusableInput` at training.optimizer for an unknown optimizer.
    """
    moments = MOMENT_BYTES.get(training.optimizer)
    if moments is None:
        accepted = ", ".join(MOMENT_BYTES)
        raise UnusableInput.at("training", "optimizer", message=f"{training.optimizer!r} is not one of {accepted}")
    if training.states == "pure_bf16":
        optimizer = np.where(element_bytes > 2, moments, moments / 2)
    else:
        optimizer = np.where(element_bytes > 2, moments, moments + 4.0)
    casts = training.states != "pure_bf16" and not is_fused(training)
    copies = np.where(element_bytes > 2, 0.0, element_bytes if casts else 0.0)
    gradients = np.full_like(element_bytes, 4.0) if training.states == "fp32_gradients" else element_bytes
    return ParameterBytes(weights=element_bytes, gradients=gradients, optimizer=optimizer, copies=copies)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Parameters of a job by how a layout can split them.

    `body` is in equal blocks that pipelines and tensor parallelism split. `ends` (embedding and logits) are on the first
    and last stage of a pipeline. Expert parallelism splits `experts` as well. These three count trained parameters;
    `frozen_bytes` and `frozen_expert_bytes` are the bytes of frozen ones outside and inside experts.
    """

    body: float
    ends: float
    experts: float
    frozen_bytes: float
    frozen_expert_bytes: float
    layers: int


def parts_of(work: Work) -> Parts:
    """The parameters of `work` by part; a model without blocks is one layer of `body`."""
    shape = work.shape
    if shape is None:
        frozen = work.frozen_parameter_bytes
        trained = work.trainable_parameters
        return Parts(body=trained, ends=0.0, experts=0.0, frozen_bytes=frozen, frozen_expert_bytes=0.0, layers=1)
    matrices = 3 if shape.gated_mlp else 2
    experts = float(shape.moe_layers * shape.experts * matrices * shape.hidden_size * shape.expert_ffn_size)
    head = float(shape.vocabulary_size * shape.hidden_size) if work.head_flops_per_unit > 0 else 0.0
    ends = min(max(work.embedding_parameters, head), max(0.0, work.parameters - experts) / 2)
    adapters = work.trainable_parameters if work.frozen_parameter_bytes > 0 else 0.0
    expert_share = min(1.0, experts / (work.parameters - adapters)) if work.parameters > adapters else 0.0
    if work.frozen_parameter_bytes > 0:
        frozen_experts = work.frozen_parameter_bytes * expert_share
        return Parts(
            body=work.trainable_parameters - work.expert_adapter_parameters,
            ends=0.0,
            experts=work.expert_adapter_parameters,
            frozen_bytes=work.frozen_parameter_bytes - frozen_experts,
            frozen_expert_bytes=frozen_experts,
            layers=shape.layers,
        )
    trained = work.trainable_parameters
    body = max(0.0, trained * (1 - expert_share) - ends)
    return Parts(
        body=body,
        ends=ends,
        experts=trained * expert_share,
        frozen_bytes=work.reference_parameter_bytes * (1 - expert_share),
        frozen_expert_bytes=work.reference_parameter_bytes * expert_share,
        layers=shape.layers,
    )
