"""The work of a preset: how much of it the user asked for, at which size, by the way its architecture is counted."""

import math
from collections.abc import Callable
from dataclasses import fields
from functools import lru_cache

from catalog.errors import Fault, UnusableInput
from planner.job import Preset, Training, Transformer
from planner.workload.adversarial import deep_convolutional, style_based
from planner.workload.convolution import check_image_size, plain, residual, u_net
from planner.workload.counted import Amount, Network, counted_work
from planner.workload.diffusion import latent_u_net
from planner.workload.dimensions import check_positions
from planner.workload.methods import method_of
from planner.workload.presets import PresetRow, find_preset, presets
from planner.workload.projections import Particulars
from planner.workload.recurrent import lstm
from planner.workload.transformer import work_of_amount
from planner.workload.whole import whole
from planner.workload.work import Work

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
#: Adapters are tuned with 16 to 128 sequences at a time (Hu 2021; Dettmers 2023).
_ADAPTER_SAMPLES = 64
#: A batch that is not asked for leaves a short job this many optimizer steps to train in.
_LEAST_STEPS = 1000
#: Longer than any sequence trained on; keeps products finite.
_LONGEST_SEQUENCE = 100_000_000
#: More than any model can be trained on within the FLOPs that are accepted.
_MOST_UNITS = 1e30


def preset_work(preset: Preset, training: Training) -> Work:
    """Work of a known model; raises `UnusableInput` at ("workload", field) naming what is missing or does not apply."""
    row = find_preset(preset.model)
    faults = [*_unit_faults(row, preset), *_size_faults(row, preset), *_number_faults(preset)]
    if faults:
        raise UnusableInput(*faults)
    image = row.image_size if preset.image_size is None else preset.image_size
    length = row.sequence_length if preset.sequence_length is None else preset.sequence_length
    per_sample = length if row.unit == "tokens" else 1
    amount = _amount(row, preset, per_sample, adapters=method_of(training).adapters)
    if row.architecture in _NETWORKS:
        return counted_work(row.name, row.task, _network(row.name, image, length), amount, training)
    model, particulars = _transformer(row.name, image, length)
    check_positions(model, particulars, row.name)
    positions = model.sequence_length / per_sample
    return work_of_amount(
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


@lru_cache(maxsize=256)
def _network(name: str, image_size: int, sequence_length: int) -> Network:
    row = presets()[name]
    return _NETWORKS[row.architecture](dict(row.details), image_size, sequence_length)


@lru_cache(maxsize=256)
def _transformer(name: str, image_size: int, sequence_length: int) -> tuple[Transformer, Particulars]:
    """Dimensions of a row at the size asked for; amounts are filled in later."""
    row = presets()[name]
    details = dict(row.details)
    positions, patches = int(details.get("learned_positions", "0")), int(details.get("patch_inputs", "0"))
    head_share = float(details.get("head_share", "1"))
    if "patch" in details:
        patch = int(details["patch"])
        check_image_size(image_size, multiple_of=patch, least=2 * patch)
        # One position per patch and one for the class token, which alone is read out (Dosovitskiy 2021).
        sequence_length = (image_size // patch) ** 2 + 1
        positions, patches, head_share = sequence_length, int(details["channels"]) * patch**2, 1 / sequence_length
    attention = details.get("attention_parameters")
    particulars = Particulars(
        learned_positions=positions,
        attention_parameters=None if attention is None else float(attention),
        head_share=head_share,
        decoder_sequence_length=_target_length(row, details, sequence_length),
        patch_inputs=patches,
    )
    dimensions = {field: getattr(row, field) for field in _DIMENSIONS}
    once = float(sequence_length)
    return Transformer(
        **dimensions, sequence_length=sequence_length, tokens=once, global_batch_tokens=once
    ), particulars


def _target_length(row: PresetRow, details: dict[str, str], sequence_length: int) -> int:
    """Targets as long as the paper's, in proportion where the input is longer or shorter."""
    published = int(details.get("decoder_sequence_length", "0"))
    return max(1, round(published * sequence_length / row.sequence_length)) if published else 0


def _amount(row: PresetRow, preset: Preset, per_sample: int, *, adapters: bool) -> Amount:
    """Units of the job and of a step, never more than the job has."""
    said = [row.note] if row.note else []
    total = preset.tokens if preset.tokens is not None else (preset.samples or 0.0) * per_sample
    if preset.samples is not None and per_sample > 1:
        said.append(f"{preset.samples:.4g} samples of {per_sample} tokens each")
    if preset.global_batch_tokens is not None:
        batch = preset.global_batch_tokens
    elif preset.global_batch_samples is not None:
        batch = preset.global_batch_samples * per_sample
    else:
        batch, why = _default_batch(row, per_sample, total, adapters=adapters)
        said.append(f"global batch of {batch:,.0f} {row.unit} ({why})")
    _check_one_sequence("tokens", total, per_sample)
    _check_one_sequence("global_batch_tokens", batch, per_sample)
    if batch > total:
        batch = total
        said.append(f"the job is smaller than the batch: one step of all {total:.4g} {row.unit}")
    return Amount(unit=row.unit, total=total, per_step=batch, per_sample=per_sample, assumptions=tuple(said))


def _default_batch(row: PresetRow, per_sample: int, total: float, *, adapters: bool) -> tuple[float, str]:
    """The paper's batch, and why; less for adapters and short jobs, then in a power of two samples."""
    stated = row.global_batch_tokens or row.global_batch_samples * per_sample
    published = float(per_sample * max(1, int(stated / per_sample)))
    least_steps = total / _LEAST_STEPS
    limits = [(published, row.batch_source), (least_steps, f"so that the job has {_LEAST_STEPS} steps")]
    if adapters:
        limits.append((float(_ADAPTER_SAMPLES * per_sample), f"{_ADAPTER_SAMPLES} sequences, usual for adapters"))
    batch, why = min(limits)
    if batch == published:
        return batch, why
    samples = 2 ** (max(1, int(batch / per_sample)).bit_length() - 1)
    return float(samples * per_sample), why


def _check_one_sequence(field: str, units: float, per_sample: int) -> None:
    if units < per_sample:
        raise UnusableInput.at("workload", field, message=f"{units:g} is less than one sequence of {per_sample} tokens")


def _unit_faults(row: PresetRow, preset: Preset) -> list[Fault]:
    """Tokens and samples: one of the two, and tokens only where the model reads tokens."""
    faults = []
    if preset.tokens is None and preset.samples is None:
        accepted = "tokens (or samples, each of sequence_length tokens)" if row.unit == "tokens" else "samples"
        faults.append(_fault(row.unit, f"missing: say how much {row.name} trains on, as {accepted}"))
    pairs = (("tokens", "samples"), ("global_batch_tokens", "global_batch_samples"))
    for by_token, by_sample in pairs:
        if getattr(preset, by_token) is None:
            continue
        if getattr(preset, by_sample) is not None:
            faults.append(_fault(by_sample, f"stands beside {by_token}; give one of the two"))
        if row.unit != "tokens":
            faults.append(_fault(by_token, f"{row.name} counts samples, not tokens; give {by_sample}"))
    return faults


def _size_faults(row: PresetRow, preset: Preset) -> list[Fault]:
    """A size may be given only where the model has one that can vary."""
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
