"""Megatron-LM and Megatron-DeepSpeed arguments, as a launch script gives them.

Arguments and defaults: NVIDIA/Megatron-LM `megatron/training/arguments.py`, read on 2026-11-27.
"""

import re

from gpuplan.api.imports.derived_facts import state_accumulation, state_global_batch, state_totals
from gpuplan.api.imports.facts import Amount, Origin, TrainingFacts
from gpuplan.api.imports.key_table import Key, count, read_keys, readable, size
from gpuplan.api.imports.located_document import Located
from gpuplan.api.imports.reader import Follow, Reader, has

NAME = "Megatron-LM"

TABLE = (
    Key(fact="layers", keys=("num_layers", "encoder_num_layers"), read=size),
    Key(fact="decoder_layers", keys=("decoder_num_layers",), read=size),
    Key(fact="hidden_size", keys=("hidden_size",), read=size),
    Key(fact="ffn_size", keys=("ffn_hidden_size",), read=size),
    Key(fact="attention_heads", keys=("num_attention_heads",), read=size),
    Key(fact="head_size", keys=("kv_channels",), read=size),
    Key(fact="vocabulary_size", keys=("vocab_size", "padded_vocab_size"), read=size),
    Key(fact="experts", keys=("num_experts",), read=size),
    Key(fact="active_experts", keys=("moe_router_topk", "topk"), read=size),
    Key(fact="expert_ffn_size", keys=("moe_ffn_hidden_size",), read=size),
    Key(fact="max_positions", keys=("max_position_embeddings",), read=size),
    Key(fact="sequence_length", keys=("seq_length", "encoder_seq_length"), read=size),
    Key(fact="micro_batch", keys=("micro_batch_size", "batch_size"), read=size),
    Key(fact="tensor_parallel", keys=("tensor_model_parallel_size", "model_parallel_size"), read=size),
    Key(fact="pipeline_parallel", keys=("pipeline_model_parallel_size",), read=size),
    Key(fact="context_parallel", keys=("context_parallel_size",), read=size),
    Key(fact="expert_parallel", keys=("expert_model_parallel_size", "moe_expert_parallel_size"), read=size),
    Key(fact="steps", keys=("train_iters",), read=count),
    Key(fact="samples", keys=("train_samples",), read=count),
    Key(fact="optimizer", keys=("optimizer",), default="adam"),
    Key(fact="dataset", keys=("data_path",)),
)


def signs(document: Located) -> int:
    """Layers and width beside a batch in Megatron's spelling."""
    shape = has(document, "num_layers", "encoder_num_layers", "hidden_size", "num_attention_heads")
    run = has(document, "micro_batch_size", "global_batch_size", "seq_length", "train_iters", "train_samples")
    other = has(document, "model_type", "pos_emb", "pipe_parallel_size", "train_micro_batch_size_per_gpu")
    return 5 + shape + run if shape >= 2 and run >= 2 and not other else 0


def read(document: Located, facts: TrainingFacts, follow: Follow) -> None:
    """State the arguments, then what follows from their presence."""
    _length_of_run(document, facts)
    rows = (
        TABLE if facts.number("tokens") is None else tuple(row for row in TABLE if row.fact not in ("steps", "samples"))
    )
    read_keys(rows, document, facts, NAME)
    if has(document, "group_query_attention", "num_query_groups"):
        read_keys((Key(fact="kv_heads", keys=("num_query_groups",), read=size),), document, facts, NAME)
    for name in ("bf16", "fp16"):
        if document.get(name) is True:
            facts.put("precision", name, document.at(name))
    if document.get("fp8_format") is not None:
        facts.replace("precision", "fp8", document.at("fp8_format"))
    facts.put("precision", "fp32", Origin(default_of=NAME))
    gated = document.get("swiglu") is True
    facts.put("gated_mlp", gated, document.at("swiglu") if gated else Origin(default_of=NAME))
    untied = document.get("untie_embeddings_and_output_weights") is True
    facts.put(
        "tied", not untied, document.at("untie_embeddings_and_output_weights") if untied else Origin(default_of=NAME)
    )
    width = facts.whole("hidden_size")
    if width:
        facts.put("ffn_size", int(8 * width / 3) // 64 * 64 if gated else 4 * width, Origin(default_of=NAME))
    _experts(document, facts)
    _checkpointing(document, facts)
    batch = readable(size, document.get("global_batch_size"), "global_batch_size", document, facts)
    if isinstance(batch, int):
        facts.put("global_batch", Amount(batch, "samples"), document.at("global_batch_size"))
        state_accumulation(facts, batch)
    else:
        facts.put("gradient_accumulation", 1, Origin(default_of=NAME))
        state_global_batch(facts)
    every = readable(count, document.get("save_interval"), "save_interval", document, facts)
    if every is not None:
        facts.put("save_interval", f"{every} steps", document.at("save_interval"))
    facts.put("method", "full", Origin(default_of=NAME))
    if document.get("rampup_batch_size") is not None:
        facts.notes.append("the batch ramps up, so tokens are less than steps x batch")
    elif facts.number("tokens") is None:
        state_totals(facts)


def _length_of_run(document: Located, facts: TrainingFacts) -> None:
    """State tokens, which end a run of Megatron-DeepSpeed; its steps and samples are margins."""
    read_keys((Key(fact="tokens", keys=("train_tokens",), read=count),), document, facts, NAME)


def _experts(document: Located, facts: TrainingFacts) -> None:
    shared = document.get("moe_shared_expert_intermediate_size")
    one, layers = facts.whole("expert_ffn_size") or facts.whole("ffn_size"), facts.whole("layers")
    if not facts.whole("experts") or facts.whole("experts") == 1:
        facts.facts.pop("experts", None)
        return
    if isinstance(shared, int) and one and shared > 0:
        facts.put("shared_experts", max(1, shared // one), document.at("moe_shared_expert_intermediate_size"))
    pattern = re.fullmatch(
        r"\[0\]\*(\d{1,4})\+\[1\]\*(\d{1,4})", str(document.get("moe_layer_freq") or "").replace(" ", "")
    )
    if pattern and layers and int(pattern[1]) <= layers:
        facts.put("dense_layers", int(pattern[1]), document.at("moe_layer_freq"))
    if document.get("multi_latent_attention") is True:
        facts.latent_attention = True
        facts.facts.pop("head_size", None)


def _checkpointing(document: Located, facts: TrainingFacts) -> None:
    granularity = document.get("recompute_granularity")
    if granularity in ("full", "selective"):
        facts.put("checkpointing", str(granularity), document.at("recompute_granularity"))
    elif document.get("recompute_activations") is True:
        facts.put("checkpointing", "selective", document.at("recompute_activations"))
    elif document.get("checkpoint_activations") is True:
        facts.put("checkpointing", "full", document.at("checkpoint_activations"))
    facts.put("checkpointing", "none", Origin(default_of=NAME))
    if document.get("use_megatron_fsdp") is True:
        kind = str(document.get("data_parallel_sharding_strategy") or "optim_grads_params")
        facts.put("sharding", f"Megatron FSDP {kind}"[:80], document.at("use_megatron_fsdp"))
    elif document.get("use_distributed_optimizer") is True:
        facts.put("sharding", "distributed optimizer", document.at("use_distributed_optimizer"))


READER = Reader(name=NAME, signs=signs, read=read)
