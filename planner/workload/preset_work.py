"""The work of a preset, from its architecture, its size and the stated amount of training."""

import math
from collections.abc import Callable
from dataclasses import fields, replace
from functools import lru_cache

from gpuplan.catalog.runtime.errors import Fault, UnusableInput
from gpuplan.planner.model.job import Preset, Training, Transformer
from gpuplan.planner.workload.adversarial_networks import deep_convolutional, style_based
from gpuplan.planner.workload.block_totals import Amount, Network, whole, work_of_blocks
from gpuplan.planner.workload.convolutional_networks import check_image_size, plain, residual, u_net
from gpuplan.planner.workload.diffusion_models import latent_u_net
from gpuplan.planner.workload.presets import PresetRow, find_preset, presets
from gpuplan.planner.workload.recurrent_networks import lstm
from gpuplan.planner.workload.step_work import Work
from gpuplan.planner.workload.training_batch import (
    LEAST_STEPS,
    adapter_batch,
    best_batch_tokens,
    in_whole_sequences,
)
from gpuplan.planner.workload.training_methods import method_of, settled, software_of
from gpuplan.planner.workload.transformer import transformer_work, work_of_amount
from gpuplan.planner.workload.transformer_dimensions import check_positions
from gpuplan.planner.workload.transformer_projections import Particulars

#: Counted architectures: each takes the row's details, the image size and the sequence length.
_NETWORKS: dict[str, Callable[[dict[str, str], int, int], Network]] = {
    "residual": lambda details, image, _: residual(details, image),
    "plain_convolutional": lambda details, image, _: plain(details, image),
    "u_net": lambda details, image, _: u_net(details, image),
    "latent_u_net": lambda details, image, _: latent_u_net(details, image),
    "deep_convolutional_gan": lambda details, image, _: deep_convolutional(details, image),
    "style_based_gan": lambda details, image, _: style_based(details, image),
    "lstm": lambda details, _, length: lstm(details, length),
    "whole": lambda details, _, length: whole(details, length),
}
#: Columns that a preset and a `Transformer` share.
_DIMENSIONS = tuple(
    {field.name for field in fields(PresetRow)}
    & {field.name for field in fields(Transformer)} - {"sequence_length", "global_batch_tokens"}
)
#: Classes whose samples are photos, and the least edge of one: smaller images come as arrays.
_IMAGE_TASKS = frozenset(("convolutional", "vision-transformer", "detection"))
_LEAST_PHOTO = 96
#: Reading, decoding and augmenting one photo of ImageNet (110 kB) on a virtual processor. ResNet-50 in plain PyTorch stays
#: near 3,000 images/s on one H200 or B200 whatever their bandwidth: that of 24 processors at this rate.
_DECODE_SECONDS = 8e-3
_DECODED_ON_HOST = "photos are decoded by 24 host processors per accelerator, about 3,000 a second: assumed"
#: Of ln(actual / estimated hours) with experts in a latent space: Nemotron 3 Super took up to 2.3 times as long.
_SIGMA_LATENT = 0.5
#: Start of `batch_source` where the batch of a model is not published.
_NOT_PUBLISHED = "not published"
#: Longer than any sequence in training; keeps products finite.
_LONGEST_SEQUENCE = 100_000_000
#: More units than any model can train on within the accepted FLOPs.
_MOST_UNITS = 1e30


def preset_work(preset: Preset, training: Training) -> Work:
    """Work of a known model; raises `UnusableInput` at ("workload", field) for fields that are missing or do not apply."""
    row = find_preset(preset.model)
    training = settled(training, row.task, row.unit)
    faults = [*_unit_faults(row, preset), *_size_faults(row, preset), *_number_faults(preset)]
    if faults:
        raise UnusableInput(*faults)
    image = row.image_size if preset.image_size is None else preset.image_size
    length = row.sequence_length if preset.sequence_length is None else preset.sequence_length
    per_sample = length if row.unit == "tokens" else 1
    amount = _amount(row, preset, per_sample, adapters=method_of(training).adapters)
    decoding = _decode_seconds(row, image, training)
    batch_is_default = preset.global_batch_tokens is None and preset.global_batch_samples is None
    if decoding:
        amount = replace(amount, assumptions=(*amount.assumptions, _DECODED_ON_HOST))
    if row.architecture in _NETWORKS:
        work = work_of_blocks(row.name, row.task, _network(row.name, image, length), amount, training)
        return replace(
            work,
            decode_seconds_per_sample=decoding,
            batch_is_default=batch_is_default,
            amount_is_measured=preset.amount_is_measured,
        )
    model, particulars = _transformer(row.name, image, length)
    check_positions(model, particulars, row.name)
    positions = model.sequence_length / per_sample
    work = work_of_amount(
        model,
        amount.total * positions,
        amount.per_step * positions,
        training,
        name=row.name,
        task=row.task,
        unit=row.unit,
        particulars=particulars,
        assumptions=amount.assumptions,
    )
    sigma = max(work.modelled_sigma, _SIGMA_LATENT if particulars.routed_size else 0.0)
    return replace(
        work,
        decode_seconds_per_sample=decoding,
        batch_is_default=batch_is_default,
        amount_is_measured=preset.amount_is_measured,
        modelled_sigma=sigma,
    )


def _decode_seconds(row: PresetRow, image_size: int, training: Training) -> float:
    """Seconds of a host processor per sample; fused and compiled stacks are taken to decode on accelerators or ahead."""
    on_host = software_of(training) in {"eager", "plain"} and row.task in _IMAGE_TASKS
    return _DECODE_SECONDS if on_host and image_size >= _LEAST_PHOTO else 0.0


@lru_cache(maxsize=256)
def _network(name: str, image_size: int, sequence_length: int) -> Network:
    row = presets()[name]
    return _NETWORKS[row.architecture](dict(row.details), image_size, sequence_length)


def _transformer(name: str, image_size: int, sequence_length: int) -> tuple[Transformer, Particulars]:
    """Dimensions of a row at the requested size; its amounts are those of one sample."""
    row = presets()[name]
    details = dict(row.details)
    positions, patches = int(details.get("learned_positions", "0")), int(details.get("patch_inputs", "0"))
    head_share = float(details.get("head_share", "1"))
    if "patch" in details:
        patch = int(details["patch"])
        check_image_size(image_size, multiple_of=patch, least=2 * patch)
        # One position per patch and one for the class token; only the latter has logits (Dosovitskiy 2021).
        sequence_length = (image_size // patch) ** 2 + 1
        positions, patches, head_share = sequence_length, int(details["channels"]) * patch**2, 1 / sequence_length
    attention = details.get("attention_parameters")
    particulars = Particulars(
        learned_positions=positions,
        attention_parameters=None if attention is None else float(attention),
        head_share=head_share,
        decoder_sequence_length=_target_length(row, details, sequence_length),
        patch_inputs=patches,
        routed_size=int(details.get("routed_size", "0")),
    )
    dimensions = {field: getattr(row, field) for field in _DIMENSIONS}
    one_sample = float(sequence_length)
    return Transformer(
        **dimensions, sequence_length=sequence_length, tokens=one_sample, global_batch_tokens=one_sample
    ), particulars


def _target_length(row: PresetRow, details: dict[str, str], sequence_length: int) -> int:
    """Length of the target: that of the paper, scaled with the length of the input."""
    published = int(details.get("decoder_sequence_length", "0"))
    return max(1, round(published * sequence_length / row.sequence_length)) if published else 0


def _amount(row: PresetRow, preset: Preset, per_sample: int, *, adapters: bool) -> Amount:
    """Units of the job and of a step; a step has at most those of the job."""
    sentences = [row.note] if row.note else []
    total = preset.tokens if preset.tokens is not None else (preset.samples or 0.0) * per_sample
    if preset.samples is not None and per_sample > 1:
        sentences.append(f"{preset.samples:.4g} samples of {per_sample} tokens each")
    if preset.global_batch_tokens is not None:
        batch = preset.global_batch_tokens
    elif preset.global_batch_samples is not None:
        batch = preset.global_batch_samples * per_sample
    else:
        batch, why = _default_batch(row, per_sample, total, adapters=adapters)
        sentences.append(f"global batch of {batch:,.0f} {row.unit} ({why})")
    _check_one_sequence("tokens", total, per_sample)
    _check_one_sequence("global_batch_tokens", batch, per_sample)
    if batch > total:
        batch = total
        sentences.append(f"the job is smaller than the batch: one step of all {total:.4g} {row.unit}")
    return Amount(unit=row.unit, total=total, per_step=batch, per_sample=per_sample, assumptions=tuple(sentences))


def _default_batch(row: PresetRow, per_sample: int, total: float, *, adapters: bool) -> tuple[float, str]:
    """The default batch and its reason: the paper's, or by model size and amount; less for adapters and short jobs."""
    stated = row.global_batch_tokens or row.global_batch_samples * per_sample
    usual, why = float(per_sample * max(1, int(stated / per_sample))), row.batch_source
    published = not (row.unit == "tokens" and why.startswith(_NOT_PUBLISHED))
    if not published:
        usual = best_batch_tokens(_active_parameters(row.name, per_sample), total)
        why = "for a model and run of this size, DeepSeek-AI 2024 section 3.1"
    limits = [(usual, why), (total / LEAST_STEPS, f"so that the job has {LEAST_STEPS} steps")]
    if adapters:
        sequences, reason = adapter_batch(total / per_sample, row.unit)
        limits = [(usual, why), (float(sequences * per_sample), reason)]
    batch, why = min(limits)
    return (batch if published and batch == usual else in_whole_sequences(batch, per_sample)), why


@lru_cache(maxsize=256)
def _active_parameters(name: str, sequence_length: int) -> float:
    """Parameters of a transformer preset that one token passes through."""
    model, particulars = _transformer(name, 0, sequence_length)
    return transformer_work(model, Training(), particulars=particulars).active_parameters


def _check_one_sequence(field: str, units: float, per_sample: int) -> None:
    if units < per_sample:
        raise UnusableInput.at("workload", field, message=f"{units:g} is less than one sequence of {per_sample} tokens")


def _unit_faults(row: PresetRow, preset: Preset) -> list[Fault]:
    """Faults of the amounts: either tokens or samples must be given, and tokens only for models that read tokens."""
    faults = []
    if preset.tokens is None and preset.samples is None:
        accepted = "tokens (or samples, each of sequence_length tokens)" if row.unit == "tokens" else "samples"
        faults.append(_fault(row.unit, f"missing: say how much {row.name} trains on, as {accepted}"))
    pairs = (("tokens", "samples"), ("global_batch_tokens", "global_batch_samples"))
    for by_token, by_sample in pairs:
        if getattr(preset, by_token) is None:
            continue
        if getattr(preset, by_sample) is not None:
            faults.append(_fault(by_sample, f"is given together with {by_token}; give one of the two"))
        if row.unit != "tokens":
            faults.append(_fault(by_token, f"{row.name} counts samples, not tokens; give {by_sample}"))
    return faults


def _size_faults(row: PresetRow, preset: Preset) -> list[Fault]:
    """Faults of sizes given for a model whose size cannot vary."""
    faults = []
    if preset.sequence_length is not None:
        if row.unit != "tokens":
            faults.append(_fault("sequence_length", f"{row.name} has none that can be set; leave it out"))
        elif not 1 <= preset.sequence_length <= _LONGEST_SEQUENCE:
            faults.append(_fault("sequence_length", f"{preset.sequence_length} is outside 1 to {_LONGEST_SEQUENCE}"))
    if preset.image_size is not None and not row.image_size:
        faults.append(_fault("image_size", f"{row.name} reads no images; leave it out"))
    return faults


def _number_faults(preset: Preset) -> list[Fault]:
    faults = []
    for name in ("tokens", "samples", "global_batch_tokens", "global_batch_samples"):
        value = getattr(preset, name)
        if value is not None and not (math.isfinite(value) and 1 <= value <= _MOST_UNITS):
            faults.append(_fault(name, f"{value:g} is outside 1 to {_MOST_UNITS:g}"))
    return faults


def _fault(field: str, message: str) -> Fault:
    return Fault(("workload", field), message)
