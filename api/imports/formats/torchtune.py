"""torchtune YAML: model and method are in the names of components.

Keys: pytorch/torchtune `recipes/*.py` and `recipes/configs`, read on 2026-11-27.
"""

import re
from typing import Any

from gpuplan.api.imports.derived_facts import state_global_batch
from gpuplan.api.imports.facts import Amount, Origin, PerWorld, TrainingFacts
from gpuplan.api.imports.key_table import Key, count, read_keys, readable, real, size, yes_no
from gpuplan.api.imports.located_document import Located
from gpuplan.api.imports.reader import Follow, Reader, has
from gpuplan.api.imports.references import resolved

NAME = "torchtune"

TABLE = (
    Key(fact="micro_batch", keys=("batch_size",), read=size),
    Key(fact="gradient_accumulation", keys=("gradient_accumulation_steps",), read=size),
    Key(fact="sequence_length", keys=("tokenizer.max_seq_len", "dataset.max_seq_len"), read=size),
    Key(fact="tensor_parallel", keys=("tensor_parallel_dim",), read=size),
    Key(fact="context_parallel", keys=("context_parallel_dim",), read=size),
    Key(fact="steps", keys=("num_steps",), read=count),
    Key(fact="packing", keys=("dataset.packed",), read=yes_no),
)
_METHOD = re.compile(r"^(qlora|lora|dora|qdora)_(?=.)")


def signs(document: Located) -> int:
    """Components, which torchtune names by module."""
    parts = ("model", "tokenizer", "dataset", "checkpointer", "optimizer")
    sign_count = sum(isinstance(document.get(f"{part}._component_"), str) for part in parts)
    return 10 + sign_count if sign_count or document.get("tune_config") else 0


def read(document: Located, facts: TrainingFacts, follow: Follow) -> None:
    """State the keys, then what the components' names say."""
    document = resolved(document, facts)
    read_keys(TABLE, document, facts, NAME)
    if (
        document.get("model")
        and "gradient_accumulation_steps" not in document.value
        and not has(document, "grpo_samples")
    ):
        facts.put("gradient_accumulation", 1, Origin(default_of=NAME))
    precision = document.get("dtype")
    if isinstance(precision, str) and precision in ("bf16", "fp16", "fp32"):
        facts.put("precision", precision, document.at("dtype"))
    optimizer = document.get("optimizer._component_")
    if isinstance(optimizer, str):
        facts.put("optimizer", optimizer.rsplit(".", 1)[-1].lower(), document.at("optimizer._component_"))
    epochs = readable(real, document.get("epochs"), "epochs", document, facts)
    if isinstance(epochs, int | float) and epochs > 0:
        facts.put("epochs", epochs, document.at("epochs"))
        most = readable(count, document.get("max_steps_per_epoch"), "max_steps_per_epoch", document, facts)
        if isinstance(most, int):
            facts.put(
                "steps", int(most * epochs), document.at("max_steps_per_epoch", because="steps of an epoch x epochs")
            )
    _checkpointing(document, facts)
    _dataset(document, facts)
    stage = _model(document, facts) if document.get("model") else _by_name(document, facts)
    _batch(document, facts, stage)


def _checkpointing(document: Located, facts: TrainingFacts) -> None:
    for key, fact, on in (
        ("enable_activation_checkpointing", "checkpointing", "full"),
        ("fsdp_cpu_offload", "offload", "parameters"),
    ):
        value = readable(yes_no, document.get(key), key, document, facts)
        if value is not None and (fact == "checkpointing" or value):
            facts.put(fact, on if value else "none", document.at(key))
    if document.get("enable_activation_offloading") is True:
        facts.put("offload", "activations", document.at("enable_activation_offloading"))
    if document.get("data_parallel_shard_dim") == -1:
        facts.put("sharding", "fsdp over the rest (-1)", document.at("data_parallel_shard_dim"))
    every = readable(count, document.get("save_every_n_epochs"), "save_every_n_epochs", document, facts)
    if every is not None:
        text = "1 per epoch" if every == 1 else f"1 per {every} epochs"
        facts.put("save_interval", text, document.at("save_every_n_epochs"))


def _dataset(document: Located, facts: TrainingFacts) -> None:
    part = document.get("dataset")
    key = "dataset"
    if isinstance(part, list) and part:
        part, key = part[0], "dataset.0"
    if isinstance(part, dict) and isinstance(part.get("_component_"), str):
        name = part["_component_"].rsplit(".", 1)[-1].removesuffix("_dataset")
        source: Any = part.get("source")
        name = (
            source
            if name in ("instruct", "chat", "text_completion", "preference") and isinstance(source, str)
            else name
        )
        split = part.get("split")
        detail = f" {split}" if isinstance(split, str) and split != "train" else ""
        facts.put("dataset", f"{name}{detail}"[:200], document.at(f"{key}._component_"))


def _model(document: Located, facts: TrainingFacts) -> str:
    """State model and method of the component's name; return the stage."""
    component = document.get("model._component_")
    name = component.rsplit(".", 1)[-1] if isinstance(component, str) else ""
    method = "full"
    if match := _METHOD.match(name):
        method = "qlora" if match[1].startswith("q") else "lora"
        name = name[match.end() :]
        read_keys((Key(fact="lora_rank", keys=("model.lora_rank",), read=size),), document, facts, NAME)
    origin = document.at("model._component_")
    if name:
        facts.put("model_name", name, origin)
    stage = "grpo" if has(document, "grpo_samples") else ""
    loss = str(document.get("loss._component_") or "").rsplit(".", 1)[-1].lower()
    stage = stage or ("dpo" if loss.startswith(("dpo", "rso", "simpo")) else "")
    stage = stage or ("ppo" if loss.startswith("ppo") else "")
    if name:
        facts.put("method", stage if stage == "grpo" else f"{stage} ({method})" if stage else method, origin)
    return stage


def _by_name(document: Located, facts: TrainingFacts) -> str:
    """State model and method of a configuration that comes with torchtune, `llama3_1/8B_lora`; return the stage."""
    config = str(document.get("tune_config") or "")
    match = re.fullmatch(r"([\w.]+)/([\d.]+[BM])_(full|lora|qlora|dora|qdora)(_dpo)?(?:_\w+)?", config)
    facts.missing_files.append(f"{config[:100]} (of torchtune)")
    if match is None:
        return ""
    origin = document.at("tune_config")
    method = {"dora": "lora", "qdora": "qlora"}.get(match[3], match[3])
    size_text = match[2].lower().replace(".", "_")
    facts.put("model_name", f"{match[1]}_{size_text}", origin)
    facts.put("method", f"dpo ({method})" if match[4] else method, origin)
    return "dpo" if match[4] else ""


def _batch(document: Located, facts: TrainingFacts, stage: str) -> None:
    if stage == "grpo":
        samples = document.get("grpo_samples")
        micro = facts.number("micro_batch")
        answer = document.get("max_generated_tokens")
        if isinstance(answer, int) and 0 < answer < 10**7:
            facts.completion_tokens = answer
        if isinstance(samples, int) and 0 < samples < 10**6 and micro:
            facts.put("global_batch", Amount(PerWorld(micro * samples), "completions"), document.at("grpo_samples"))
        return
    micro, accumulation = facts.number("micro_batch"), facts.number("gradient_accumulation")
    if "single_device" in str(document.get("tune_recipe")):
        facts.put("stated_world_size", 1, document.at("tune_recipe"))
    single = re.search(r"tune run\s+(?:--?\S+\s+)*\S*single_device", document.text)
    if single and micro and accumulation and "global_batch" not in facts.facts:
        line = document.text[: single.start()].count("\n") + 1
        origin = Origin(file=document.name, line=line, because="one device, by the recipe that a comment names")
        facts.put("global_batch", Amount(micro * accumulation, "samples"), origin)
    state_global_batch(facts, "samples (pairs)" if stage == "dpo" else "samples")


READER = Reader(name=NAME, signs=signs, read=read)
