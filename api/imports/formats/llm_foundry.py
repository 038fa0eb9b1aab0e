"""LLM Foundry YAML: units stand in the value (`63900ba`, `1ep`, `300tok`).

Keys: mosaicml/llm-foundry `scripts/train/yamls` and `llmfoundry/models/mpt`, read on 2026-11-27.
"""

import re

from gpuplan.api.imports.derived_facts import state_totals
from gpuplan.api.imports.facts import Amount, Origin, TrainingFacts
from gpuplan.api.imports.key_table import Key, read_keys, readable, real, size, words
from gpuplan.api.imports.located_document import Located
from gpuplan.api.imports.parameter_count import parameter_count
from gpuplan.api.imports.reader import Follow, Reader, has
from gpuplan.api.imports.references import resolved

NAME = "LLM Foundry"

TABLE = (
    Key(fact="layers", keys=("model.n_layers",), read=size),
    Key(fact="hidden_size", keys=("model.d_model",), read=size),
    Key(fact="attention_heads", keys=("model.n_heads",), read=size),
    Key(fact="kv_heads", keys=("model.attn_config.kv_n_heads",), read=size),
    Key(fact="vocabulary_size", keys=("model.vocab_size",), read=size),
    Key(fact="sequence_length", keys=("max_seq_len", "model.max_seq_len"), read=size),
    Key(fact="micro_batch", keys=("device_train_microbatch_size",), read=size),
    Key(fact="precision", keys=("precision",)),
    Key(fact="optimizer", keys=("optimizer.name",)),
    Key(fact="model_name", keys=("model.pretrained_model_name_or_path",)),
)
_UNITS = {"ba": "steps", "ep": "epochs", "tok": "tokens", "sp": "samples"}


def signs(document: Located) -> int:
    """Its words for the batch and the length of the run."""
    own_keys = has(document, "max_duration", "global_train_batch_size", "device_train_microbatch_size", "train_loader")
    return 6 + own_keys if own_keys >= 2 else 0


def read(document: Located, facts: TrainingFacts, follow: Follow) -> None:
    """State the keys, then width, batch, length, sharding and the parameters of its own models."""
    document = resolved(document, facts)
    read_keys(TABLE, document, facts, NAME)
    hidden = facts.whole("hidden_size")
    ratio = readable(real, document.get("model.expansion_ratio"), "model.expansion_ratio", document, facts)
    if hidden and isinstance(ratio, int | float) and 0 < ratio < 1000:
        facts.put("ffn_size", int(hidden * ratio), document.at("model.expansion_ratio", because="times the width"))
    elif hidden:
        facts.put("ffn_size", 4 * hidden, Origin(default_of=NAME))
    gated = str(document.get("model.ffn_config.ffn_type") or "").endswith("glu")
    if hidden:
        facts.put("gated_mlp", gated, document.at("model.ffn_config.ffn_type") if gated else Origin(default_of=NAME))
        facts.put("tied", True, Origin(default_of=NAME))
        parameter_count(document.under("model"), document, "mpt", facts)
    batch = readable(size, document.get("global_train_batch_size"), "global_train_batch_size", document, facts)
    if isinstance(batch, int):
        facts.put("global_batch", Amount(batch, "samples"), document.at("global_train_batch_size"))
    length = re.fullmatch(r"(\d{1,18})(ba|ep|tok|sp)", str(document.get("max_duration") or ""))
    if length:
        facts.put(_UNITS[length[2]], int(length[1]), document.at("max_duration"))
    peft = document.first("model.peft_config.peft_type", "model.peft_config")
    facts.put(
        "method", "lora" if peft else "full", document.at("model.peft_config") if peft else Origin(default_of=NAME)
    )
    strategy = document.get("fsdp_config.sharding_strategy")
    if isinstance(strategy, str):
        facts.put("sharding", f"fsdp {strategy.lower()}"[:60], document.at("fsdp_config.sharding_strategy"))
    on = document.get("fsdp_config.activation_checkpointing")
    if isinstance(on, bool):
        facts.put("checkpointing", "full" if on else "none", document.at("fsdp_config.activation_checkpointing"))
    interval = document.get("save_interval")
    every = re.fullmatch(r"(\d{1,12})(ba|ep)", str(interval or ""))
    if every:
        text = f"{every[1]} steps" if every[2] == "ba" else f"{every[1]} per epoch"
        facts.put("save_interval", text, document.at("save_interval"))
    for key in ("hf_name", "remote", "local"):
        data = document.get(f"train_loader.dataset.{key}")
        if isinstance(data, str) and "$" not in data:
            facts.put("dataset", words(data), document.at(f"train_loader.dataset.{key}"))
    name = re.sub(r"^\d+-(foundry-)?|\.ya?ml$", "", document.name.rsplit("/", 1)[-1])
    facts.put("model_name", words(name), Origin(default_of="gpuplan: the name of the file"))
    if has(document, "train_loader.name") and document.get("train_loader.name") == "text":
        state_totals(facts)


READER = Reader(name=NAME, signs=signs, read=read)
