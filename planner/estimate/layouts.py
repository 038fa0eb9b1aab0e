"""Which ways of splitting a model over a cluster are worth timing.

Tensor and context parallelism stay within the devices that share the fast link and go in powers of two;
pipelines take powers of two times the odd part of the node count, so that every cluster can be divided.
Data parallelism takes what is left. The list depends on the shapes of the clusters and a few
limits of the model, and is remembered.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from planner.estimate.machines import Floats, Ints, LayoutRequest
from planner.workload.work import Work

#: Beyond eight ways the slices of a matmul are too thin to gain (Narayanan 2021, fig. 14; Megatron uses <= 8).
MAX_TENSOR = 8
MAX_CONTEXT = 8
MAX_PIPELINE = 64
#: Pipelines that are tried together with context parallelism; longer ones are left to short sequences.
PIPELINES_WITH_CONTEXT = (1, 2, 4, 8)
#: Sequences from which splitting along the sequence is considered; below, activations of one sequence fit.
LONG_SEQUENCE = 16_384


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What of the model bounds its layout: heads and blocks that can be told apart, experts, sequence."""

    heads: int
    layers: int
    experts: int
    splits_sequence: bool


def limits_of(work: Work) -> Limits:
    """The limits of `work`; a model without transformer blocks is only ever split along its data."""
    shape = work.shape
    if shape is None:
        return Limits(heads=1, layers=1, experts=1, splits_sequence=False)
    return Limits(
        heads=shape.attention_heads,
        layers=shape.layers,
        experts=max(1, shape.experts),
        splits_sequence=shape.sequence_length >= LONG_SEQUENCE,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Splits:
    """Candidates, sorted by machine row: `row` indexes the machines. Ways are whole numbers, kept as floats for the arithmetic."""

    row: Ints
    data: Floats
    tensor: Floats
    pipeline: Floats
    context: Floats
    expert: Floats

    def of_rows(self, row: Ints, split: Ints) -> "Splits":
        """The splits at `split`, each for the machine row at the same place in `row`."""
        ways = ("data", "tensor", "pipeline", "context", "expert")
        return Splits(row=row, **{name: getattr(self, name).take(split) for name in ways})


def splits_of(limits: Limits, devices: Ints, nodes: Ints, domain: Ints, request: LayoutRequest) -> Splits:
    """Every split worth timing, for clusters of `nodes` x `devices` with `domain` devices on a fast link."""
    fixed = (request.data, request.tensor, request.pipeline, request.context, request.expert)
    return _splits(limits, devices.tobytes(), nodes.tobytes(), domain.tobytes(), fixed)


@lru_cache(maxsize=64)
def _splits(limits: Limits, devices: bytes, nodes: bytes, domain: bytes, fixed: tuple[int | None, ...]) -> Splits:
    """`splits_of` by value of its arrays."""
    columns = (np.frombuffer(part, dtype=np.int64).tolist() for part in (devices, nodes, domain))
    rows: list[int] = []
    chosen: list[tuple[int, int, int, int, int]] = []
    for row, (per_node, count, fast) in enumerate(zip(*columns, strict=True)):
        found = _of_cluster(limits, per_node, count, fast, fixed)
        rows.extend([row] * len(found))
        chosen.extend(found)
    data, tensor, pipeline, context, expert = np.array(chosen, dtype=np.float64).reshape(-1, 5).T.copy()
    return Splits(
        row=np.array(rows, dtype=np.int64),
        data=data,
        tensor=tensor,
        pipeline=pipeline,
        context=context,
        expert=expert,
    )


@lru_cache(maxsize=8192)
def _of_cluster(
    limits: Limits, per_node: int, nodes: int, fast: int, fixed: tuple[int | None, ...]
) -> list[tuple[int, int, int, int, int]]:
    """(data, tensor, pipeline, context, expert) of one cluster; empty if nothing divides."""
    data, tensor, pipeline, context, expert = fixed
    gpus = per_node * nodes
    found: list[tuple[int, int, int, int, int]] = []
    for t in [tensor] if tensor else _powers(min(fast, MAX_TENSOR)):
        if gpus % t or limits.heads % t:
            continue
        for p in [pipeline] if pipeline else _pipelines(nodes, min(limits.layers, MAX_PIPELINE)):
            if (gpus // t) % p or p > limits.layers:
                continue
            for c in [context] if context else _contexts(limits, fast // t):
                if c > 1 and not (context or pipeline or p in PIPELINES_WITH_CONTEXT):
                    continue
                if (gpus // (t * p)) % c or (data and data * t * p * c != gpus):
                    continue
                d = gpus // (t * p * c)
                found.extend((d, t, p, c, e) for e in _experts(limits, d * c, fast // t, expert))
    return found


def _powers(limit: int) -> list[int]:
    return [1 << k for k in range(max(1, limit).bit_length())]


def _pipelines(nodes: int, limit: int) -> list[int]:
    """Powers of two, and powers of two times the odd part of the node count."""
    odd = nodes // (nodes & -nodes)
    return sorted({power * part for power in _powers(limit) for part in {1, odd} if power * part <= limit})


def _contexts(limits: Limits, room: int) -> list[int]:
    """Not at all, or as far as the fast link allows, or half of that."""
    return sorted({1, *_powers(min(room, MAX_CONTEXT))[-2:]}) if limits.splits_sequence else [1]


def _experts(limits: Limits, ranks: int, room: int, fixed: int | None) -> list[int]:
    """Expert-parallel ways: as many as the fast link holds, and as many as there are."""
    if fixed:
        return [fixed] if limits.experts % fixed == 0 and ranks % fixed == 0 else []
    fitting = [e for e in range(1, min(limits.experts, ranks) + 1) if limits.experts % e == 0 and ranks % e == 0]
    near = [e for e in fitting if e <= room]
    return sorted({near[-1] if near else 1, fitting[-1]})
