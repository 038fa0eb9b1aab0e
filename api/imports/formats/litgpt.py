"""LitGPT YAML: the global batch is per run and divided over devices.

Keys and defaults: Lightning-AI/litgpt `litgpt/args.py`, `litgpt/finetune/*.py`, read on 2026-11-27.
"""

from gpuplan.api.imports.derived_facts import state_accumulation
from gpuplan.api.imports.facts import Amount, Origin, TrainingFacts
from gpuplan.api.imports.key_table import Key, count, read_keys, readable, real, size
from gpuplan.api.imports.located_document import Located
from gpuplan.api.imports.reader import Follow, Reader, has

NAME = "LitGPT"

TABLE = (
    Key(fact="micro_batch", keys=("train.micro_batch_size",), read=size, default=4),
    Key(fact="sequence_length", keys=("train.max_seq_length",), read=size),
    Key(fact="steps", keys=("train.max_steps",), read=count),
    Key(fact="tokens", keys=("train.max_tokens",), read=count),
    Key(fact="precision", keys=("precision",)),
    Key(fact="model_name", keys=("model_name",)),
)


def signs(document: Located) -> int:
    """A part `train` with its batch beside `precision` or a checkpoint."""
    own_keys = has(document, "train.global_batch_size", "train.micro_batch_size", "train.lr_warmup_steps")
    return 6 + own_keys if own_keys and has(document, "checkpoint_dir", "precision", "out_dir", "model_name") else 0


def read(document: Located, facts: TrainingFacts, follow: Follow) -> None:
    """State the keys, then world, batch, method and data."""
    read_keys(TABLE, document, facts, NAME)
    checkpoint = document.get("checkpoint_dir")
    if isinstance(checkpoint, str):
        facts.put("model_name", checkpoint.removeprefix("checkpoints/")[:200], document.at("checkpoint_dir"))
    devices, nodes = document.get("devices"), document.get("num_nodes")
    if isinstance(devices, int) and 0 < devices < 10**5 and (nodes is None or isinstance(nodes, int)):
        facts.put("stated_world_size", devices * (nodes or 1), document.at("devices"))
    batch = readable(size, document.get("train.global_batch_size"), "train.global_batch_size", document, facts)
    origin = document.at("train.global_batch_size") if batch is not None else Origin(default_of=NAME)
    number = batch if isinstance(batch, int) else 64
    facts.put("global_batch", Amount(number, "samples"), origin)
    state_accumulation(facts, number)
    epochs = readable(real, document.get("train.epochs"), "train.epochs", document, facts)
    if isinstance(epochs, int | float) and epochs > 0:
        facts.put("epochs", epochs, document.at("train.epochs"))
    every = readable(count, document.get("train.save_interval"), "train.save_interval", document, facts)
    if every is not None:
        facts.put("save_interval", f"{every} steps", document.at("train.save_interval"))
    optimizer = document.get("optimizer")
    name = optimizer.get("class_path") if isinstance(optimizer, dict) else optimizer
    if isinstance(name, str):
        facts.put("optimizer", name.rsplit(".", 1)[-1].lower(), document.at("optimizer.class_path", "optimizer"))
    data = document.get("data")
    data = data.get("class_path") if isinstance(data, dict) else data
    if isinstance(data, str):
        facts.put("dataset", data.rsplit(".", 1)[-1][:200], document.at("data.class_path", "data"))
    _method(document, facts)


def _method(document: Located, facts: TrainingFacts) -> None:
    if document.get("lora_r") is None:
        facts.put("method", "full", Origin(default_of=NAME))
        return
    quantized = str(document.get("quantize") or "")
    facts.put("method", "qlora" if "4" in quantized else "lora", document.at("quantize", "lora_r"))
    read_keys((Key(fact="lora_rank", keys=("lora_r",), read=size),), document, facts, NAME)
    wide = [document.get(f"lora_{part}") is True for part in ("key", "projection", "mlp")]
    facts.adapters_on = "all" if any(wide) else "query_value"


READER = Reader(name=NAME, signs=signs, read=read)
