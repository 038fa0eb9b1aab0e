"""Convolutional networks, counted layer by layer for any image size."""

from collections.abc import Callable, Iterator, Mapping

from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.workload.block_totals import Network
from gpuplan.planner.workload.layer_tallies import (
    Block,
    Tally,
    activated,
    added,
    convolution,
    linear,
    normalised,
    pooled,
    upsampling,
)

_WIDTHS = (64, 128, 256, 512)


def numbers(text: str) -> tuple[int, ...]:
    """The numbers in a text such as `3-4-6-3`."""
    return tuple(int(part) for part in text.split("-"))


def check_image_size(image_size: int, *, multiple_of: int, least: int, most: int = 8192) -> None:
    """Raise `UnusableInput` for sizes out of range, or that the network cannot halve as often as it needs."""
    if not least <= image_size <= most or image_size % multiple_of:
        kind = f"multiple of {multiple_of}" if multiple_of > 1 else "whole number"
        raise UnusableInput.at(
            "workload",
            "image_size",
            message=f"{image_size} is not accepted; give a {kind} from {least} to {most}",
        )


def residual(spec: Mapping[str, str], image_size: int) -> Network:
    """ResNet (He 2015): `stages` of basic or bottleneck blocks; the bottleneck strides in its 3x3 (v1.5)."""
    check_image_size(image_size, multiple_of=1, least=32)
    block = _BLOCKS[spec["block"]]
    half, size = -(-image_size // 2), -(-image_size // 4)
    stem = convolution(3, 64, 7, image_size, stride=2) + normalised(64, half * half)
    blocks = [Block(entry=3 * image_size**2, tally=stem + pooled(64, half * half, size * size))]
    channels = 64
    for stage, (width, depth) in enumerate(zip(_WIDTHS, numbers(spec["stages"]), strict=True)):
        for index in range(depth):
            stride = 2 if stage and not index else 1
            tally, outputs = block(channels, width, size, stride)
            blocks.append(Block(entry=channels * size * size, tally=tally))
            channels, size = outputs, -(-size // stride)
    head = pooled(channels, size * size, 1) + linear(channels, int(spec["classes"]))
    return Network(blocks=(*blocks, Block(entry=channels * size * size, tally=head)))


def _basic(channels: int, width: int, size: int, stride: int) -> tuple[Tally, int]:
    """Two 3x3 convolutions; a 1x1 convolution on the shortcut where the shape changes."""
    out = -(-size // stride)
    tally = convolution(channels, width, 3, size, stride=stride) + normalised(width, out * out)
    tally += convolution(width, width, 3, out) + normalised(width, out * out) + added(width, out * out)
    return tally + _shortcut(channels, width, size, stride), width


def _bottleneck(channels: int, width: int, size: int, stride: int) -> tuple[Tally, int]:
    """1x1 down, 3x3, 1x1 up to four times the width."""
    out, wide = -(-size // stride), 4 * width
    tally = convolution(channels, width, 1, size) + normalised(width, size * size)
    tally += convolution(width, width, 3, size, stride=stride) + normalised(width, out * out)
    tally += convolution(width, wide, 1, out) + normalised(wide, out * out) + added(wide, out * out)
    return tally + _shortcut(channels, wide, size, stride), wide


def _shortcut(channels: int, outputs: int, size: int, stride: int) -> Tally:
    if channels == outputs and stride == 1:
        return Tally()
    out = -(-size // stride)
    return convolution(channels, outputs, 1, size, stride=stride) + normalised(outputs, out * out)


_BLOCKS: dict[str, Callable[[int, int, int, int], tuple[Tally, int]]] = {"basic": _basic, "bottleneck": _bottleneck}


def plain(spec: Mapping[str, str], image_size: int) -> Network:
    """Convolutions and poolings in sequence, then linear layers (LeNet, VGG).

    `layers` consists of `c64` (convolution to 64 channels with kernel size `kernel`) and `p` (2x2 pooling). `padded` is
    `yes` if convolutions keep the size. `linears` are the layer sizes after flattening.
    """
    kernel, padded = int(spec["kernel"]), spec["padded"] == "yes"
    parts = spec["layers"].split("-")
    check_image_size(image_size, multiple_of=2 ** parts.count("p") if padded else 1, least=28)
    channels, size = int(spec["inputs"]), image_size
    blocks = []
    for part in parts:
        entry = channels * size * size
        if part == "p":
            blocks.append(Block(entry=entry, tally=pooled(channels, size * size, (size // 2) ** 2)))
            size //= 2
            continue
        outputs = int(part[1:])
        inner = size if padded else size - kernel + 1
        tally = _valid_convolution(channels, outputs, kernel, size, inner) + activated(outputs, inner * inner)
        blocks.append(Block(entry=entry, tally=tally))
        channels, size = outputs, inner
    return Network(blocks=(*blocks, *_linears(channels * size * size, numbers(spec["linears"]))))


def _valid_convolution(inputs: int, outputs: int, kernel: int, size: int, inner: int) -> Tally:
    """A biased convolution with output size `inner`: computed there, but it reads the whole input."""
    border = inputs * (size * size - inner * inner)
    return convolution(inputs, outputs, kernel, inner, bias=True) + Tally(moved=3.0 * border, saved=float(border))


def _linears(inputs: int, sizes: tuple[int, ...]) -> Iterator[Block]:
    for size in sizes:
        yield Block(entry=inputs, tally=linear(inputs, size) + activated(size, 1))
        inputs = size


def u_net(spec: Mapping[str, str], image_size: int) -> Network:
    """U-Net (Ronneberger 2015) with padded convolutions and batch normalisation, as in current implementations."""
    channels, inputs = numbers(spec["channels"]), int(spec["inputs"])
    check_image_size(image_size, multiple_of=2 ** (len(channels) - 1), least=32)
    blocks, size = [], image_size
    for level, width in enumerate(channels):
        if level:
            size //= 2
        tally = _double(inputs, width, size)
        if level < len(channels) - 1:
            tally += pooled(width, size * size, size * size / 4)
        blocks.append(Block(entry=inputs * size * size, tally=tally))
        inputs = width
    for width in reversed(channels[:-1]):
        tally = upsampling(inputs, width, 2, size, stride=2, bias=True)
        entry, size = inputs * size * size, size * 2
        blocks.append(Block(entry=entry, tally=tally + _double(2 * width, width, size)))
        inputs = width
    head = convolution(inputs, int(spec["classes"]), 1, size, bias=True)
    note = "convolutions are padded to keep the size, with batch normalisation, as in current implementations"
    return Network(blocks=(*blocks, Block(entry=inputs * size * size, tally=head)), assumptions=(note,))


def _double(inputs: int, width: int, size: int) -> Tally:
    """Two 3x3 convolutions, each normalised."""
    norm = normalised(width, size * size)
    return convolution(inputs, width, 3, size) + norm + convolution(width, width, 3, size) + norm
