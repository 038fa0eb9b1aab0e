"""Families of Hugging Face models: what their code fixes without a key, and which of their layers have experts."""

from dataclasses import dataclass

from gpuplan.api.imports.facts import Origin, TrainingFacts
from gpuplan.api.imports.located_document import Located


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """What the code of a family fixes; biases are of attention (1 all, 0.5 query, key, value) and feed-forward part."""

    gated: bool = True
    tied: bool = False
    causal: bool = True
    encoder_decoder: bool = False
    has_head: bool = True
    learned_positions: bool = False
    attention_bias: float = 0.0
    mlp_bias: bool = False
    norm_bias: bool = False
    shared_experts: int = 0


_OLD_DECODER = Family(gated=False, tied=True, learned_positions=True, attention_bias=1, mlp_bias=True, norm_bias=True)
_ROTARY_DECODER = Family(gated=False, attention_bias=1, mlp_bias=True, norm_bias=True)
_ENCODER = Family(
    gated=False, tied=True, causal=False, learned_positions=True, attention_bias=1, mlp_bias=True, norm_bias=True
)
_SPEECH_OR_TEXT = Family(
    gated=False,
    tied=True,
    causal=True,
    encoder_decoder=True,
    learned_positions=True,
    attention_bias=1,
    mlp_bias=True,
    norm_bias=True,
)
_VISION = Family(gated=False, causal=False, has_head=False, attention_bias=1, mlp_bias=True, norm_bias=True)
_T5 = Family(gated=False, tied=True, encoder_decoder=True)

#: Families by the start of `model_type`, the longest that fits; a family that is absent is like Llama.
_FAMILIES: dict[str, Family] = {
    "gpt2": _OLD_DECODER,
    "gpt_bigcode": _OLD_DECODER,
    "gpt_neo": _OLD_DECODER,
    "opt": _OLD_DECODER,
    "bloom": Family(gated=False, tied=True, attention_bias=1, mlp_bias=True, norm_bias=True),
    "falcon": Family(gated=False, tied=True, norm_bias=True),
    "refinedweb": Family(gated=False, tied=True, norm_bias=True),
    "mpt": Family(gated=False, tied=True),
    "gpt_neox": _ROTARY_DECODER,
    "gptj": Family(gated=False, mlp_bias=True, norm_bias=True),
    "codegen": Family(gated=False, mlp_bias=True, norm_bias=True),
    "phi": _ROTARY_DECODER,
    "phi3": Family(),
    "phi4": Family(),
    "phimoe": Family(attention_bias=1),
    "starcoder2": Family(gated=False, tied=True, attention_bias=1, mlp_bias=True, norm_bias=True),
    "persimmon": _ROTARY_DECODER,
    "nemotron": Family(gated=False, norm_bias=True),
    "nemotron-nas": Family(),
    "nemotron_h": Family(gated=False),
    "arcee": Family(gated=False),
    "gemma": Family(tied=True),
    "cohere": Family(tied=True),
    "qwen2": Family(attention_bias=0.5),
    "qwen2_moe": Family(attention_bias=0.5),
    "qwen2_vl": Family(attention_bias=0.5),
    "qwen2_5_vl": Family(attention_bias=0.5),
    "qwen": Family(attention_bias=0.5),
    "chatglm": Family(attention_bias=0.5),
    "qwen3": Family(),
    "gpt_oss": Family(attention_bias=1),
    "llama4": Family(shared_experts=1),
    "bert": _ENCODER,
    "roberta": _ENCODER,
    "xlm-roberta": _ENCODER,
    "camembert": _ENCODER,
    "electra": _ENCODER,
    "distilbert": _ENCODER,
    "albert": _ENCODER,
    "deberta": _ENCODER,
    "mpnet": _ENCODER,
    "esm": _ENCODER,
    "modernbert": Family(tied=True, causal=False),
    "nomic_bert": Family(tied=True, causal=False),
    "t5": _T5,
    "mt5": _T5,
    "umt5": _T5,
    "longt5": _T5,
    "decoder_only_t5": Family(gated=False, tied=True),
    "bart": _SPEECH_OR_TEXT,
    "mbart": _SPEECH_OR_TEXT,
    "pegasus": _SPEECH_OR_TEXT,
    "marian": _SPEECH_OR_TEXT,
    "m2m_100": _SPEECH_OR_TEXT,
    "blenderbot": _SPEECH_OR_TEXT,
    "whisper": _SPEECH_OR_TEXT,
    "clip": _VISION,
    "siglip": _VISION,
    "vit": _VISION,
    "deit": _VISION,
    "beit": _VISION,
    "dinov2": _VISION,
    "wav2vec2": _VISION,
    "hubert": _VISION,
    "wavlm": _VISION,
}


def families(kind: str) -> Family:
    """The family of a `model_type`; old files without one are GPT-2."""
    if not kind:
        return _FAMILIES["gpt2"]
    if kind in _FAMILIES:
        return _FAMILIES[kind]
    near = [name for name in _FAMILIES if kind.startswith(f"{name}_") or (kind.startswith(name) and name in _PREFIXES)]
    return _FAMILIES[max(near, key=len)] if near else Family()


#: Families whose versions continue the name without an underscore, such as gemma2 and cohere2.
_PREFIXES = {"gemma", "cohere", "phi3", "phi4", "deberta", "clip"}


def number(part: Located, *keys: str, default: int = 0) -> int:
    """The first of the keys that holds a whole number in range."""
    for key in keys:
        value = part.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 10**10:
            return int(value)
    return default


def expert_layers(part: Located, kind: str, facts: TrainingFacts) -> None:
    """State widths of experts, shared experts and layers without experts."""
    experts, layers = facts.whole("experts"), facts.whole("layers")
    if not experts or experts <= 1 or not layers:
        for name in ("experts", "active_experts"):
            facts.facts.pop(name, None)
        return
    width_key = next((k for k in _EXPERT_WIDTHS if number(part, k)), "")
    if width_key:
        facts.put("expert_ffn_size", number(part, width_key), part.at(width_key))
    elif (expert_width := facts.whole("ffn_size")) is not None:
        facts.put("expert_ffn_size", expert_width, facts.origin("ffn_size"))
    _shared(part, kind, facts)
    dense, origin = _dense(part, layers)
    if 0 <= dense <= layers:
        facts.put("dense_layers", dense, origin)


_EXPERT_WIDTHS = ("moe_intermediate_size", "expert_ffn_hidden_size", "moe_ffn_hidden_size")


def _shared(part: Located, kind: str, facts: TrainingFacts) -> None:
    shared = part.get("n_shared_experts")
    shared = part.get("num_shared_experts") if shared is None else shared
    if isinstance(shared, int) and 0 <= shared < 1000:
        facts.put("shared_experts", shared, part.at("n_shared_experts", "num_shared_experts"))
    elif number(part, "shared_expert_intermediate_size", "shared_intermediate_size"):
        facts.put("shared_experts", 1, part.at("shared_expert_intermediate_size", "shared_intermediate_size"))
    elif not kind.startswith("gemma"):
        count = families(kind).shared_experts
        facts.put("shared_experts", count, Origin(default_of=f"Hugging Face transformers: {kind}"))


def _dense(part: Located, layers: int) -> tuple[int, Origin]:
    """Layers without experts, by whichever key tells them apart."""
    first = part.get("first_k_dense_replace")
    if isinstance(first, int) and first >= 0:
        every = number(part, "moe_layer_freq", default=1)
        rest = layers - first
        return first + rest - -(-rest // every), part.at("first_k_dense_replace")
    moe = part.get("moe_layers")
    if isinstance(moe, list):
        return layers - len(moe), part.at("moe_layers")
    interleave = number(part, "interleave_moe_layer_step", "decoder_sparse_step", "expert_layer_period", default=1)
    only = part.get("mlp_only_layers")
    listed = len(only) if isinstance(only, list) else 0
    pattern = part.get("moe_layer_freq")
    if isinstance(pattern, list):
        return sum(1 for item in pattern if item == 0), part.at("moe_layer_freq")
    keys = ("mlp_only_layers", "decoder_sparse_step", "interleave_moe_layer_step", "expert_layer_period")
    known = [key for key in keys if part.get(key) is not None]
    origin = part.at(*known) if known else Origin(default_of="Hugging Face transformers: experts in all layers")
    return layers - layers // interleave + listed, origin
