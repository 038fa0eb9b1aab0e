"""Latent diffusion models: the U-Net with cross-attention of Stable Diffusion, trained on image latents."""

from collections.abc import Mapping
from dataclasses import dataclass

from gpuplan.planner.workload.block_totals import Network
from gpuplan.planner.workload.convolutional_networks import check_image_size, numbers
from gpuplan.planner.workload.layer_tallies import (
    Block,
    Tally,
    activated,
    added,
    attention,
    convolution,
    linear,
    normalised,
)

#: Pixels per latent on each side, latent channels, and text tokens (Rombach 2022; the CLIP text encoder).
_PIXELS, _LATENT_CHANNELS, _TEXT_TOKENS = 8, 4, 77


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shape:
    """Channels and transformer depth per level; `middle` is the depth at the bottom."""

    base: int
    channels: tuple[int, ...]
    depths: tuple[int, ...]
    middle: int
    context: int
    head_size: int
    heads: int
    added_embedding: int

    @property
    def time(self) -> int:
        """Width of the time embedding."""
        return 4 * self.base

    def heads_of(self, channels: int) -> int:
        """A fixed number of heads (v1), or heads of fixed size (XL)."""
        return self.heads or channels // self.head_size


def latent_u_net(spec: Mapping[str, str], image_size: int) -> Network:
    """A U-Net with two residual blocks per level down and three up, each followed by `depths` transformer layers."""
    base = int(spec["base"])
    shape = _Shape(
        base=base,
        channels=tuple(base * factor for factor in numbers(spec["factors"])),
        depths=numbers(spec["depths"]),
        middle=int(spec["middle"]),
        context=int(spec["context"]),
        head_size=int(spec.get("head_size", "0")),
        heads=int(spec.get("heads", "0")),
        added_embedding=int(spec.get("added_embedding", "0")),
    )
    halvings = len(shape.channels) - 1
    check_image_size(image_size, multiple_of=_PIXELS * 2**halvings, least=128, most=4096)
    size = image_size // _PIXELS
    blocks = [Block(entry=_LATENT_CHANNELS * size * size, tally=_stem(shape, size))]
    down, skips, size = _down(shape, size)
    bottom = shape.channels[-1]
    inner = _residual(shape, bottom, bottom, size).times(2) + _transformer(shape, bottom, shape.middle, size)
    middle = Block(entry=bottom * size * size, tally=inner)
    blocks += [*down, middle, *_up(shape, size, skips)]
    size = image_size // _PIXELS
    final = normalised(base, size * size) + convolution(base, _LATENT_CHANNELS, 3, size, bias=True)
    return Network(
        blocks=(*blocks, Block(entry=base * size * size, tally=final)),
        narrowest=float(min(shape.channels)),
        assumptions=("images as latents and text as embeddings, computed beforehand; their encoders are not counted",),
    )


def _stem(shape: _Shape, size: int) -> Tally:
    """First convolution, the two linear layers of the time embedding, and those of added conditions (XL)."""
    embedding = linear(shape.base, shape.time) + linear(shape.time, shape.time)
    if shape.added_embedding:
        embedding += linear(shape.added_embedding, shape.time) + linear(shape.time, shape.time)
    return convolution(_LATENT_CHANNELS, shape.base, 3, size, bias=True) + embedding


def _down(shape: _Shape, size: int) -> tuple[list[Block], list[int], int]:
    """Blocks of the downward path, channels of their skip connections, and the size at the bottom."""
    blocks, skips, inputs = [], [shape.base], shape.base
    for level, (channels, depth) in enumerate(zip(shape.channels, shape.depths, strict=True)):
        for _ in range(2):
            tally = _residual(shape, inputs, channels, size) + _transformer(shape, channels, depth, size)
            blocks.append(Block(entry=inputs * size * size, tally=tally))
            inputs = channels
            skips.append(channels)
        if level < len(shape.channels) - 1:
            halved = convolution(channels, channels, 3, size, stride=2, bias=True)
            blocks.append(Block(entry=channels * size * size, tally=halved))
            skips.append(channels)
            size //= 2
    return blocks, skips, size


def _up(shape: _Shape, size: int, skips: list[int]) -> list[Block]:
    """Blocks of the upward path, each concatenated with its skip connection."""
    blocks, inputs, left = [], shape.channels[-1], list(skips)
    for level in reversed(range(len(shape.channels))):
        channels, depth = shape.channels[level], shape.depths[level]
        for _ in range(3):
            joined = inputs + left.pop()
            tally = _residual(shape, joined, channels, size) + _transformer(shape, channels, depth, size)
            blocks.append(Block(entry=joined * size * size, tally=tally))
            inputs = channels
        if level:
            size *= 2
            blocks.append(
                Block(entry=channels * size * size / 4, tally=convolution(channels, channels, 3, size, bias=True))
            )
    return blocks


def _residual(shape: _Shape, inputs: int, outputs: int, size: int) -> Tally:
    """Norm, 3x3, time embedding added, norm, 3x3; a 1x1 on the shortcut where channels change."""
    positions = size * size
    tally = normalised(inputs, positions) + convolution(inputs, outputs, 3, size, bias=True)
    tally += linear(shape.time, outputs) + added(outputs, positions).times(2)
    tally += normalised(outputs, positions) + convolution(outputs, outputs, 3, size, bias=True)
    return tally if inputs == outputs else tally + convolution(inputs, outputs, 1, size, bias=True)


def _transformer(shape: _Shape, channels: int, depth: int, size: int) -> Tally:
    """Projection in, `depth` layers of self-attention, cross-attention to the text and a gated block, out."""
    if not depth:
        return Tally()
    positions = size * size
    project = linear(channels, channels, positions, adapted=True)
    self_attention = linear(channels, channels, positions, bias=False, adapted=True).times(3)
    self_attention += attention(channels, shape.heads_of(channels), positions, positions)
    crossed = linear(channels, channels, positions, bias=False, adapted=True)
    crossed += linear(shape.context, channels, _TEXT_TOKENS, bias=False, adapted=True).times(2)
    crossed += attention(channels, shape.heads_of(channels), positions, _TEXT_TOKENS)
    gated = linear(channels, 8 * channels, positions, adapted=True) + activated(8 * channels, positions)
    gated += linear(4 * channels, channels, positions, adapted=True)
    around = (normalised(channels, positions) + added(channels, positions)).times(3) + project.times(2)
    return normalised(channels, positions) + project.times(2) + (self_attention + crossed + gated + around).times(depth)
