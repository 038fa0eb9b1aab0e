"""Workloads and machines shared by the estimator's tests."""

from dataclasses import replace

import numpy as np

from gpuplan.catalog.model.accelerators import Accelerator, accelerators
from gpuplan.planner.performance.estimator_request import Machines
from gpuplan.planner.workload.step_work import TransformerShape, Work


def llama_8b(*, sequence: int = 8192, batch: float = 512.0, trained: float = 1.0) -> Work:
    """Llama 3 8B by the formulas: 6 N per token, 6 L h s of causal attention, 6 V h for the head."""
    layers, hidden, vocabulary = 32, 4096, 128256
    parameters, embedding = 8.03e9, 128256 * 4096.0
    shape = TransformerShape(
        layers=layers,
        hidden_size=hidden,
        ffn_size=14336,
        attention_heads=32,
        kv_heads=8,
        head_size=128,
        vocabulary_size=vocabulary,
        sequence_length=sequence,
        gated_mlp=True,
        causal=True,
    )
    saved = 34.0 * sequence * hidden * layers
    adapters = trained < 1
    return Work(
        task="language",
        name="llama",
        unit="tokens",
        units_total=1e9,
        units_per_step=batch * sequence,
        units_per_sample=float(sequence),
        parameters=parameters,
        active_parameters=parameters,
        trainable_parameters=parameters * trained,
        embedding_parameters=embedding,
        linear_flops_per_unit=(4.0 if adapters else 6.0) * (parameters - 2 * embedding),
        attention_flops_per_unit=6.0 * layers * hidden * sequence,
        head_flops_per_unit=6.0 * embedding,
        vector_bytes_per_unit=60.0 * layers * hidden,
        activation_bytes_per_sample=(saved, saved * 0.8, 2.0 * sequence * hidden * layers + saved / layers),
        logits_bytes_per_sample=6.0 * sequence * vocabulary,
        frozen_parameter_bytes=2 * parameters if adapters else 0.0,
        shape=shape,
    )


def resnet(*, batch: float = 1024.0) -> Work:
    """ResNet-50 at 224: 4.1 GMAC forward, 25.6 M parameters."""
    return Work(
        task="convolutional",
        name="resnet",
        unit="samples",
        units_total=1e6,
        units_per_step=batch,
        units_per_sample=1.0,
        parameters=25.6e6,
        active_parameters=25.6e6,
        trainable_parameters=25.6e6,
        embedding_parameters=0.0,
        linear_flops_per_unit=24.6e9,
        attention_flops_per_unit=0.0,
        head_flops_per_unit=0.0,
        vector_bytes_per_unit=4.5e8,
        activation_bytes_per_sample=(9e7, 9e7, 3e7),
        logits_bytes_per_sample=4000.0,
    )


def explicit_work(*, flops: float = 1e18, memory_gib: float = 100.0, least_gib: float = 1.0) -> Work:
    """A job of which the user knows FLOPs and memory."""
    return Work(
        task="explicit",
        name="explicit",
        unit="steps",
        units_total=1000.0,
        units_per_step=1.0,
        units_per_sample=1.0,
        parameters=1e9,
        active_parameters=1e9,
        trainable_parameters=1e9,
        embedding_parameters=0.0,
        linear_flops_per_unit=flops / 1000,
        attention_flops_per_unit=0.0,
        head_flops_per_unit=0.0,
        vector_bytes_per_unit=1e12,
        activation_bytes_per_sample=(0.0, 0.0, 0.0),
        logits_bytes_per_sample=0.0,
        fixed_state_gib=memory_gib,
        min_memory_gib_per_accelerator=least_gib,
    )


def chip(name: str = "H100-80GB-SXM", **changed: object) -> Accelerator:
    """An accelerator of the table, with fields changed."""
    return replace(accelerators()[name], **changed)  # type: ignore[arg-type]


def cluster(
    *chips: Accelerator,
    devices: int = 8,
    nodes: int = 1,
    fabric_gbps: float = float("nan"),
    memory_mib: float | None = None,
    fraction: float = 1.0,
    clusters: bool = True,
) -> Machines:
    """One row per chip, all of the same shape."""
    count = len(chips)
    return Machines(
        accelerators=chips,
        accelerator=np.arange(count),
        devices=np.full(count, devices),
        fraction=np.full(count, fraction),
        device_memory_mib=np.array([memory_mib or float(one.device_memory_mib) for one in chips]),
        intranode_gbs=np.full(count, np.nan),
        scaleup_domain=np.array([max(devices, one.link_domain) for one in chips]),
        internode_gbps=np.full(count, fabric_gbps),
        clusters=np.full(count, clusters),
        nodes=np.full(count, nodes),
    )
