"""Layers of any network as tallies for one sample: FLOPs, parameters, elements moved and kept.

A tally is a sum of layers; a network is a sequence of blocks, each a tally, between which
activation checkpointing may cut. Elements are numbers, not bytes. What moves is counted as a stack
moves it that launches one kernel per layer: a convolution or matmul reads input and writes output
forward, reads both gradients' operands and writes the input's gradient backward (3 input + 3
output); weights are left out, since a batch shares them. Normalisation with its activation function
reads twice (statistics, values) and writes once forward, reads input and gradient twice and writes once
backward: 8; the activation function alone 2 forward and 3 backward.
"""

from dataclasses import dataclass, fields, replace
from typing import Self

_NORM_PASSES = 8
_ACTIVATION_PASSES = 5
_ADD_PASSES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Counted facts of one sample.

    `flops` and `attention_flops` are forward, 2 per multiply-add. `moved` elements forward and
    backward (`moved_unfused` those that fusing activation functions and attention saves); `kept`
    for the backward pass, of which `recomputable` cost no matmul and `kept_unfused` come on top
    where nothing is fused. `adapter_width` is the sum of in + out of projections that adapters fit on,
    `adapter_flops` their forward FLOPs per unit of rank.
    """

    flops: float = 0.0
    attention_flops: float = 0.0
    parameters: float = 0.0
    moved: float = 0.0
    moved_unfused: float = 0.0
    kept: float = 0.0
    recomputable: float = 0.0
    kept_unfused: float = 0.0
    adapter_width: float = 0.0
    adapter_flops: float = 0.0

    def __add__(self, other: "Tally") -> "Tally":
        """Both, one after the other."""
        return Tally(**{name: getattr(self, name) + getattr(other, name) for name in _FIELDS})

    def times(self, count: float) -> Self:
        """`count` such layers."""
        return type(self)(**{name: getattr(self, name) * count for name in _FIELDS})

    def repeated(self, count: float) -> Self:
        """The same layers passed through `count` times: more FLOPs and traffic, no more parameters or memory."""
        again = ("flops", "attention_flops", "moved", "moved_unfused", "adapter_flops")
        return replace(self, **{name: getattr(self, name) * count for name in again})


_FIELDS = tuple(field.name for field in fields(Tally))
NOTHING = Tally()


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A stretch of the network that checkpointing may recompute from the `entry` elements of its input.

    A training step passes through it `repeats` times (adversarial training: more than once per sample).
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
        kept=float(read),
    )


def upsampling(inputs: int, outputs: int, kernel: int, size: int, *, stride: int, bias: bool = False) -> Tally:
    """A transposed convolution from `size` to `size` x `stride`: every input element meets every kernel weight."""
    weights = kernel * kernel * inputs * outputs
    read, written = inputs * size * size, outputs * (size * stride) ** 2
    return Tally(
        flops=2.0 * weights * size * size,
        parameters=weights + (outputs if bias else 0),
        moved=3.0 * (read + written),
        kept=float(read),
    )


def normalised(channels: int, positions: float, *, learned: bool = True) -> Tally:
    """Normalisation and activation function; its input is kept, and recomputes the output."""
    elements = channels * positions
    return Tally(
        parameters=2.0 * channels if learned else 0.0,
        moved=_NORM_PASSES * elements,
        moved_unfused=_ACTIVATION_PASSES * elements,
        kept=float(elements),
        recomputable=float(elements),
    )


def activated(channels: int, positions: float) -> Tally:
    """An activation function alone; in place, its output is the next layer's input."""
    elements = channels * positions
    return Tally(moved=_ACTIVATION_PASSES * elements, kept=float(elements), recomputable=float(elements))


def added(channels: int, positions: float) -> Tally:
    """A residual sum: two reads and a write forward, a read and a write backward."""
    return Tally(moved=_ADD_PASSES * channels * positions)


def pooled(channels: int, positions: float, out_positions: float) -> Tally:
    """Pooling: forward and backward each read one side and write the other."""
    return Tally(moved=2.0 * channels * (positions + out_positions), kept=float(channels * out_positions))


def linear(inputs: int, outputs: int, positions: float = 1, *, bias: bool = True, adapted: bool = False) -> Tally:
    """A matmul over `positions`; `adapted` projections get a low-rank adapter under LoRA."""
    width = inputs + outputs
    return Tally(
        flops=2.0 * inputs * outputs * positions,
        parameters=inputs * outputs + (outputs if bias else 0),
        moved=3.0 * width * positions,
        kept=float(inputs * positions),
        adapter_width=float(width) if adapted else 0.0,
        adapter_flops=2.0 * width * positions if adapted else 0.0,
    )


def attention(width: int, heads: int, queries: int, keys: int) -> Tally:
    """Scores and values of `queries` over `keys`: 4 width each forward; the scores stay on chip when fused."""
    scores = float(heads * queries * keys)
    return Tally(
        attention_flops=4.0 * width * queries * keys,
        moved=3.0 * width * (2 * queries + 2 * keys),
        moved_unfused=14.0 * scores,
        kept=width * (queries + 2.0 * keys),
        kept_unfused=2.0 * scores,
    )
