"""What the parameters of a job take in memory: weights, gradients, optimizer state, by precision and method."""

from dataclasses import dataclass

import numpy as np

from catalog.errors import UnusableInput
from planner.estimate.machines import Floats
from planner.job import Training
from planner.workload.methods import is_fused
from planner.workload.work import Work

#: fp32 moments that an optimizer keeps per trained parameter, bytes. Adam and LAMB two of them (Kingma 2015,
#: You 2020), Lion one (Chen 2023), SGD its momentum, 8-bit Adam two of one byte (Dettmers 2022);
#: Adafactor's factors are one value per row and column (Shazeer 2018).
MOMENT_BYTES: dict[str, float] = {
    "adamw": 8.0,
    "adam": 8.0,
    "adamw_8bit": 2.0,
    "adam_8bit": 2.0,
    "adafactor": 0.1,
    "lion": 4.0,
    "lion_8bit": 1.0,
    "lamb": 8.0,
    "lars": 4.0,
    "sgd": 4.0,
    "momentum": 4.0,
    "rmsprop": 4.0,
    "adagrad": 4.0,
    "muon": 4.0,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterBytes:
    """Bytes per trained parameter, per machine row: `weights`, `gradients`, and `optimizer` (master copy, moments).

    `copies` is what autocast keeps besides: weights cast to 16 bit once per step.
    """

    weights: Floats
    gradients: Floats
    optimizer: Floats
    copies: Floats


def parameter_bytes(training: Training, element_bytes: Floats) -> ParameterBytes:
    """Bytes per trained parameter where activations have `element_bytes` (4: fp32, else 16-bit training).

    Mixed precision with Adam is 2 + 2 + 12 (Rajbhandari 2020, section 3.1), and the same sum where plain software keeps
    weights and gradients in 32 bit, which then holds the cast weights as well (PyTorch's autocast caches them);
    `pure_bf16` keeps no fp32 master and 16-bit moments. Raises `UnusableInput` at training.optimizer for an unknown optimizer.
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
    return ParameterBytes(weights=element_bytes, gradients=element_bytes, optimizer=optimizer, copies=copies)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Parameters of a job by where they can live.

    `body` is in equal blocks that pipelines and tensor parallelism split, `ends` (embedding and logits)
    stand at the ends of a pipeline, `experts` are split by expert parallelism too. Each is the trained
    part; `frozen_bytes_share` tells how the frozen bytes fall on (body, ends, experts).
    """

    body: float
    ends: float
    experts: float
    frozen_bytes: float
    frozen_expert_bytes: float
    layers: int


def parts_of(work: Work) -> Parts:
    """The parameters of `work` by place; a model without blocks is all body in one layer."""
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
        frozen_bytes=0.0,
        frozen_expert_bytes=0.0,
        layers=shape.layers,
    )
