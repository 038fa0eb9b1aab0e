"""Generative adversarial networks: generator, discriminator, and the passes of one step through each."""

from collections.abc import Mapping

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
    upsampling,
)

#: Forward equivalents of one forward and backward pass.
_PASSES = 3.0
#: A step of DCGAN: the generator forward once (its images serve both updates) and backward; the
#: discriminator forward and backward on real images, on generated ones, and for the generator.
_DCGAN_GENERATOR, _DCGAN_DISCRIMINATOR = 3.0, 9.0
#: StyleGAN2 generates new images for each of the two updates. A regulariser with second-order gradients
#: counts as 6 forward equivalents: path length every 4th step on half a batch, R1 every 16th
#: (Karras 2020, appendix B).
_STYLE_GENERATOR, _STYLE_DISCRIMINATOR = 4.0 + 6 / 4 / 2, 9.0 + 6 / 16


def deep_convolutional(spec: Mapping[str, str], image_size: int) -> Network:
    """DCGAN (Radford 2016): 4x4 kernels, halving channels from 4x4 images up, mirrored in the discriminator."""
    _check_power_of_two(image_size, least=16, most=512)
    features, latent = int(spec["features"]), int(spec["latent"])
    levels = (image_size // 4).bit_length() - 1
    generator, channels, size = [], features * 2 ** (levels - 1), 4
    first = upsampling(latent, channels, 4, 1, stride=4) + normalised(channels, 16)
    generator.append(Block(entry=latent, tally=first, repeats=_DCGAN_GENERATOR / _PASSES))
    for level in range(levels):
        last = level == levels - 1
        outputs = 3 if last else channels // 2
        grown = (2 * size) ** 2
        tally = upsampling(channels, outputs, 4, size, stride=2)
        tally += activated(outputs, grown) if last else normalised(outputs, grown)
        generator.append(Block(entry=channels * size * size, tally=tally, repeats=_DCGAN_GENERATOR / _PASSES))
        channels, size = outputs, 2 * size
    discriminator = _dcgan_discriminator(features, image_size, levels)
    return Network(
        blocks=(*generator, *discriminator), assumptions=(_step_note(_DCGAN_GENERATOR, _DCGAN_DISCRIMINATOR),)
    )


def _dcgan_discriminator(features: int, size: int, levels: int) -> list[Block]:
    blocks, channels = [], 3
    for level in range(levels):
        outputs = features * 2**level
        half = (size // 2) ** 2
        tally = convolution(channels, outputs, 4, size, stride=2)
        tally += normalised(outputs, half) if level else activated(outputs, half)
        blocks.append(Block(entry=channels * size * size, tally=tally, repeats=_DCGAN_DISCRIMINATOR / _PASSES))
        channels, size = outputs, size // 2
    judge = convolution(channels, 1, 4, size, stride=size)
    return [*blocks, Block(entry=channels * size * size, tally=judge, repeats=_DCGAN_DISCRIMINATOR / _PASSES)]


def style_based(spec: Mapping[str, str], image_size: int) -> Network:
    """StyleGAN2 configuration F (Karras 2020): modulated convolutions, skip generator, residual discriminator."""
    _check_power_of_two(image_size, least=64, most=1024)
    style, most = int(spec["latent"]), int(spec["channels"])
    sizes = [2**power for power in range(2, image_size.bit_length())]
    width = {size: min(most, int(spec["fmap"]) // size) for size in sizes}
    mapping = linear(style, style).times(int(spec["mapping_layers"])) + Tally(parameters=16.0 * width[4])
    generator = [Block(entry=style, tally=mapping, repeats=_STYLE_GENERATOR / _PASSES)]
    for size in sizes:
        inputs = width[max(4, size // 2)]
        tally = _style_layer(style, width[size], width[size], 3, size) + _style_layer(style, width[size], 3, 1, size)
        if size > 4:
            tally += linear(style, inputs) + upsampling(inputs, width[size], 3, size // 2, stride=2, bias=True)
            tally += activated(width[size], size * size).times(2)
        generator.append(Block(entry=inputs * size * size / 4, tally=tally, repeats=_STYLE_GENERATOR / _PASSES))
    judged = _style_discriminator(sizes, width)
    note = _step_note(_STYLE_GENERATOR, _STYLE_DISCRIMINATOR)
    return Network(blocks=(*generator, *judged), assumptions=(f"{note}, R1 and path-length regularisation included",))


def _style_layer(style: int, inputs: int, outputs: int, kernel: int, size: int) -> Tally:
    """A convolution whose weights a style vector scales; noise, bias and activation count as one pass."""
    return (
        linear(style, inputs) + convolution(inputs, outputs, kernel, size, bias=True) + activated(outputs, size * size)
    )


def _style_discriminator(sizes: list[int], width: dict[int, int]) -> list[Block]:
    top, repeats = sizes[-1], _STYLE_DISCRIMINATOR / _PASSES
    entry = convolution(3, width[top], 1, top, bias=True) + activated(width[top], top * top)
    blocks = [Block(entry=3 * top * top, tally=entry, repeats=repeats)]
    for size in reversed(sizes[1:]):
        inputs, outputs, half = width[size], width[size // 2], (size // 2) ** 2
        tally = convolution(inputs, inputs, 3, size, bias=True) + activated(inputs, size * size).times(2)
        tally += convolution(inputs, outputs, 3, size, stride=2, bias=True) + activated(outputs, half)
        tally += convolution(inputs, outputs, 1, size, stride=2) + added(outputs, half)
        blocks.append(Block(entry=inputs * size * size, tally=tally, repeats=repeats))
    last = width[4]
    judge = convolution(last + 1, last, 3, 4, bias=True) + linear(16 * last, last) + linear(last, 1)
    return [*blocks, Block(entry=16 * last, tally=judge, repeats=repeats)]


def _step_note(generator: float, discriminator: float) -> str:
    return (
        f"a step passes {generator:g} forward equivalents through the generator "
        f"and {discriminator:g} through the discriminator per sample"
    )


def _check_power_of_two(image_size: int, *, least: int, most: int) -> None:
    if not least <= image_size <= most or image_size.bit_count() != 1:
        raise UnusableInput.at(
            "workload",
            "image_size",
            message=f"{image_size} is not accepted; give a power of two from {least} to {most}",
        )
