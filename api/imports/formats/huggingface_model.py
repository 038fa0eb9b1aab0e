"""Hugging Face `config.json`: the dimensions of a model, with the defaults of its family.

Keys and defaults: huggingface/transformers, `src/transformers/models/*/configuration_*.py`, read on 2026-11-27.
"""

from dataclasses import dataclass
from typing import Any

from gpuplan.api.imports.facts import Origin, TrainingFacts
from gpuplan.api.imports.key_table import Key, read_keys, size, words, yes_no
from gpuplan.api.imports.located_document import Located
from gpuplan.api.imports.model_families import expert_layers, families
from gpuplan.api.imports.parameter_count import parameter_count
from gpuplan.api.imports.reader import Follow, Reader, has

NAME = "Hugging Face model"

LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "decoder_layers")
WIDTH = ("hidden_size", "n_embd", "d_model", "dim", "model_dim", "hidden_dim")
#: Nested parts that hold the sizes of the language model, the first that has a width.
_NESTED = (
    "text_config",
    "language_config",
    "llm_config",
    "thinker_config.text_config",
    "text_model_config",
    "decoder",
    "language_model_config",
)

TABLE = (
    Key(fact="layers", keys=LAYERS, read=size),
    Key(fact="hidden_size", keys=WIDTH, read=size),
    Key(
        fact="attention_heads",
        keys=(
            "num_attention_heads",
            "n_head",
            "n_heads",
            "num_heads",
            "encoder_attention_heads",
            "decoder_attention_heads",
            "attention_heads",
        ),
        read=size,
    ),
    Key(fact="vocabulary_size", keys=("vocab_size", "padded_vocab_size", "n_vocab"), read=size),
    Key(
        fact="experts",
        keys=(
            "num_local_experts",
            "num_experts",
            "n_routed_experts",
            "moe_num_experts",
            "ffn_config.moe_num_experts",
            "num_routed_experts",
        ),
        read=size,
    ),
    Key(
        fact="active_experts",
        keys=(
            "num_experts_per_tok",
            "num_experts_per_token",
            "experts_per_token",
            "top_k_experts",
            "moe_topk",
            "moe_top_k",
            "moe_k",
            "ffn_config.moe_top_k",
            "num_selected_experts",
        ),
        read=size,
    ),
    Key(
        fact="max_positions",
        keys=(
            "max_position_embeddings",
            "n_positions",
            "n_ctx",
            "max_sequence_length",
            "max_target_positions",
            "max_seq_len",
            "seq_length",
        ),
        read=size,
    ),
    Key(fact="stored_dtype", keys=("torch_dtype", "dtype"), read=words),
    Key(fact="model_name", keys=("_name_or_path",), read=words),
)


def signs(document: Located) -> int:
    """A model says its type or architecture beside its sizes; old files state sizes alone."""
    parts = [document.value, *(document.get(part) for part in _NESTED)]
    sized = any(isinstance(part, dict) and any(w in part for w in WIDTH) for part in parts)
    typed = has(document, "model_type", "architectures", "transformers_version")
    tool = has(document, "base_model", "trainer", "per_device_train_batch_size", "train_micro_batch_size_per_gpu")
    gpt2 = has(document, "n_embd", "n_layer", "n_head", "vocab_size", "initializer_range")
    if tool or not sized:
        return 0
    return 10 + typed if typed else gpt2 if gpt2 >= 3 else 0


@dataclass(frozen=True, slots=True)
class _Part:
    """The part of a configuration that describes the language model, and the whole for what stands only outside."""

    part: Located
    whole: Located

    def first(self, *paths: str) -> Any:
        value = self.part.first(*paths)
        return self.whole.first(*paths) if value is None else value


def language_part(document: Located) -> Located:
    """The part that holds the sizes of the language model."""
    for name in _NESTED:
        part = document.get(name)
        if isinstance(part, dict) and any(part.get(width) is not None for width in WIDTH):
            prefix = tuple(name.split("."))
            lines = {
                path[len(prefix) :]: line for path, line in document.lines.items() if path[: len(prefix)] == prefix
            }
            return Located(name=document.name, value=part, lines=lines, text=document.text)
    return document


def read(document: Located, facts: TrainingFacts, follow: Follow) -> None:
    """State the dimensions, then what follows from the family, then the parameters."""
    part = language_part(document)
    read_keys(TABLE, part, facts, "Hugging Face transformers")
    if part is not document:
        read_keys(TABLE[-2:], document, facts, "Hugging Face transformers")
    both = _Part(part, document)
    kind = str(both.part.get("model_type") or document.get("model_type") or "").lower()
    family = families(kind)
    _dimensions(both, kind, facts)
    _yes_no_facts(both, kind, facts)
    expert_layers(both.part, kind, facts)
    facts.causal = family.causal
    if has(document, "auto_map"):
        facts.notes.append("the model has code of its own (auto_map), which was not read or run")
    if has(document, "quantization_config"):
        facts.notes.append("quantization_config says how the weights are stored, not how they are trained")
    parameter_count(part, document, kind, facts)


def _dimensions(both: _Part, kind: str, facts: TrainingFacts) -> None:
    part = both.part
    hidden, heads = facts.whole("hidden_size"), facts.whole("attention_heads")
    _decoder_layers(both, kind, facts)
    if kind.startswith(("t5", "mt5", "umt5", "longt5", "switch_transformers")):
        facts.facts.pop("max_positions", None)
    _feed_forward_width(part, hidden, facts)
    if part.get("multi_query") is True and not part.get("num_kv_heads") and not part.get("new_decoder_architecture"):
        facts.put("kv_heads", 1, part.at("multi_query"))
    table = [
        Key(
            fact="kv_heads",
            keys=(
                "num_key_value_heads",
                "n_head_kv",
                "num_kv_heads",
                "n_kv_heads",
                "multi_query_group_num",
                "attn_config.kv_n_heads",
            ),
            read=size,
        ),
        Key(fact="head_size", keys=("head_dim", "attention_head_dim", "d_kv", "kv_channels", "head_size"), read=size),
    ]
    if part.get("kv_lora_rank"):
        facts.latent_attention = True
        nope, rope = part.get("qk_nope_head_dim"), part.get("qk_rope_head_dim")
        if isinstance(nope, int) and isinstance(rope, int) and nope + rope > 0:
            origin = part.at("qk_nope_head_dim", because="qk_nope_head_dim + qk_rope_head_dim")
            facts.put("head_size", nope + rope, origin)
    read_keys(table, part, facts, "Hugging Face transformers")
    if heads and not part.get("block_configs"):
        facts.put("kv_heads", heads, Origin(default_of="Hugging Face transformers: as many as attention heads"))
    if hidden and heads and hidden % heads == 0:
        facts.put("head_size", hidden // heads, Origin(default_of="Hugging Face transformers: width / heads"))


def _decoder_layers(both: _Part, kind: str, facts: TrainingFacts) -> None:
    part = both.part
    encoder_decoder = both.first("is_encoder_decoder") is True or families(kind).encoder_decoder
    if not encoder_decoder or "decoder_only" in kind:
        return
    table = (Key(fact="decoder_layers", keys=("num_decoder_layers", "decoder_layers"), read=size),)
    read_keys(table, part, facts, "Hugging Face transformers")
    layers = facts.whole("layers")
    if layers and kind:
        facts.put("decoder_layers", layers, Origin(default_of="Hugging Face transformers: as many as the encoder"))


def _feed_forward_width(part: Located, hidden: int | None, facts: TrainingFacts) -> None:
    keys = (
        "intermediate_size",
        "n_inner",
        "d_ff",
        "ffn_dim",
        "encoder_ffn_dim",
        "decoder_ffn_dim",
        "ffn_hidden_size",
        "ffn_config.ffn_hidden_size",
        # DistilBERT: dim is the width.
        *(("hidden_dim",) if has(part, "dim") else ()),
    )
    read_keys((Key(fact="ffn_size", keys=keys, read=size),), part, facts, "Hugging Face transformers")
    ratio = part.first("expansion_ratio", "mlp_ratio")
    absent = "n_inner" in part.value or has(part, "n_embd", "expansion_ratio") or part.get("model_type") in _FOUR_TIMES
    if hidden and absent and not part.get("block_configs"):
        times = ratio if isinstance(ratio, int | float) and 0 < ratio < 100 else 4
        facts.put("ffn_size", int(times * hidden), Origin(default_of="Hugging Face transformers: 4 x width"))


#: Models without a key for the feed-forward width: four times the width of the model.
_FOUR_TIMES = {
    "gpt2",
    "gptj",
    "gpt_neo",
    "bloom",
    "falcon",
    "mpt",
    "codegen",
    "gpt_bigcode",
    "RefinedWebModel",
    "RefinedWeb",
}


def _yes_no_facts(both: _Part, kind: str, facts: TrainingFacts) -> None:
    family = families(kind)
    part = both.part
    projection = part.get("feed_forward_proj")
    if isinstance(projection, str):
        facts.put("gated_mlp", projection.startswith("gated"), part.at("feed_forward_proj"))
    elif isinstance(part.get("is_gated_act"), bool):
        facts.put("gated_mlp", part.get("is_gated_act"), part.at("is_gated_act"))
    gated = family.gated if kind else has(part, "n_embd") == 0
    facts.put("gated_mlp", gated, Origin(default_of=f"Hugging Face transformers: {kind or 'GPT-2'}"))
    if family.has_head:
        where = part if part.get("tie_word_embeddings") is not None else both.whole
        read_keys((Key(fact="tied", keys=("tie_word_embeddings",), read=yes_no),), where, facts, "")
        tied = family.tied if kind else has(part, "n_embd") > 0
        facts.put("tied", tied, Origin(default_of=f"Hugging Face transformers: {kind or 'GPT-2'}"))


READER = Reader(name=NAME, signs=signs, read=read)
