"""LLaMA-Factory YAML, and the same keys as flags.

Keys and defaults: hiyouga/LLaMA-Factory `src/llamafactory/hparams/{finetuning,data,model}_args.py` and `parser.py`, read on
2026-11-27; the rest is `TrainingArguments`.
"""

from gpuplan.api.imports.adapters import four_bit
from gpuplan.api.imports.derived_facts import overrule_epochs, state_global_batch
from gpuplan.api.imports.facts import Origin, TrainingFacts
from gpuplan.api.imports.formats import trainer_arguments
from gpuplan.api.imports.key_table import Key, as_scalar, read_keys, readable, real, size, words, yes_no
from gpuplan.api.imports.located_document import Located
from gpuplan.api.imports.reader import Follow, Reader, has

NAME = "LLaMA-Factory"

TABLE = (
    *(row for row in trainer_arguments.TABLE if row.fact not in ("packing", "model_name")),
    Key(fact="sequence_length", keys=("cutoff_len",), read=size, default=2048),
    Key(fact="model_name", keys=("model_name_or_path",)),
    Key(fact="dataset", keys=("dataset", "dataset_dir"), read=words),
    Key(fact="packing", keys=("packing",), read=yes_no),
)
_STAGES = {"sft": "", "pt": "", "dpo": "dpo", "kto": "kto", "rm": "reward", "ppo": "ppo"}


def signs(document: Located) -> int:
    """Its own keys count; `template` and `dataset` alone may be of another tool."""
    own_keys = has(
        document, "stage", "finetuning_type", "cutoff_len", "lora_target", "pref_loss", "quantization_method"
    )
    other = has(document, "template", "dataset", "max_samples", "overwrite_cache", "model_name_or_path")
    return 4 * own_keys + other if own_keys else 0


def read(document: Located, facts: TrainingFacts, follow: Follow) -> None:
    """State the arguments with LLaMA-Factory's defaults."""
    read_keys(TABLE, document, facts, NAME)
    trainer_arguments.state_precision(document, facts, NAME, "fp32")
    value = readable(real, document.get("num_train_epochs"), "num_train_epochs", document, facts)
    if value is not None:
        overrule_epochs(facts, value, document.at("num_train_epochs"))
    elif facts.number("steps") is None:
        facts.put("epochs", 3.0, Origin(default_of="Hugging Face TrainingArguments"))
    trainer_arguments.state_saving(document, facts)
    if as_scalar(document.get("disable_gradient_checkpointing")) is True:
        facts.put("checkpointing", "none", document.at("disable_gradient_checkpointing"))
    facts.put("checkpointing", "full", Origin(default_of=NAME))
    stage = _method(document, facts)
    trainer_arguments.follow_sharding(document, facts, follow)
    limit = as_scalar(document.get("max_samples"))
    if isinstance(limit, int) and limit > 0:
        facts.notes.append(f"max_samples {limit} limits each data set of the list, not their sum")
    state_global_batch(facts, "samples (pairs)" if stage in ("dpo", "orpo") else "samples")


def _method(document: Located, facts: TrainingFacts) -> str:
    kind = str(document.get("finetuning_type") or "lora").lower()
    origin = document.at("finetuning_type") if document.get("finetuning_type") else Origin(default_of=NAME)
    method = {"freeze": "partial (some layers)", "oft": "partial (oft)"}.get(kind, kind)
    if method == "lora" and four_bit(document):
        method = "qlora"
    if method in ("lora", "qlora"):
        read_keys((Key(fact="lora_rank", keys=("lora_rank",), read=size, default=8),), document, facts, NAME)
        target = str(document.get("lora_target") or "all").replace(" ", "")
        facts.adapters_on = "query_value" if set(target.split(",")) <= {"q_proj", "v_proj"} else "all"
    stated = str(document.get("stage") or "sft").lower()
    stage = _STAGES.get(stated)
    if stage is None:
        facts.not_understood.append(f"{document.at('stage')}: stage {stated[:40]!r}; known are {', '.join(_STAGES)}")
        stage = ""
    loss = str(document.get("pref_loss") or "")
    stage = loss if stage == "dpo" and loss in ("orpo", "simpo") else stage
    facts.put("method", f"{stage} ({method})" if stage else method, origin)
    if stated == "pt":
        facts.put("packing", True, Origin(default_of=NAME))
    facts.put("packing", False, Origin(default_of=NAME))
    return stage


READER = Reader(name=NAME, signs=signs, read=read)
