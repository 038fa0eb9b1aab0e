"""GPT-NeoX YAML, which is JSON with trailing commas as often.

Keys and defaults: EleutherAI/gpt-neox `megatron/neox_arguments`, `megatron/model/transformer.py`, read on 2026-11-27.
"""

import re

from gpuplan.api.imports.derived_facts import state_global_batch
from gpuplan.api.imports.facts import Origin, TrainingFacts
from gpuplan.api.imports.formats import deepspeed
from gpuplan.api.imports.key_table import Key, as_scalar, count, read_keys, readable, size, words
from gpuplan.api.imports.located_document import Located
from gpuplan.api.imports.reader import Follow, Reader, has

NAME = "GPT-NeoX"

TABLE = (
    Key(fact="layers", keys=("num_layers",), read=size),
    Key(fact="hidden_size", keys=("hidden_size",), read=size),
    Key(fact="attention_heads", keys=("num_attention_heads",), read=size),
    Key(fact="kv_heads", keys=("num_kv_heads",), read=size),
    Key(fact="max_positions", keys=("max_position_embeddings",), read=size),
    Key(fact="sequence_length", keys=("seq_length",), read=size),
    Key(fact="micro_batch", keys=("train_micro_batch_size_per_gpu",), read=size),
    Key(fact="gradient_accumulation", keys=("gradient_accumulation_steps", "gas"), read=size),
    Key(fact="tensor_parallel", keys=("model_parallel_size",), read=size),
    Key(fact="pipeline_parallel", keys=("pipe_parallel_size",), read=size),
    Key(fact="steps", keys=("train_iters",), read=count),
)


def _underscored(document: Located) -> Located:
    """Keys with `_` where the file has `-`; both spellings are taken."""
    value = {key.replace("-", "_"): inner for key, inner in document.value.items()}
    lines = {
        (str(path[0]).replace("-", "_"), *path[1:]) if path else path: line for path, line in document.lines.items()
    }
    return Located(name=document.name, value=value, lines=lines, text=document.text)


def signs(document: Located) -> int:
    """Its own words for parallelism and positions beside layers."""
    document = _underscored(document)
    own_keys = has(
        document, "pipe_parallel_size", "model_parallel_size", "pos_emb", "no_weight_tying", "gpt_j_residual"
    )
    return 8 + own_keys if own_keys >= 2 and has(document, "num_layers", "hidden_size") == 2 else 0


def read(document: Located, facts: TrainingFacts, follow: Follow) -> None:
    """State the keys, then width, precision, sharding and batch."""
    document = _underscored(document)
    read_keys(TABLE, document, facts, NAME)
    for name in ("tensor_parallel", "pipeline_parallel"):
        if facts.whole(name) is None and facts.facts.pop(name, None) is None:
            facts.put(name, 1, Origin(default_of=NAME))
    gated = str(document.get("activation") or "").lower() in ("swiglu", "geglu", "reglu")
    facts.put("gated_mlp", gated, document.at("activation") if gated else Origin(default_of=NAME))
    untied = as_scalar(document.get("no_weight_tying"))
    if isinstance(untied, bool):
        facts.put("tied", not untied, document.at("no_weight_tying"))
    facts.put("tied", True, Origin(default_of=NAME))
    _width(document, facts, gated=gated)
    for name in ("bf16", "fp16"):
        if as_scalar(document.get(f"{name}.enabled")) is True:
            kind = "bf16" if document.get("fp16.type") == "bfloat16" else name
            facts.put("precision", kind, document.at(f"{name}.enabled"))
    stated = document.get("precision")
    if stated in ("bfloat16", "fp16", "fp32"):
        facts.put("precision", "bf16" if stated == "bfloat16" else stated, document.at("precision"))
    kind = document.get("optimizer.type")
    if isinstance(kind, str):
        facts.put("optimizer", kind.lower(), document.at("optimizer.type"))
    if "zero_optimization" in document.value:
        deepspeed.state_zero(document, facts)
    if as_scalar(document.get("checkpoint_activations")) is True:
        facts.put("checkpointing", "full", document.at("checkpoint_activations"))
    facts.put("checkpointing", "none", Origin(default_of=NAME))
    every = readable(count, document.first("checkpoint_factor", "save_interval"), "checkpoint_factor", document, facts)
    if every is not None:
        facts.put("save_interval", f"{every} steps", document.at("checkpoint_factor", "save_interval"))
    if facts.value("micro_batch") is not None:
        facts.put("gradient_accumulation", 1, Origin(default_of=NAME))
        facts.put("method", "full", Origin(default_of=NAME))
    name = re.sub(r"^\d+-(neox-)?|\.ya?ml$", "", document.name.rsplit("/", 1)[-1])
    facts.put("model_name", words(name), Origin(default_of="gpuplan: the name of the file"))
    state_global_batch(facts)


def _width(document: Located, facts: TrainingFacts, *, gated: bool) -> None:
    """State the width of the feed-forward part: with a gate, two thirds of what is stated, halved and rounded up."""
    hidden = facts.whole("hidden_size")
    stated = readable(size, document.get("intermediate_size"), "intermediate_size", document, facts)
    multiple = as_scalar(document.get("mlp_multiple_of"))
    multiple = multiple if isinstance(multiple, int) and 0 < multiple < 10**6 else 1
    if isinstance(stated, int):
        width = -(-int(stated * 2 / 3 / 2) // multiple) * multiple if gated else stated
        because = "two thirds, halved for the gate and rounded up" if gated else ""
        facts.put("ffn_size", width, document.at("intermediate_size", because=because))
    elif hidden:
        width = -(-int(hidden * 8 / 3) // multiple) * multiple if gated else 4 * hidden
        facts.put("ffn_size", width, Origin(default_of=NAME))


READER = Reader(name=NAME, signs=signs, read=read)
