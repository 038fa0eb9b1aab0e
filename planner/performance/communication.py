"""Seconds of communication that compute does not hide, by ring formulas over the fast link and the fabric.

A ring all-gather or reduce-scatter of V bytes over n ranks moves (n-1)/n V per rank, an all-reduce twice that
(Patarasu 2009). Between nodes, the group's ranks in one node share the traffic, each over its part of the node's NICs.
Charging one rank's NIC alone would be wrong by a factor of the ranks per node.
"""

from dataclasses import dataclass

import numpy as np

from gpuplan.planner.model.job import Training
from gpuplan.planner.performance.estimator_request import Floats
from gpuplan.planner.performance.fitted_constants import value
from gpuplan.planner.performance.layout_columns import Gathered
from gpuplan.planner.performance.software_stacks import stack_of
from gpuplan.planner.workload.step_work import TransformerShape, Work


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Exposed seconds per step: `in_stage` delays every pipeline stage, `rest` is added once per step."""

    in_stage: Floats
    rest: Floats


def traffic(
    work: Work, training: Training, at: Gathered, busy: Floats, *, matmul: Floats, attention: Floats
) -> Traffic:
    """Exposed traffic of the candidates `at`, which compute for `busy` seconds: `matmul` and `attention` of them in those."""
    rest = _data_parallel(work, at, busy)
    rest += busy * (value("straggler") * at.log2_domains)
    in_stage = np.zeros(len(busy))
    shape = work.shape
    if work.exchanged_bytes_per_unit:
        in_stage += _lookups(work, at)
    if shape is None:
        return Traffic(in_stage=in_stage, rest=rest)
    sequences = work.units_per_sample if work.units_per_sample > 1 else shape.sequence_length
    tokens = at.local * sequences / at.context
    bytes_per_token = at.element_bytes * shape.hidden_size * tokens * at.share
    if at.tensor.max(initial=1.0) > 1:
        in_stage += _tensor(training, at, shape.layers * bytes_per_token, matmul)
    if at.context.max(initial=1.0) > 1:
        in_stage += _context(shape.layers * 2.0 * shape.kv_heads * shape.head_size, at, tokens, attention)
    if at.expert.max(initial=1.0) > 1:
        deduplicate = stack_of(training).once_per_node
        copies = bytes_per_token * (shape.moe_layers * _routed_share(shape))
        in_stage += _experts(shape, at, copies, busy, deduplicate=deduplicate)
    if at.pipeline.max(initial=1.0) > 1:
        rest += _pipeline(at, at.element_bytes * shape.hidden_size * tokens)
    return Traffic(in_stage=in_stage, rest=rest)


def _routed_share(shape: TransformerShape) -> float:
    """Width of the copies of a token that go to experts, over that of the model."""
    return shape.routed_size / shape.hidden_size if shape.routed_size else 1.0


def _rate(at: Gathered, ranks: Floats) -> Floats:
    """Bytes/s of a rank in a group of `ranks` neighbours: the fast link if it connects them all, else its NIC share."""
    return np.where(ranks <= at.domain, at.peer_rate, at.fabric_rate)


def _ring_seconds_per_byte(at: Gathered, ranks: Floats) -> Floats:
    """Seconds per byte of one all-gather or reduce-scatter over `ranks`, on the slower of link and fabric."""
    local = np.minimum(np.maximum(1.0, np.floor(at.domain / at.tensor)), ranks)
    spans = ranks / local
    peer = (local - 1.0) / local / at.peer_rate
    with np.errstate(divide="ignore", invalid="ignore"):
        fabric = (spans - 1.0) / spans / (local * at.fabric_rate)
    slowest: Floats = np.maximum(peer, np.where(spans > 1.0, fabric, 0.0))
    return slowest


def _data_parallel(work: Work, at: Gathered, busy: Floats) -> Floats:
    """Exposed seconds of the traffic over data x context ranks: gradients, and weights under ZeRO-3.

    Stages 0 and 1 move 2 V of gradients once per step. Stage 2 reduces them per micro-batch. Stage 3 gathers weights
    twice and reduces gradients per micro-batch (Rajbhandari 2020, section 7).
    """
    ranks = at.data * at.context
    gradients = at.element_bytes * at.dense
    third = at.stage >= 3
    second = at.stage == 2
    rounds = np.where(third | second, at.micro_batches, 1.0)
    gathers = np.where(third, 2.0 * at.micro_batches, 1.0)
    per_byte = _ring_seconds_per_byte(at, ranks)
    volume = gradients * (rounds + gathers) + np.where(third, gathers * at.frozen, 0.0)
    moving = volume * per_byte
    if at.expert_parameters.any() or at.frozen_experts.any():
        replicas = np.maximum(1.0, ranks / at.expert)
        spread = at.element_bytes * at.expert_parameters * (rounds + gathers)
        spread += np.where(third, gathers * at.frozen_experts, 0.0)
        moving += spread * np.where(replicas > 1, (replicas - 1) / replicas, 0.0) * _expert_per_byte(at, replicas)
    layers = work.shape.layers if work.shape else 10.0
    calls = np.where(third, 3.0 * at.micro_batches * layers * at.share, 4.0)
    moving += calls * value("hop_seconds") * _log2(ranks)
    window = value("overlap") * busy / np.where(third | second, 1.0, at.micro_batches)
    exposed: Floats = np.maximum(0.0, moving - window) + value("hidden_tax") * np.minimum(moving, window)
    return exposed


def _log2(ways: Floats) -> Floats:
    """Base-2 logarithm of whole numbers >= 1; computed once per distinct number, since they repeat."""
    return np.log2(np.arange(1.0, ways.max(initial=1.0) + 1.0)).take(ways.astype(np.int64) - 1)


def _expert_per_byte(at: Gathered, replicas: Floats) -> Floats:
    """Seconds per byte between expert replicas, `expert` ranks apart: on the fast link if it connects the whole group."""
    return np.asarray(1.0 / _rate(at, replicas * at.expert * at.tensor), dtype=np.float64)


def _tensor(training: Training, at: Gathered, activation_bytes: Floats, matmul: Floats) -> Floats:
    """Exposed seconds of tensor parallelism: four activation all-reduces per block and step, six with recomputation.

    Source: Korthikanti 2022. Asynchronous collectives move one rank's part at a time while the matmul of the part before
    it runs, so the first part waits, and what the matmuls are too short for (Wang 2023, section 5).
    """
    moving = 8.0 * (1.0 + 0.5 * at.full) * activation_bytes * (at.tensor - 1.0) / at.tensor / _rate(at, at.tensor)
    overlap = training.tensor_overlap
    if overlap == "none":
        return moving
    if overlap == "auto":
        return value("tensor_exposed") * moving
    behind = np.minimum(moving * (1.0 - 1.0 / at.tensor), matmul)
    return moving - behind * (1.0 - value("hidden_tax"))


def _context(width: float, at: Gathered, tokens: Floats, attention: Floats) -> Floats:
    """Seconds of context parallelism: keys and values go round the ring once forward and, with gradients, twice backward.

    Source: Liu 2023.
    """
    volume = 3.0 * width * at.element_bytes * at.share * tokens * (at.context - 1.0) / at.tensor
    moving = volume / _rate(at, at.tensor * at.context)
    return np.maximum(0.0, moving - value("overlap") * attention)


def _experts(
    shape: TransformerShape, at: Gathered, bytes_per_copy: Floats, busy: Floats, *, deduplicate: bool
) -> Floats:
    """Exposed seconds to dispatch each token to its experts and combine the results, forward and backward (Lepikhin 2020).

    Copies for experts on other nodes cross the fabric and then the fast link, like all others. Interleaved pipelines hold
    several micro-batches: they exchange the tokens of one while they compute another (DeepSeek-AI 2024, section 3.2.1;
    Megatron Core's overlap of expert communication needs virtual stages, too).
    """
    volume = 4.0 * bytes_per_copy / at.tensor
    near = np.clip(np.floor(at.domain / at.tensor), 1.0, at.expert)
    within = shape.active_experts * volume * (near - 1.0) / near / at.peer_rate
    copies = copies_across_nodes(at.expert / near, shape.active_experts, deduplicate=deduplicate)
    across = copies * volume / at.fabric_rate
    moving = within + np.where(near < at.expert, across, 0.0)
    hidden = np.minimum(moving, busy)
    overlapped = moving - hidden * (1.0 - value("hidden_tax"))
    return np.where(at.interleave > 1.0, overlapped, value("expert_exposed") * moving)


def copies_across_nodes(nodes: Floats, active: float, *, deduplicate: bool) -> Floats:
    """Mean copies of a token that leave its node, if its `active` experts lie anywhere on `nodes` nodes.

    If they `deduplicate`, each node that has one or more of them gets one copy (DeepSeek 2024).
    """
    elsewhere = 1.0 - 1.0 / nodes
    return (nodes - 1.0) * (1.0 - elsewhere**active) if deduplicate else active * elsewhere


def _lookups(work: Work, at: Gathered) -> Floats:
    """Seconds to exchange rows of sharded embedding tables and their gradients among all devices.

    Source: Naumov 2019, section 3.3.
    """
    volume = at.local * work.units_per_sample * work.exchanged_bytes_per_unit * (at.gpus - 1.0) / at.gpus
    return value("lookup_exposed") * volume / _rate(at, at.gpus)


def _pipeline(at: Gathered, bytes_per_stage: Floats) -> Floats:
    """Seconds to send activations and their gradients between pipeline stages, once per interleaved chunk."""
    volume = np.where(at.pipeline > 1, 2.0 * at.interleave * bytes_per_stage / at.tensor, 0.0)
    return value("pipeline_exposed") * volume / _rate(at, at.gpus)
