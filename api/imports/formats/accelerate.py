"""accelerate's configuration of the launcher: processes, precision, sharding.

Keys: huggingface/accelerate `src/accelerate/commands/config/config_args.py` and `examples/config_yaml_templates`, read on
2026-11-27. `num_processes` is the total of all machines.
"""

from gpuplan.api.imports.derived_facts import state_global_batch
from gpuplan.api.imports.facts import TrainingFacts
from gpuplan.api.imports.formats import fsdp
from gpuplan.api.imports.key_table import Key, as_scalar, read_keys, size
from gpuplan.api.imports.located_document import Located
from gpuplan.api.imports.reader import Follow, Reader, has

NAME = "accelerate"

TABLE = (
    Key(fact="stated_world_size", keys=("num_processes",), read=size),
    Key(
        fact="tensor_parallel",
        keys=("parallelism_config.parallelism_config_tp_size", "fsdp_config.fsdp_tp_size", "tp_config.tp_size"),
        read=size,
    ),
    Key(fact="context_parallel", keys=("parallelism_config.parallelism_config_cp_size",), read=size),
    Key(fact="gradient_accumulation", keys=("deepspeed_config.gradient_accumulation_steps",), read=size),
    Key(fact="gradient_accumulation", keys=("gradient_accumulation_steps",), read=size),
)


def signs(document: Located) -> int:
    """The kind of distribution, or the words of its questionnaire."""
    own_keys = has(document, "distributed_type", "compute_environment", "main_training_function", "rdzv_backend")
    return (
        4 * own_keys + has(document, "mixed_precision", "num_processes", "num_machines", "fsdp_config")
        if own_keys
        else 0
    )


def read(document: Located, facts: TrainingFacts, follow: Follow) -> None:
    """State processes, precision and sharding."""
    kind = str(document.get("distributed_type") or "").upper()
    read_keys(TABLE, document, facts, NAME)
    precision = document.get("mixed_precision")
    text = "no" if precision is False else str(precision or "").lower()
    if text in ("bf16", "fp16", "fp8", "no"):
        facts.put("precision", "fp32" if text == "no" else text, document.at("mixed_precision"))
    _mesh(document, facts)
    if isinstance(document.get("fsdp_config"), dict) and kind in ("FSDP", ""):
        fsdp.state_sharding(document, "fsdp_config", facts)
    if kind == "DEEPSPEED" or isinstance(document.get("deepspeed_config"), dict):
        _deepspeed(document, facts, follow)
    if kind in ("MULTI_GPU", "MULTI_CPU"):
        facts.put("sharding", "none (data parallel)", document.at("distributed_type"))
    if kind in ("XLA", "TPU"):
        facts.not_understood.append(
            f"{document.at('distributed_type')}: distributed_type {kind} is not PyTorch on CUDA"
        )
    state_global_batch(facts)


def _mesh(document: Located, facts: TrainingFacts) -> None:
    prefix = "parallelism_config.parallelism_config_"
    shard, replicate = (as_scalar(document.get(f"{prefix}dp_{name}_size")) for name in ("shard", "replicate"))
    if isinstance(shard, int) and isinstance(replicate, int) and shard > 1 and replicate > 1:
        version = "2" if str(document.get("fsdp_config.fsdp_version")) == "2" else ""
        text = f"fsdp{version} shard {shard}, replicate {replicate}"
        facts.put("sharding", text, document.at(f"{prefix}dp_shard_size"))


def _deepspeed(document: Located, facts: TrainingFacts, follow: Follow) -> None:
    named = document.get("deepspeed_config.deepspeed_config_file")
    if isinstance(named, str):
        if not follow.file(named, facts):
            facts.put(
                "sharding", "deepspeed, from included file", document.at("deepspeed_config.deepspeed_config_file")
            )
        return
    stage = as_scalar(document.get("deepspeed_config.zero_stage"))
    if isinstance(stage, int) and 0 <= stage <= 3:
        facts.put("sharding", f"zero {stage}", document.at("deepspeed_config.zero_stage"))
    keys = [f"deepspeed_config.offload_{part}_device" for part in ("optimizer", "param")]
    optimizer, parameters = (str(document.get(key) or "").lower() for key in keys)
    if optimizer or parameters:
        moved = [name for name, to in (("optimizer", optimizer), ("parameters", parameters)) if to in ("cpu", "nvme")]
        facts.put("offload", " and ".join(moved) or "none", document.at(*keys))


READER = Reader(name=NAME, signs=signs, read=read, overlay=True)
