"""Layers of any network as tallies for one sample: FLOPs, parameters, elements moved and saved.

A tally is a sum of layers. A network is a sequence of blocks, each with a tally; activation checkpointing can cut between
blocks. Elements are numbers, not bytes. Moved elements are those of a stack with one kernel per layer. A convolution or
matmul reads its input and writes its output forward; backward it reads the operands of both gradients and writes the
gradient of the input (3 input + 3 output). Weights are not counted, since a batch shares them. Normalisation with its
activation function reads twice (statistics, values) and writes once forward, and reads input and gradient twice and
writes once backward: 8. An activation function alone counts 2 forward and 3 backward.
"""

from dataclasses import dataclass, fields, replace
from typing import Self

_NORM_PASSES = 8
_ACTIVATION_PASSES = 5
_ADD_PASSES = 5
#: Kernels of an operation: one forward, and two backward (a matmul's gradients of input and weights).
_KERNELS = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Counts for one sample.

    `flops` and `attention_flops` are forward, 2 per multiply-add. `moved` counts elements moved forward and backward;
    `moved_unfused` are added where activation functions and attention are not fused. `saved` counts elements saved for
    the backward pass, of which `recomputable` need no matmul; `saved_unfused` are added in unfused stacks.
    `adapter_width` is the sum of in + out of the projections that can have adapters, `adapter_flops` their forward
    FLOPs per unit of rank. `kernels` are launched per micro-batch, forward and backward, `adapted` the projections that can
    have adapters; both are 0 where only totals are known.
    """

    flops: float = 0.0
    attention_flops: float = 0.0
    parameters: float = 0.0
    moved: float = 0.0
    moved_unfused: float = 0.0
    saved: float = 0.0
    recomputable: float = 0.0
    saved_unfused: float = 0.0
    adapter_width: float = 0.0
    adapter_flops: float = 0.0
    kernels: float = 0.0
    adapted: float = 0.0

    def __add__(self, other: "Tally") -> "Tally":
        """The sum of two tallies."""
        return Tally(**{name: getattr(self, name) + getattr(other, name) for name in _FIELDS})

    def times(self, count: float) -> Self:
        """`count` such layers."""
        return type(self)(**{name: getattr(self, name) * count for name in _FIELDS})

    def repeated(self, count: float) -> Self:
        """The same layers passed through `count` times: more FLOPs and traffic, the same parameters and memory."""
        repeated_fields = ("flops", "attention_flops", "moved", "moved_unfused", "adapter_flops")
        return replace(self, **{name: getattr(self, name) * count for name in repeated_fields})


_FIELDS = tuple(field.name for field in fields(Tally))
NOTHING = Tally()


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A part of the network that checkpointing can recompute from the `entry` elements of its input.

    A training step passes through it `repeats` times per sample (adversarial training: more than once).
    """

    entry: float
    tally: Tally
    repeats: float = 1.0


def total(blocks: tuple[Block, ...]) -> Tally:
    """The sum over all blocks."""
    return sum((block.tally.repeated(block.repeats) for block in blocks), NOTHING)


def convolution(
    inputs: int, outputs: int, kernel: int, size: int, *, stride: int = 1, groups: int = 1, bias: bool = False
) -> Tally:
    """A square convolution over `size` x `size` positions of input, padded to keep size / stride."""
    out_size = -(-size // stride)
    weights = kernel * kernel * inputs * outputs / groups
    read, written = inputs * size * size, outputs * out_size * out_size
    return Tally(
        flops=2.0 * weights * out_size * out_size,
        parameters=weights + (outputs if bias else 0),
        moved=3.0 * (read + written),
        saved=float(read),
        kernels=_KERNELS,
    )


def upsampling(inputs: int, outputs: int, kernel: int, size: int, *, stride: int, bias: bool = False) -> Tally:
    """A transposed convolution from `size` to `size` x `stride`, which multiplies every input element by every kernel weight."""
    weights = kernel * kernel * inputs * outputs
    read, written = inputs * size * size, outputs * (size * stride) ** 2
    return Tally(
        flops=2.0 * weights * size * size,
        parameters=weights + (outputs if bias else 0),
        moved=3.0 * (read + written),
        saved=float(read),
        kernels=_KERNELS,
    )


def normalised(channels: int, positions: float) -> Tally:
    """Normalisation and activation function; the input is saved, and the output can be recomputed from it."""
    elements = channels * positions
    return Tally(
        parameters=2.0 * channels,
        moved=_NORM_PASSES * elements,
        moved_unfused=_ACTIVATION_PASSES * elements,
        saved=float(elements),
        recomputable=float(elements),
        kernels=2.0 * _KERNELS,
    )


def activated(channels: int, positions: float) -> Tally:
    """An activation function alone, in place: its output is the next layer's input."""
    elements = channels * positions
    return Tally(
        moved=_ACTIVATION_PASSES * elements, saved=float(elements), recomputable=float(elements), kernels=_KERNELS
    )


def added(channels: int, positions: float) -> Tally:
    """A residual sum: two reads and a write forward, a read and a write backward."""
    return Tally(moved=_ADD_PASSES * channels * positions, kernels=_KERNELS)


def pooled(channels: int, positions: float, out_positions: float) -> Tally:
    """Pooling: forward and backward each read one side and write the other."""
    moved = 2.0 * channels * (positions + out_positions)
    return Tally(moved=moved, saved=float(channels * out_positions), kernels=_KERNELS)


def linear(inputs: int, outputs: int, positions: float = 1, *, bias: bool = True, adapted: bool = False) -> Tally:
    """A matmul over `positions`; `adapted` projections get a low-rank adapter under LoRA."""
    width = inputs + outputs
    return Tally(
        flops=2.0 * inputs * outputs * positions,
        parameters=inputs * outputs + (outputs if bias else 0),
        moved=3.0 * width * positions,
        saved=float(inputs * positions),
        adapter_width=float(width) if adapted else 0.0,
        adapter_flops=2.0 * width * positions if adapted else 0.0,
        kernels=_KERNELS,
        adapted=1.0 if adapted else 0.0,
    )


def attention(width: int, heads: int, queries: int, keys: int) -> Tally:
    """Attention of `queries` over `keys`: 4 width FLOPs per pair forward; fused, the scores stay on chip, and heads are copied."""
    scores = float(heads * queries * keys)
    return Tally(
        attention_flops=4.0 * width * queries * keys,
        moved=3.0 * width * (2 * queries + 2 * keys),
        moved_unfused=14.0 * scores,
        saved=width * (queries + 2.0 * keys),
        saved_unfused=2.0 * scores,
        kernels=2.0 * _KERNELS,
    )
