"""How many parameters a Hugging Face configuration describes, counted layer by layer from its dimensions."""

from typing import Any

from gpuplan.api.imports.facts import Origin, TrainingFacts
from gpuplan.api.imports.located_document import Located
from gpuplan.api.imports.model_families import Family, families, number
from gpuplan.api.imports.model_parameters import (
    ModelShape,
    feed_forward,
    latent_attention,
    linear_attention,
    plain_attention,
    state_space,
)
from gpuplan.api.imports.model_towers import clip_rest, state_beside, vision_encoder, waveform_features


def parameter_count(part: Located, whole: Located, kind: str, facts: TrainingFacts) -> None:
    """State the parameters, and set apart what the count leaves out."""
    if vision_encoder(part, kind, facts):
        return
    try:
        shape = _shape(part, kind, facts)
    except _Unknown as error:
        facts.not_understood.append(f"{part.name}: parameters cannot be counted: {error}")
        return
    total, active = shape.total(), shape.active()
    if kind.startswith("clip") or whole.get("model_type") == "clip":
        total += clip_rest(whole)
    origin = Origin(file=part.name, because="counted from the dimensions")
    facts.put("parameters_total", round(total), origin)
    if active < total and shape.idle:
        facts.put("parameters_active", round(active), origin)
    next_token = (shape.attention[-1:], shape.feed_forward[-1:])
    state_beside(part, whole, sum(sum(one) for one in next_token), facts)


class _Unknown(ValueError):
    """A dimension that the count needs is missing."""


def _need(facts: TrainingFacts, *names: str) -> list[int]:
    values = [facts.whole(name) for name in names]
    missing = [name for name, value in zip(names, values, strict=True) if not value]
    if missing:
        raise _Unknown(f"{', '.join(missing)} not stated")
    return [value for value in values if value]


def _shape(part: Located, kind: str, facts: TrainingFacts) -> ModelShape:
    if isinstance(part.get("block_configs"), list):
        return _blocks(part, facts)
    if isinstance(part.get("hybrid_override_pattern"), str):
        return _hybrid(part, facts)
    family = families(kind)
    hidden, layers, heads, vocabulary = _need(facts, "hidden_size", "layers", "attention_heads", "vocabulary_size")
    if layers > 10_000:
        raise _Unknown(f"{layers} layers are more than any model has")
    attention = _attention(part, kind, facts, layers)
    wide, idle = _feed_forwards(part, kind, facts, layers)
    if kind == "albert":
        # Lan 2020: the layers of a group share their weights.
        facts.layers_differ = "its layers share their weights"
        groups = number(part, "num_hidden_groups", default=1)
        attention, wide = attention[:groups], wide[:groups]
    shape = ModelShape(
        hidden=hidden,
        vocabulary=vocabulary,
        tied=facts.value("tied") is not False or not family.has_head,
        attention=attention,
        feed_forward=wide,
        idle=idle,
        norm_bias=family.norm_bias,
        embedding_size=number(part, "embedding_size", "word_embed_proj_dim"),
    )
    shape.other = _other(part, kind, hidden, family)
    decoder = facts.whole("decoder_layers") or 0
    if decoder and decoder <= 10_000:
        kv = facts.whole("kv_heads") or heads
        one = plain_attention(
            hidden, heads, kv, facts.whole("head_size") or hidden // heads, bias=family.attention_bias
        )
        shape.cross_attention = [2 * one + wide[0] + hidden] * decoder
    return shape


def _attention(part: Located, kind: str, facts: TrainingFacts, layers: int) -> list[float]:
    hidden, heads = _need(facts, "hidden_size", "attention_heads")
    kv, head = facts.whole("kv_heads") or heads, facts.whole("head_size") or max(1, hidden // heads)
    bias: float = families(kind).attention_bias
    stated = part.first("attention_bias", "qkv_bias", "add_qkv_bias", "use_qkv_bias")
    if isinstance(stated, bool):
        bias = (bias or 1.0) if stated else 0.0
    if part.get("kv_lora_rank"):
        one = latent_attention(
            hidden=hidden,
            heads=heads,
            q_rank=number(part, "q_lora_rank") or None,
            kv_rank=number(part, "kv_lora_rank"),
            nope=number(part, "qk_nope_head_dim"),
            rope=number(part, "qk_rope_head_dim"),
            value=number(part, "v_head_dim"),
        )
        return [one] * layers
    one = plain_attention(hidden, heads, kv, head, bias=bias)
    if part.get("attn_output_gate") is True:
        one += hidden * heads * head
    types = part.get("layer_types")
    types = [str(item) for item in types][:layers] if isinstance(types, list) else []
    if not types and number(part, "full_attention_interval") and number(part, "linear_num_key_heads"):
        every = number(part, "full_attention_interval")
        types = ["full_attention" if (i + 1) % every == 0 else "linear_attention" for i in range(layers)]
    if not types:
        return [one] * layers
    by_type = {"linear_attention": _linear(part, hidden, facts, types)}
    if kind.startswith("gemma4") and number(part, "global_head_dim"):
        wide, few = number(part, "global_head_dim"), number(part, "num_global_key_value_heads", default=kv)
        keys = 1 if part.get("attention_k_eq_v") is True else 2
        by_type["full_attention"] = hidden * wide * (2 * heads + keys * few)
    return [by_type.get(item) or one for item in types] + [one] * (layers - len(types))


def _linear(part: Located, hidden: int, facts: TrainingFacts, types: list[str]) -> float:
    if "linear_attention" not in types:
        return 0.0
    if not number(part, "linear_num_key_heads"):
        raise _Unknown("layers of linear attention without their sizes")
    linear = types.count("linear_attention")
    facts.layers_differ = f"{linear} of {len(types)} layers have linear attention"
    return linear_attention(
        hidden=hidden,
        key_heads=number(part, "linear_num_key_heads"),
        value_heads=number(part, "linear_num_value_heads"),
        key_head=number(part, "linear_key_head_dim"),
        value_head=number(part, "linear_value_head_dim"),
        convolution=number(part, "linear_conv_kernel_dim", default=4),
    )


def _feed_forwards(part: Located, kind: str, facts: TrainingFacts, layers: int) -> tuple[list[float], list[float]]:
    """Parameters of the feed-forward part of each layer, and those of them that one token does not use."""
    family = families(kind)
    hidden = _need(facts, "hidden_size")[0]
    gated, width = facts.value("gated_mlp") is True, facts.whole("ffn_size")
    dense_width = number(part, "intermediate_size_mlp") or width
    dense = feed_forward(hidden, dense_width, gated=gated, bias=family.mlp_bias) if dense_width else 0.0
    experts = facts.whole("experts")
    if not experts:
        if not width:
            raise _Unknown("ffn_size not stated")
        return [dense] * layers, []
    active, one_width = _need(facts, "active_experts", "expert_ffn_size")
    bias = kind.startswith("gpt_oss")
    one = feed_forward(hidden, one_width, gated=gated, bias=bias)
    mixture = experts * one + hidden * experts + (experts if bias else 0)
    shared = number(part, "shared_expert_intermediate_size", "shared_intermediate_size")
    if shared:
        mixture += feed_forward(hidden, shared, gated=gated) + (hidden if kind.startswith("qwen") else 0)
    else:
        mixture += (facts.whole("shared_experts") or 0) * one
    if part.get("enable_moe_block") is True:
        mixture += dense
        facts.layers_differ = facts.layers_differ or "every layer has a dense feed-forward part beside its experts"
    without = min(layers, facts.whole("dense_layers") or 0)
    rest = layers - without
    return [dense] * without + [mixture] * rest, [max(0, experts - active) * one] * rest


def _other(part: Located, kind: str, hidden: int, family: Family) -> float:
    """Positions, token types, pooler and convolutions."""
    # ALBERT and small ELECTRAs embed into fewer columns than their layers have.
    width = number(part, "embedding_size", default=hidden)
    other = 0.0 if width == hidden else width * hidden + hidden
    if family.learned_positions:
        other += number(part, "max_position_embeddings", "n_positions", "n_ctx", "max_target_positions") * width
    other += number(part, "type_vocab_size") * width
    if kind in {"bert", "roberta", "xlm-roberta", "albert"}:
        other += hidden * hidden + hidden
    if kind == "whisper":
        mel = number(part, "num_mel_bins", default=80)
        other += number(part, "max_source_positions") * hidden + 3 * hidden * (mel + hidden) + 2 * hidden
    if isinstance(part.get("conv_dim"), list):
        other += waveform_features(part, hidden)
    return other


def _blocks(part: Located, facts: TrainingFacts) -> ModelShape:
    """Layers that a search has thinned out (Nemotron NAS): each block states its attention and its width."""
    hidden, heads, vocabulary = _need(facts, "hidden_size", "attention_heads", "vocabulary_size")
    head = facts.whole("head_size") or hidden // heads
    attention: list[float] = []
    wide: list[float] = []
    for block in part.get("block_configs"):
        mine, ffn = (_mapping(block, name) for name in ("attention", "ffn"))
        group = mine.get("n_heads_in_group")
        linear = hidden * hidden if mine.get("replace_with_linear") else 0.0
        kv = heads // group if isinstance(group, int) and group > 0 else 0
        attention.append(plain_attention(hidden, heads, kv, head) if kv and not mine.get("no_op") else linear)
        times = ffn.get("ffn_mult")
        width = _multiple(2 * times * hidden / 3, 256) if isinstance(times, int | float) and 0 < times < 100 else 0
        linear = hidden * hidden if ffn.get("replace_with_linear") else 0.0
        wide.append(feed_forward(hidden, width, gated=True) if width and not ffn.get("no_op") else linear)
    facts.layers_differ = f"{sum(1 for one in attention if not one)} of {len(attention)} layers have no attention, and widths differ (block_configs)"
    tied = facts.value("tied") is True
    return ModelShape(hidden=hidden, vocabulary=vocabulary, tied=tied, attention=attention, feed_forward=wide)


def _mapping(block: Any, name: str) -> dict[str, Any]:
    inner = block.get(name) if isinstance(block, dict) else None
    return inner if isinstance(inner, dict) else {}


def _multiple(width: float, of: int) -> int:
    return -(-int(width) // of) * of


def _hybrid(part: Located, facts: TrainingFacts) -> ModelShape:
    """State spaces, attention and feed-forward parts in an order of their own (Nemotron-H)."""
    hidden, heads, vocabulary, width = _need(facts, "hidden_size", "attention_heads", "vocabulary_size", "ffn_size")
    kv, head = facts.whole("kv_heads") or heads, facts.whole("head_size") or hidden // heads
    pattern = part.get("hybrid_override_pattern")[:10_000]
    by_sign = {
        "M": state_space(
            hidden=hidden,
            heads=number(part, "mamba_num_heads"),
            head=number(part, "mamba_head_dim"),
            groups=number(part, "n_groups", default=1),
            state=number(part, "ssm_state_size"),
            convolution=number(part, "conv_kernel", default=4),
        ),
        "*": plain_attention(hidden, heads, kv, head),
        "-": feed_forward(hidden, width, gated=facts.value("gated_mlp") is True),
    }
    if any(sign not in by_sign for sign in pattern):
        raise _Unknown("hybrid_override_pattern holds a layer of an unknown kind")
    counts = {name: pattern.count(sign) for name, sign in (("Mamba", "M"), ("attention", "*"), ("feed-forward", "-"))}
    facts.layers_differ = ", ".join(f"{count} {name}" for name, count in counts.items()) + " blocks"
    layers = [by_sign[sign] for sign in pattern]
    tied = facts.value("tied") is True
    return ModelShape(
        hidden=hidden, vocabulary=vocabulary, tied=tied, attention=layers, feed_forward=[], norms_per_layer=1
    )
