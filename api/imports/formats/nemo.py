"""NeMo YAML: a trainer of Lightning and a Megatron model, with references between its parts.

Keys: NVIDIA/NeMo-Framework-Launcher `launcher_scripts/conf` and NVIDIA/NeMo `examples/nlp`, read on 2026-11-27.
`accumulate_grad_batches` is not the accumulation, which follows from the global batch.
"""

from gpuplan.api.imports.derived_facts import overrule_epochs, state_accumulation, state_totals
from gpuplan.api.imports.facts import Amount, Origin, TrainingFacts
from gpuplan.api.imports.key_table import Key, as_scalar, count, read_keys, readable, size, words
from gpuplan.api.imports.located_document import Located
from gpuplan.api.imports.reader import Follow, Reader, has
from gpuplan.api.imports.references import resolved

NAME = "NeMo"

TABLE = (
    Key(fact="layers", keys=("model.num_layers",), read=size),
    Key(fact="hidden_size", keys=("model.hidden_size",), read=size),
    Key(fact="ffn_size", keys=("model.ffn_hidden_size",), read=size),
    Key(fact="attention_heads", keys=("model.num_attention_heads",), read=size),
    Key(fact="kv_heads", keys=("model.num_query_groups",), read=size),
    Key(fact="head_size", keys=("model.kv_channels",), read=size),
    Key(fact="experts", keys=("model.num_moe_experts",), read=size),
    Key(fact="active_experts", keys=("model.moe_router_topk",), read=size),
    Key(fact="max_positions", keys=("model.max_position_embeddings",), read=size),
    Key(
        fact="sequence_length",
        keys=("model.encoder_seq_length", "model.data.seq_length", "model.data.train_ds.max_seq_length"),
        read=size,
    ),
    Key(fact="micro_batch", keys=("model.micro_batch_size",), read=size),
    Key(fact="tensor_parallel", keys=("model.tensor_model_parallel_size",), read=size),
    Key(fact="pipeline_parallel", keys=("model.pipeline_model_parallel_size",), read=size),
    Key(fact="context_parallel", keys=("model.context_parallel_size",), read=size),
    Key(fact="expert_parallel", keys=("model.expert_model_parallel_size",), read=size),
    Key(fact="steps", keys=("trainer.max_steps",), read=count),
    Key(fact="optimizer", keys=("model.optim.name",)),
)


def signs(document: Located) -> int:
    """A trainer beside a model whose batch or parallel sizes are spelled as Megatron's."""
    if not (isinstance(document.get("model"), dict) and isinstance(document.get("trainer"), dict)):
        return 0
    keys = ("micro_batch_size", "global_batch_size", "tensor_model_parallel_size", "encoder_seq_length", "num_layers")
    own_keys = has(document, *(f"model.{key}" for key in keys))
    return 8 + own_keys if own_keys else 0


def read(document: Located, facts: TrainingFacts, follow: Follow) -> None:
    """State the keys, then world, batch, precision, method and length of the run."""
    document = resolved(document, facts)
    read_keys(TABLE, document, facts, NAME)
    devices, nodes = as_scalar(document.get("trainer.devices")), as_scalar(document.get("trainer.num_nodes"))
    if isinstance(devices, int) and 0 < devices < 10**4 and isinstance(nodes, int) and 0 < nodes < 10**5:
        facts.put("stated_world_size", devices * nodes, document.at("trainer.devices"))
    batch = readable(size, document.get("model.global_batch_size"), "model.global_batch_size", document, facts)
    if isinstance(batch, int):
        facts.put("global_batch", Amount(batch, "samples"), document.at("model.global_batch_size"))
        state_accumulation(facts, batch)
    _precision(document, facts)
    granularity = document.get("model.activations_checkpoint_granularity")
    if granularity in ("selective", "full"):
        facts.put("checkpointing", granularity, document.at("model.activations_checkpoint_granularity"))
    elif "activations_checkpoint_granularity" in document.value["model"]:
        line = document.lines.get(("model", "activations_checkpoint_granularity"))
        facts.put("checkpointing", "none", Origin(file=document.name, line=line))
    tuned = _method(document, facts)
    epochs = document.get("trainer.max_epochs")
    if isinstance(epochs, int) and epochs > 0:
        overrule_epochs(facts, epochs, document.at("trainer.max_epochs"))
    limit = document.get("trainer.max_time")
    if limit is not None:
        facts.notes.append(f"max_time {str(limit)[:40]} may end the run earlier")
    _names(document, facts)
    if not tuned:
        state_totals(facts)
    kind = str(document.get("run.name") or document.get("name") or "").lower()
    facts.causal = "bert" not in kind


def _precision(document: Located, facts: TrainingFacts) -> None:
    stated = str(document.get("trainer.precision") or "").lower()
    known = {"bf16": "bf16", "bf16-mixed": "bf16", "bf16-true": "bf16", "16": "fp16", "16-mixed": "fp16", "32": "fp32"}
    if stated in known:
        facts.put("precision", known[stated], document.at("trainer.precision"))
    if document.get("model.fp8") is True:
        facts.replace("precision", "fp8", document.at("model.fp8"))


def _method(document: Located, facts: TrainingFacts) -> bool:
    """State the method; true if the run tunes a model."""
    scheme = document.get("model.peft.peft_scheme")
    tuned = isinstance(document.get("model.peft"), dict) or document.get("model.data.train_ds") is not None
    if isinstance(scheme, str) and scheme.lower() not in ("none", "null"):
        method = {"lora": "lora", "qlora": "qlora"}.get(scheme.lower(), f"partial ({scheme[:40]})")
        facts.put("method", method, document.at("model.peft.peft_scheme"))
        if method in ("lora", "qlora"):
            key = "model.peft.lora_tuning.adapter_dim"
            read_keys((Key(fact="lora_rank", keys=(key,), read=size),), document, facts, NAME)
    facts.put("method", "full", Origin(default_of=NAME))
    return tuned


def _names(document: Located, facts: TrainingFacts) -> None:
    for key in ("run.model_train_name", "run.name"):
        value = document.get(key)
        if isinstance(value, str) and "$" not in value:
            facts.put("model_name", words(value), document.at(key))
    for key in ("run.task_name",):
        value = document.get(key)
        if isinstance(value, str) and "$" not in value:
            facts.put("dataset", words(value), document.at(key))


READER = Reader(name=NAME, signs=signs, read=read)
