"""axolotl YAML.

Keys and defaults: axolotl-ai-cloud/axolotl `src/axolotl/utils/schemas/{training,config,peft}.py` and
`src/axolotl/utils/config/__init__.py`, read on 2026-11-27.
"""

from gpuplan.api.imports.derived_facts import overrule_epochs, state_global_batch, state_totals
from gpuplan.api.imports.facts import Origin, TrainingFacts
from gpuplan.api.imports.formats import deepspeed, fsdp
from gpuplan.api.imports.key_table import Key, as_scalar, count, read_keys, readable, real, size, words, yes_no
from gpuplan.api.imports.located_document import Located
from gpuplan.api.imports.reader import Follow, Reader, has

NAME = "axolotl"

TABLE = (
    Key(fact="micro_batch", keys=("micro_batch_size",), read=size, default=1),
    Key(fact="gradient_accumulation", keys=("gradient_accumulation_steps",), read=size, default=1),
    Key(fact="sequence_length", keys=("sequence_len",), read=size, default=512),
    Key(fact="steps", keys=("max_steps",), read=count),
    Key(fact="optimizer", keys=("optimizer",), default="adamw_torch_fused"),
    Key(fact="packing", keys=("sample_packing",), read=yes_no, default=False),
    Key(fact="model_name", keys=("base_model",)),
    Key(fact="tensor_parallel", keys=("tensor_parallel_size",), read=size),
    Key(fact="context_parallel", keys=("context_parallel_size", "sequence_parallel_degree"), read=size),
    Key(fact="expert_parallel", keys=("expert_parallel_size",), read=size),
)


def signs(document: Located) -> int:
    """`base_model` with a batch or a length of its own spelling."""
    own_keys = has(
        document, "sequence_len", "micro_batch_size", "sample_packing", "lora_target_linear", "pretraining_dataset"
    )
    base = has(document, "base_model")
    if document.get("_component_") or has(document, "trainer", "model.micro_batch_size"):
        return 0
    return 5 * base + 3 * own_keys + has(document, "num_epochs", "adapter", "datasets") if base and own_keys else 0


def read(document: Located, facts: TrainingFacts, follow: Follow) -> None:
    """State the keys, then precision, method, data, sharding and length of the run."""
    read_keys(TABLE, document, facts, NAME)
    _world(document, facts)
    _precision(document, facts)
    epochs = readable(real, document.get("num_epochs"), "num_epochs", document, facts)
    if epochs is not None:
        overrule_epochs(facts, epochs, document.at("num_epochs"))
    elif facts.number("steps") is None:
        facts.put("epochs", 1.0, Origin(default_of=NAME))
    _saving(document, facts)
    checkpointing = document.get("gradient_checkpointing")
    if isinstance(checkpointing, bool):
        facts.put("checkpointing", "full" if checkpointing else "none", document.at("gradient_checkpointing"))
    elif checkpointing in ("offload", "offload_disk", "unsloth"):
        facts.put("checkpointing", "offloaded", document.at("gradient_checkpointing"))
    facts.put("checkpointing", "none", Origin(default_of=NAME))
    stage = _method(document, facts)
    _dataset(document, facts)
    _sharding(document, facts, follow)
    completion = as_scalar(document.get("trl.max_completion_length"))
    if stage == "grpo" and isinstance(completion, int) and 0 < completion < 10**7:
        facts.completion_tokens = completion
    units = dict.fromkeys(("dpo", "orpo", "ipo"), "samples (pairs)") | {"grpo": "completions"}
    state_global_batch(facts, units.get(stage, "samples"))
    if document.get("pretraining_dataset"):
        state_totals(facts)


def _world(document: Located, facts: TrainingFacts) -> None:
    """Processes by the sizes of the mesh, where they are stated."""
    names = ("dp_replicate_size", "dp_shard_size", "context_parallel_size", "tensor_parallel_size")
    sizes = [document.get(name) for name in names]
    if (
        isinstance(sizes[1], int)
        and all(s is None or (isinstance(s, int) and 0 < s < 10**5) for s in sizes)
        and sizes[1]
    ):
        world = 1
        for one in sizes:
            world *= one or 1
        facts.put("stated_world_size", world, document.at("dp_shard_size", because="product of the mesh"))


def _precision(document: Located, facts: TrainingFacts) -> None:
    for name in ("bf16", "bfloat16", "fp16", "float16"):
        value = as_scalar(document.get(name))
        short = {"bfloat16": "bf16", "float16": "fp16"}.get(name, name)
        if value == "auto" and short == "bf16":
            facts.put("precision", "bf16 if the chip has it, else fp16 (auto)", document.at(name))
        elif value in (True, "full"):
            facts.put("precision", short, document.at(name))
    if as_scalar(document.get("fp8")) is True:
        facts.replace("precision", "fp8", document.at("fp8"))
    facts.put("precision", "bf16 if the chip has it, else fp16 (auto)", Origin(default_of=NAME))


def _saving(document: Located, facts: TrainingFacts) -> None:
    per_epoch, steps = document.get("saves_per_epoch"), document.get("save_steps")
    if isinstance(per_epoch, int | float) and per_epoch > 0:
        facts.put("save_interval", f"{per_epoch:g} per epoch", document.at("saves_per_epoch"))
    elif isinstance(steps, int | float) and not isinstance(steps, bool) and steps > 0:
        facts.put(
            "save_interval", f"{steps:g} steps" if steps >= 1 else f"{steps:g} of all steps", document.at("save_steps")
        )
    strategy = document.get("save_strategy")
    if strategy in ("epoch", "no", "best"):
        facts.put("save_interval", {"epoch": "1 per epoch"}.get(strategy, "none"), document.at("save_strategy"))
    facts.put("save_interval", "500 steps", Origin(default_of="Hugging Face TrainingArguments"))


def _method(document: Located, facts: TrainingFacts) -> str:
    adapter = document.get("adapter")
    bits = as_scalar(document.get("load_in_4bit")) is True
    eight = as_scalar(document.get("load_in_8bit")) is True
    method = "full"
    if adapter in ("lora", "qlora", "dora"):
        method = "qlora" if adapter == "qlora" or bits else "lora"
        read_keys((Key(fact="lora_rank", keys=("lora_r",), read=size),), document, facts, NAME)
        modules = document.get("lora_target_modules")
        names = {str(module) for module in modules} if isinstance(modules, list) else set()
        narrow = names and names <= {"q_proj", "v_proj", "query_key_value", "c_attn", "q", "v"}
        facts.adapters_on = "query_value" if narrow and not document.get("lora_target_linear") else "all"
    elif adapter is not None:
        facts.not_understood.append(
            f"{document.at('adapter')}: adapter {str(adapter)[:40]!r}; known are lora and qlora"
        )
        method = f"partial ({str(adapter)[:40]})"
    if eight and method == "lora":
        facts.notes.append("the frozen weights are loaded at 8 bit; planned at 16 bit, so memory is an upper bound")
    if isinstance(document.get("unfrozen_parameters"), list) and document.get("unfrozen_parameters"):
        method = "partial (unfrozen_parameters)"
    rl = document.get("rl")
    stage = str(rl).lower() if isinstance(rl, str) else ""
    if as_scalar(document.get("reward_model")) is True:
        stage = "reward"
    origin = document.at("adapter") if adapter is not None else Origin(default_of=NAME)
    if stage:
        origin = document.at("rl", "reward_model")
        method = stage if stage == "grpo" and method == "full" else f"{stage} ({method})"
    facts.put("method", method, origin)
    return stage


def _dataset(document: Located, facts: TrainingFacts) -> None:
    for key in ("pretraining_dataset", "datasets"):
        listed = document.get(key)
        first = listed[0] if isinstance(listed, list) and listed else listed
        if isinstance(first, str):
            first = {"path": first}
        if isinstance(first, dict) and isinstance(first.get("path"), str):
            detail = first.get("name") or (first.get("split") if first.get("split") != "train" else None)
            name = f"{first['path']} {detail}" if isinstance(detail, str) else first["path"]
            facts.put("dataset", words(name), document.at(key))
            for one in listed if isinstance(listed, list) else [first]:
                data = one.get("data_files") or one.get("path") if isinstance(one, dict) else one
                facts.dataset_files += [
                    file for file in (data if isinstance(data, list) else [data]) if isinstance(file, str)
                ]
            break


def _sharding(document: Located, facts: TrainingFacts, follow: Follow) -> None:
    named = document.get("deepspeed")
    if isinstance(named, str) and named and not follow.file(named, facts):
        facts.put("sharding", "deepspeed, from included file", document.at("deepspeed"))
    elif isinstance(named, dict):
        deepspeed.read(document.under("deepspeed"), facts, follow)
    if as_scalar(document.get("activation_offloading")) in (True, "legacy", "disk"):
        facts.put("offload", "activations", document.at("activation_offloading"))
    strategies = document.get("fsdp")
    listed = [str(item) for item in strategies] if isinstance(strategies, list) else str(strategies or "").split()
    known = next((word for word in listed if word in fsdp.STRATEGIES.values()), "")
    if known:
        facts.put("sharding", f"fsdp {known}", document.at("fsdp"))
    if isinstance(document.get("fsdp_config"), dict):
        fsdp.state_sharding(document, "fsdp_config", facts, version=document.get("fsdp_version"))
        if facts.value("offload") == "none":
            # Not offloaded is what a run without the key does, too.
            facts.facts.pop("offload")


READER = Reader(name=NAME, signs=signs, read=read)
