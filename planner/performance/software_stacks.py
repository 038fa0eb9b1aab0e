"""Shares of a machine's rates that a step reaches, by training software and by class of work."""

from dataclasses import dataclass

from gpuplan.planner.model.job import Training
from gpuplan.planner.performance.fitted_constants import keys_of, value
from gpuplan.planner.workload.step_work import Work
from gpuplan.planner.workload.training_methods import kernels_of, software_of

#: Software classes, of which `fused` is the default.
STACKS = keys_of("software_matmul")
#: How far a class feels `counted_drag`, a judgement: fused stacks replay recorded kernels, eager ones launch each.
_DRAG = {"fused": 0.0, "compiled": 0.5, "eager": 1.0, "plain": 1.0}
#: Bytes at 16 bit per hidden element of a block that tensor parallelism does not split without sequence parallelism
#: (Korthikanti 2022, section 4.2): norm and residual of two sub-blocks, forward and backward, in two passes each.
UNSPLIT_BYTES = {"fused": 0.0, "compiled": 0.0, "eager": 0.0, "plain": 80.0}
#: Stacks that send a token once to each node that holds one of its experts, and copy it there (DeepSeek 2024, DeepEP).
_ONCE_PER_NODE = frozenset(("fused",))
#: Stacks whose attention is FlashAttention-2 on every chip, as in PyTorch; fused and compiled ones use a generation's own kernel.
_PORTABLE_ATTENTION = frozenset(("eager",))
#: Stacks that compile forward, recomputation and backward together, so that dead code of recomputation goes.
_DROPS_UNREAD = frozenset(("compiled",))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """A class of training software, relative to fused kernels (Megatron, Transformer Engine).

    Most of the cost of `eager` and `plain` software is memory traffic, which `vector_bytes_per_unit` counts; the shares
    hold the rest. `kernels_per_layer` is per block and micro-batch, `drag` the share of `counted_drag` that applies.
    `unsplit_bytes` per hidden element of a block are moved on every rank of a tensor-parallel group. `once_per_node` says that
    a token goes once to a node with several of its experts, `portable_attention` that its attention kernel is not written for
    the chip's generation, `drops_unread` that recomputation leaves out what no gradient reads.
    """

    matmul: float
    attention: float
    vector: float
    kernels_per_layer: float
    drag: float
    unsplit_bytes: float
    once_per_node: bool
    portable_attention: bool
    drops_unread: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Shares of the matmul ceiling and of memory bandwidth that a class of work reaches."""

    matmul: float
    bandwidth: float


def stack_of(training: Training) -> Stack:
    """The constants of the software of `training`. Raises `UnusableInput` at training.software for an unknown one."""
    name = kernels_of(training)
    return Stack(
        matmul=value("software_matmul", name),
        attention=value("software_attention", software_of(training)),
        vector=value("software_vector", name),
        kernels_per_layer=value("software_kernels_per_layer", name),
        drag=_DRAG[name],
        unsplit_bytes=UNSPLIT_BYTES[name],
        once_per_node=name in _ONCE_PER_NODE,
        portable_attention=name in _PORTABLE_ATTENTION,
        drops_unread=name in _DROPS_UNREAD,
    )


def share_of(work: Work) -> Share:
    """The shares of the class of `work`, relative to dense language models."""
    return Share(matmul=value("class_matmul", work.task), bandwidth=value("class_bandwidth", work.task))
