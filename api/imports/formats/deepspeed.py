"""DeepSpeed JSON: batch, precision, ZeRO stage, offload; `auto` is left to the trainer's arguments.

Keys: deepspeedai/DeepSpeed `docs/_pages/config-json.md`, read on 2026-11-27.
"""

from gpuplan.api.imports.derived_facts import data_parallel_world, state_global_batch
from gpuplan.api.imports.facts import AUTO, Amount, PerWorld, TrainingFacts
from gpuplan.api.imports.key_table import Key, as_scalar, read_keys, readable, size
from gpuplan.api.imports.located_document import Located
from gpuplan.api.imports.reader import Follow, Reader, has

NAME = "DeepSpeed"

TABLE = (
    Key(fact="micro_batch", keys=("train_micro_batch_size_per_gpu",), read=size),
    Key(fact="gradient_accumulation", keys=("gradient_accumulation_steps",), read=size),
    Key(fact="tensor_parallel", keys=("tensor_parallel.autotp_size", "tensor_parallel.tp_size"), read=size),
)


def signs(document: Located) -> int:
    """ZeRO and DeepSpeed's spelling of the batch; a file with layers is of GPT-NeoX."""
    if has(
        document, "num_layers", "num-layers", "hidden_size", "hidden-size", "pipe_parallel_size", "model_parallel_size"
    ):
        return 0
    own_keys = has(
        document, "zero_optimization", "train_micro_batch_size_per_gpu", "train_batch_size", "steps_per_print"
    )
    return 4 * own_keys if own_keys else 0


def read(document: Located, facts: TrainingFacts, follow: Follow) -> None:
    """State batch, precision, optimizer and sharding."""
    read_keys(TABLE, document, facts, NAME)
    _batch(document, facts)
    for name in ("bf16", "bfloat16", "fp16", "amp"):
        enabled = as_scalar(document.get(f"{name}.enabled"))
        if enabled is True:
            precision = "bf16" if name.startswith("b") or document.get(f"{name}.type") == "bfloat16" else "fp16"
            facts.put("precision", precision, document.at(f"{name}.enabled"))
    kind = document.get("optimizer.type")
    if isinstance(kind, str) and kind != AUTO:
        facts.put("optimizer", kind.lower(), document.at("optimizer.type"))
    state_zero(document, facts)


def _batch(document: Located, facts: TrainingFacts) -> None:
    value = readable(size, document.get("train_batch_size"), "train_batch_size", document, facts)
    origin = document.at("train_batch_size")
    if value == AUTO:
        facts.put("global_batch", AUTO, origin)
    elif isinstance(value, int):
        facts.put("global_batch", Amount(value, "samples"), origin)
        micro, world = facts.number("micro_batch"), data_parallel_world(facts)
        if micro and world and value % (micro * world) == 0:
            facts.put("gradient_accumulation", int(value / micro / world), origin)
        elif micro and "gradient_accumulation" not in facts.facts:
            facts.put("gradient_accumulation", PerWorld(value / micro, inverse=True), origin)
    else:
        state_global_batch(facts)


def state_zero(document: Located, facts: TrainingFacts) -> None:
    """State the stage and what is offloaded."""
    stage = as_scalar(document.get("zero_optimization.stage"))
    if isinstance(stage, int) and not isinstance(stage, bool) and 0 <= stage <= 3:
        facts.put("sharding", f"zero {stage}", document.at("zero_optimization.stage"))
    elif "zero_optimization" not in document.value:
        facts.put("sharding", "none stated", document.at())
    moved = []
    for name, key in (("optimizer", "offload_optimizer"), ("parameters", "offload_param")):
        device = document.get(f"zero_optimization.{key}.device")
        if isinstance(device, str) and device.lower() in ("cpu", "nvme"):
            moved.append(name)
    if as_scalar(document.get("zero_optimization.cpu_offload")) is True and "optimizer" not in moved:
        moved.append("optimizer")
    if moved:
        key = "zero_optimization"
        facts.put("offload", " and ".join(moved), document.at(key))


READER = Reader(name=NAME, signs=signs, read=read, overlay=True)
