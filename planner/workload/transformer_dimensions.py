"""Validation and completion of the dimensions of a transformer."""

import math
from dataclasses import replace

from gpuplan.catalog.runtime.errors import Fault, UnusableInput
from gpuplan.planner.model.job import Transformer
from gpuplan.planner.workload.transformer_projections import Particulars

_AT_LEAST_ONE = ("layers", "hidden_size", "attention_heads", "vocabulary_size", "sequence_length")
_NOT_NEGATIVE = (
    "ffn_size",
    "kv_heads",
    "head_size",
    "experts",
    "active_experts",
    "shared_experts",
    "expert_ffn_size",
    "decoder_layers",
    "dense_layers",
)
#: Far beyond any model (the widest published, the 2T GPT row of Megatron's scaling table, has 32,768); keeps
#: every product finite.
_LARGEST_DIMENSION = 100_000_000


def completed(model: Transformer) -> Transformer:
    """`model` with `kv_heads`, `head_size`, `expert_ffn_size` and `active_experts` filled where left at 0.

    Raises `UnusableInput` with one fault per contradiction, each at ("workload", field).
    """
    faults = _range_faults(model)
    if faults:
        raise UnusableInput(*faults)
    faults = [*_attention_faults(model), *_expert_faults(model)]
    if faults:
        raise UnusableInput(*faults)
    mixture = model.experts > 0
    return replace(
        model,
        kv_heads=model.kv_heads or model.attention_heads,
        head_size=model.head_size or model.hidden_size // model.attention_heads,
        expert_ffn_size=(model.expert_ffn_size or model.ffn_size) if mixture else 0,
        active_experts=model.active_experts if mixture else 0,
        shared_experts=model.shared_experts if mixture else 0,
        dense_layers=model.dense_layers if mixture else 0,
    )


def check_amounts(model: Transformer, tokens: float, global_batch_tokens: float) -> None:
    """Raise the `UnusableInput` of `completed` if these amounts are not finite or less than one sequence of `model`."""
    least = model.sequence_length
    if not (1 <= least <= tokens < math.inf and least <= global_batch_tokens < math.inf):
        completed(replace(model, tokens=tokens, global_batch_tokens=global_batch_tokens))


def stated_parameters_fault(stated: float | None, by_dimensions: float) -> str | None:
    """The fault of a stated parameter count that differs by more than 10 % from that of the dimensions, else None."""
    if stated is None:
        return None
    if not math.isfinite(stated) or stated <= 0:
        return f"{stated:g} is not a positive number of parameters; the dimensions give {by_dimensions:.4g}"
    if abs(stated / by_dimensions - 1) > 0.10:
        return (
            f"stated {stated:.4g} but the dimensions give {by_dimensions:.4g} parameters; leave `parameters` out or "
            "correct the dimensions (at most 10 % apart)"
        )
    return None


def _fault(field: str, message: str) -> Fault:
    return Fault(("workload", field), message)


def _range_faults(model: Transformer) -> list[Fault]:
    """Faults of single dimensions and amounts."""
    faults = []
    for name in _AT_LEAST_ONE + _NOT_NEGATIVE:
        least = 1 if name in _AT_LEAST_ONE else 0
        value = getattr(model, name)
        if not least <= value <= _LARGEST_DIMENSION:
            faults.append(_fault(name, f"{value} is outside {least} to {_LARGEST_DIMENSION}"))
    for name in ("tokens", "global_batch_tokens"):
        value = getattr(model, name)
        if not math.isfinite(value) or value <= 0:
            faults.append(_fault(name, f"{value:g} is not a positive, finite number of tokens"))
    if not faults and model.tokens < model.sequence_length:
        faults.append(_fault("tokens", f"{model.tokens:g} is less than one sequence of {model.sequence_length} tokens"))
    if not faults and model.global_batch_tokens < model.sequence_length:
        faults.append(
            _fault(
                "global_batch_tokens",
                f"{model.global_batch_tokens:g} is less than one sequence of {model.sequence_length} tokens",
            )
        )
    return faults


def _attention_faults(model: Transformer) -> list[Fault]:
    faults = []
    if not model.head_size and model.hidden_size % model.attention_heads:
        faults.append(
            _fault(
                "attention_heads",
                f"{model.attention_heads} heads do not divide hidden_size {model.hidden_size}; "
                "give a divisor, or head_size as well",
            )
        )
    if model.kv_heads and model.attention_heads % model.kv_heads:
        faults.append(
            _fault(
                "kv_heads", f"{model.kv_heads} does not divide attention_heads {model.attention_heads}; give a divisor"
            )
        )
    return faults


def _expert_faults(model: Transformer) -> list[Fault]:
    faults = []
    if not model.experts:
        if not model.ffn_size:
            faults.append(_fault("ffn_size", "0 is accepted only where every layer holds experts"))
        faults += [
            _fault(name, f"{getattr(model, name)} needs `experts` as well")
            for name in ("active_experts", "shared_experts", "dense_layers")
            if getattr(model, name)
        ]
        return faults
    if not 1 <= model.active_experts <= model.experts:
        faults.append(_fault("active_experts", f"{model.active_experts} is outside 1 to experts ({model.experts})"))
    if not model.expert_ffn_size and not model.ffn_size:
        faults.append(_fault("expert_ffn_size", "give expert_ffn_size, or ffn_size for experts of that size"))
    if model.dense_layers >= model.layers:
        faults.append(
            _fault("dense_layers", f"{model.dense_layers} leaves none of the {model.layers} layers to experts")
        )
    if model.dense_layers and not model.ffn_size:
        faults.append(_fault("ffn_size", "dense_layers need the feed-forward size of a dense layer"))
    if model.decoder_layers:
        faults.append(_fault("decoder_layers", "an encoder-decoder with experts is not modelled; give one of the two"))
    return faults


def check_positions(model: Transformer, particulars: Particulars, name: str) -> None:
    """Raise `UnusableInput` where a preset's sequence is longer than its learned positions."""
    positions = particulars.learned_positions
    if positions and not model.decoder_layers and model.sequence_length > positions:
        raise UnusableInput.at(
            "workload",
            "sequence_length",
            message=f"{model.sequence_length} is more than the {positions} positions that {name} has learned",
        )
