"""Arguments of the Hugging Face Trainer and of TRL's scripts, as YAML, JSON or flags.

Keys and defaults: huggingface/transformers `src/transformers/training_args.py`; huggingface/trl
`trl/trainer/{base,sft,dpo,grpo}_config.py`; huggingface/peft `src/peft/utils/constants.py`; read on 2026-11-27.
"""

import re
from typing import Any

from gpuplan.api.imports.adapters import RANKS, SWITCHES, is_on, state_method
from gpuplan.api.imports.derived_facts import overrule_epochs, state_global_batch
from gpuplan.api.imports.facts import Origin, TrainingFacts
from gpuplan.api.imports.key_table import Key, as_scalar, count, read_keys, readable, real, size, words, yes_no
from gpuplan.api.imports.located_document import Located
from gpuplan.api.imports.reader import Follow, Reader, has

_FRAMEWORK = "Hugging Face TrainingArguments"
_TRL = "TRL"
#: Command line parameters: swift.readthedocs.io, v3.9; weights are trained in the type that they are loaded in.
_SWIFT = "ms-swift"
#: The scripts beside transformers take `dataset_name` as TRL's do, and these, which TRL's do not.
_EXAMPLE_SIGNS = (
    "do_train",
    "dataset_config_name",
    "block_size",
    "doc_stride",
    "task_name",
    "validation_split_percentage",
)
_SWIFT_SIGNS = ("train_type", "tuner_type", "sft_type")

TABLE = (
    Key(fact="micro_batch", keys=("per_device_train_batch_size", "per_gpu_train_batch_size"), read=size, default=8),
    Key(fact="gradient_accumulation", keys=("gradient_accumulation_steps",), read=size, default=1),
    Key(fact="steps", keys=("max_steps",), read=count),
    Key(fact="optimizer", keys=("optim",), default="adamw_torch"),
    Key(fact="packing", keys=("packing",), read=yes_no),
    Key(fact="model_name", keys=("model_name_or_path", "model_id", "model_name", "base_model", "model")),
)
LENGTHS = (
    "max_length",
    "max_seq_length",
    "max_seq_len",
    "model_max_length",
    "cutoff_len",
    "block_size",
    "max_source_length",
)
_TRL_SIGNS = (
    "dataset_mixer",
    "dataset_mixture",
    "use_peft",
    "num_generations",
    "max_completion_length",
    "max_prompt_length",
    "attn_implementation",
    "packing",
    "dataset_train_split",
)
_SIGNS = (
    "per_device_train_batch_size",
    "num_train_epochs",
    "output_dir",
    "save_steps",
    "logging_steps",
    "learning_rate",
)
#: The second is Unsloth's.
_CHECKPOINTING = ("gradient_checkpointing", "use_gradient_checkpointing")
#: Stages by the words that names of runs hold, for scripts whose stage is no key.
_STAGES = ("orpo", "kto", "simpo", "cpo", "dpo")


def signs(document: Located) -> int:
    """Its keys are flat; two of them are needed, and the batch is the surest."""
    sign_count = has(document, *_SIGNS) + 2 * has(document, "per_device_train_batch_size", "model_name_or_path")
    return sign_count if sign_count >= 2 else 0


def read(document: Located, facts: TrainingFacts, follow: Follow) -> None:
    """State what the arguments say, then method, stage, data and what they include."""
    example = has(document, *_EXAMPLE_SIGNS) > 0
    trl = has(document, *_TRL_SIGNS) > 0 or (has(document, "dataset_name") > 0 and not example)
    swift = has(document, *_SWIFT_SIGNS) > 0
    framework = _SWIFT if swift else _TRL if trl else _FRAMEWORK
    stage = _stage(document, facts)
    _length(document, facts, stage, trl)
    read_keys(TABLE, document, facts, framework)
    loaded = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}.get(str(document.get("torch_dtype")))
    if swift and loaded:
        facts.put("precision", loaded, document.at("torch_dtype"))
    state_precision(document, facts, framework, "bf16" if trl or swift else "fp32")
    _epochs(document, facts)
    state_saving(document, facts)
    switch = next((key for key in _CHECKPOINTING if has(document, key)), "")
    if switch and document.get(switch) == "unsloth":
        facts.put("checkpointing", "offloaded", document.at(switch))
    elif switch:
        value = readable(yes_no, document.get(switch), switch, document, facts)
        if value is not None:
            facts.put("checkpointing", "full" if value else "none", document.at(switch))
    else:
        facts.put("checkpointing", "full" if trl or swift else "none", Origin(default_of=framework))
    _method(document, facts, framework, stage, trl)
    state_dataset(document, facts)
    follow_sharding(document, facts, follow)
    unit = {"dpo": "samples (pairs)", "orpo": "samples (pairs)", "grpo": "completions"}.get(stage, "samples")
    state_global_batch(facts, unit)


def _stage(document: Located, facts: TrainingFacts) -> str:
    """The stage: group-relative training by its keys; training on pairs by keys and the names of the run."""
    if has(document, "num_generations", "reward_funcs", "max_completion_length", "num_generation"):
        completion = as_scalar(document.get("max_completion_length"))
        if isinstance(completion, int) and 0 < completion < 10**7:
            facts.completion_tokens = completion
        if as_scalar(document.get("use_vllm")) is True:
            facts.notes.append("use_vllm: GPUs that generate do not train, and generation is extra time")
        return "grpo"
    stated = document.first("rl", "rlhf_type", "trainer_type", "loss_type_name")
    if isinstance(stated, str) and stated.lower() in (*_STAGES, "grpo", "ppo"):
        return stated.lower()
    if not has(document, "beta", "max_prompt_length", "pref_beta"):
        return ""
    names = [str(document.first(k) or "") for k in ("hub_model_id", "output_dir", "run_name", "trainer")]
    text = " ".join([*names, document.name]).lower()
    named = next((stage for stage in _STAGES if re.search(rf"(^|[^a-z]){stage}([^a-z]|$)", text)), "")
    facts.notes.append(
        f"training on pairs by its keys; {named} by its name"
        if named
        else "training on pairs by its keys; taken as dpo"
    )
    return named or "dpo"


def _length(document: Located, facts: TrainingFacts, stage: str, trl: bool) -> None:
    prompt, answer = (as_scalar(document.get(key)) for key in ("max_prompt_length", "max_completion_length"))
    if stage == "grpo" and isinstance(prompt, int) and isinstance(answer, int) and prompt > 0 and answer > 0:
        origin = document.at("max_prompt_length", "max_completion_length")
        facts.put("sequence_length", f"{prompt} prompt + {answer} completion", origin)
        facts.training_length = prompt + answer
        return
    read_keys((Key(fact="sequence_length", keys=LENGTHS, read=size),), document, facts, "")
    source, target = (as_scalar(document.get(key)) for key in ("source_max_len", "target_max_len"))
    if isinstance(source, int) and isinstance(target, int) and source > 0 and target > 0:
        facts.put("sequence_length", source + target, Origin(default_of="gpuplan: source_max_len + target_max_len"))
    if trl and stage != "grpo":
        facts.put("sequence_length", 1024, Origin(default_of=_TRL))


def state_precision(document: Located, facts: TrainingFacts, framework: str, default: str) -> None:
    """State bf16, fp16 or fp8 by their switches; absent both, the framework's default."""
    for name in ("fp8", "bf16", "fp16", "pure_bf16"):
        value = as_scalar(document.get(name))
        if value is True:
            facts.put("precision", name.removeprefix("pure_"), document.at(name))
            break
    stated = document.get("mixed_precision")
    if isinstance(stated, str) and stated.lower() in ("bf16", "fp16", "fp8", "no"):
        facts.put("precision", {"no": "fp32"}.get(stated.lower(), stated.lower()), document.at("mixed_precision"))
    # DeepSpeed's examples say bf16; bfloat16, of TRL and transformers, is how weights are loaded.
    dtype = document.get("dtype")
    if dtype in ("bf16", "fp16", "fp32"):
        facts.put("precision", dtype, document.at("dtype"))
    off = as_scalar(document.get("bf16")) is False and default == "bf16"
    facts.put("precision", "fp32" if off else default, Origin(default_of=framework))


def _epochs(document: Located, facts: TrainingFacts) -> None:
    value = readable(real, document.get("num_train_epochs"), "num_train_epochs", document, facts)
    if value is not None:
        overrule_epochs(facts, value, document.at("num_train_epochs"))
    elif facts.number("steps") is None:
        facts.put("epochs", 3.0, Origin(default_of=_FRAMEWORK))


def state_saving(document: Located, facts: TrainingFacts) -> None:
    """State how often a checkpoint is saved: steps, a share of all steps, or epochs."""
    strategy = document.get("save_strategy")
    strategy = "no" if strategy is False else str(strategy or "").lower()
    if strategy in ("no", "none"):
        facts.put("save_interval", "none", document.at("save_strategy"))
        return
    if strategy == "epoch":
        facts.put("save_interval", "1 per epoch", document.at("save_strategy"))
        return
    steps = readable(real, document.get("save_steps"), "save_steps", document, facts)
    if isinstance(steps, int | float) and not isinstance(steps, bool) and steps > 0:
        text = f"{steps:g} of all steps" if steps < 1 else f"{steps:.12g} steps"
        facts.put("save_interval", text, document.at("save_steps"))
    facts.put("save_interval", "500 steps", Origin(default_of=_FRAMEWORK))


def _method(document: Located, facts: TrainingFacts, framework: str, stage: str, trl: bool) -> None:
    if trl and not any(document.get(switch) is not None for switch in SWITCHES) and document.get("use_peft") is None:
        ranked = any(document.get(rank) is not None for rank in RANKS)
        if ranked and not has(document, "train_mode", "finetuning_type", "bits", "load_in_kbits", "q_lora"):
            facts.notes.append("adapters are trained only with use_peft: true, so the rank is ignored")
            full = stage if stage == "grpo" else f"{stage} (full)" if stage else "full"
            facts.put("method", full, Origin(default_of=framework))
            return
    state_method(document, facts, framework, stage)
    if "modules_to_save" in document.value and document.get("modules_to_save"):
        facts.notes.append("modules_to_save trains whole embeddings beside the adapters")
    targets = document.first("lora_target_modules", "target_modules", "lora_target", "trainable")
    text = ",".join(targets) if isinstance(targets, list) and all(isinstance(t, str) for t in targets) else targets
    if isinstance(text, str) and set(text.replace(" ", "").split(",")) <= {"q_proj", "v_proj", "q", "v"}:
        facts.adapters_on = "query_value"


def state_dataset(document: Located, facts: TrainingFacts) -> None:
    """State the first data set, with its configuration or split."""
    mixture, mixer = document.get("dataset_mixture.datasets"), document.get("dataset_mixer")
    if isinstance(mixture, list) and mixture and isinstance(mixture[0], dict):
        first = mixture[0]
        config = first.get("config")
        detail = config if config not in (None, "default") else first.get("split")
        _put_dataset(facts, first.get("id"), detail, document.at("dataset_mixture"))
    elif isinstance(mixer, dict) and mixer:
        _put_dataset(facts, next(iter(mixer)), None, document.at("dataset_mixer"))
    keys = (
        "dataset_name",
        "dataset",
        "train_file",
        "data_path",
        "dataset_dir",
        "dataset_path",
        "train_data",
        "datasets",
        "train_data_path",
        "data_dir",
    )
    key = next((key for key in keys if document.get(key) is not None), "")
    if key:
        value = document.get(key)
        if isinstance(value, list) and value:
            value = value[0]
        config = document.first("dataset_config", "dataset_config_name")
        _put_dataset(facts, value, config, document.at(key))
        if isinstance(value, str) and key in {
            "train_file",
            "data_path",
            "dataset_path",
            "train_data",
            "train_data_path",
        }:
            facts.dataset_files.append(value)


def _put_dataset(facts: TrainingFacts, name: Any, detail: Any, origin: Origin) -> None:
    if isinstance(name, str) and name:
        facts.put("dataset", words(f"{name} {detail}" if isinstance(detail, str) and detail else name), origin)


def follow_sharding(document: Located, facts: TrainingFacts, follow: Follow) -> None:
    """Read the DeepSpeed file that is named; a stage that only its name tells is no evidence."""
    named = document.first("deepspeed", "deepspeed_config", "deepspeed_config_file")
    if isinstance(named, dict):
        key = next(k for k in ("deepspeed", "deepspeed_config", "deepspeed_config_file") if document.get(k))
        from gpuplan.api.imports.formats import deepspeed

        deepspeed.read(document.under(key), facts, follow)
    elif isinstance(named, str) and named:
        origin = document.at("deepspeed", "deepspeed_config", "deepspeed_config_file")
        if "$" in named:
            facts.missing_files.append(named)
            facts.put("sharding", "deepspeed, stage unknown", origin)
        elif not follow.file(named, facts):
            facts.put("sharding", "deepspeed, from included file", origin)
    stage = as_scalar(document.get("zero_stage"))
    if as_scalar(named) is True and isinstance(stage, int) and not isinstance(stage, bool) and 0 <= stage <= 3:
        facts.put("sharding", f"zero {stage}" if stage else "none (data parallel)", document.at("zero_stage"))
        if is_on(document, "offload"):
            facts.put("offload", "optimizer and parameters", document.at("offload"))
    fsdp = document.get("fsdp")
    listed = fsdp if isinstance(fsdp, list) else str(fsdp or "").split()
    strategies = [str(word) for word in listed]
    if fsdp is True:
        strategies = ["full_shard"]
    known = next(
        (word for word in strategies if word in ("full_shard", "shard_grad_op", "hybrid_shard", "no_shard")), ""
    )
    if known:
        facts.put("sharding", f"fsdp {known}", document.at("fsdp"))
    if "offload" in strategies:
        facts.put("offload", "parameters", document.at("fsdp"))


READER = Reader(name="Hugging Face trainer arguments", signs=signs, read=read)
