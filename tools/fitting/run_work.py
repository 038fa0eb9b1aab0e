"""The work of a measured run: from a preset, from published totals, or from the dimensions of its row."""

import csv
import re
from pathlib import Path

from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.job import Explicit, Preset, Training, Transformer
from gpuplan.planner.workload import presets, work_of
from gpuplan.planner.workload.block_totals import Amount, whole, work_of_blocks
from gpuplan.planner.workload.step_work import Work
from tools.fitting import maxtext_runs

#: Names in the facts that are neither a preset's name nor follow from the columns.
with Path(__file__).with_name("run_presets.csv").open(encoding="utf-8") as _file:
    _PRESETS = {row["model"]: row["preset"] for row in csv.DictReader(_file)}


#: MLPerf replaced the network of its detection benchmark in v2.0; NVIDIA's own is another.
_SSD = {"mlperf-v0.7": "ssd-resnet34", "mlperf-v1.1": "ssd-resnet34", "nv-dle": "ssd-resnet50"}


_LATER_SSD = "retinanet"


_GPT = re.compile(r"mpt|gpt|megatron|opt|bloom|mt-nlg|nemotron", re.IGNORECASE)


#: Samples per device if a row lacks them: the usual training value of such networks.
_LOCAL_BATCH_OTHER = 128.0


def work_of_row(row: dict[str, str], training: Training, gpus: int) -> Work | None:
    """The work of a row, from a preset of that name or from its dimensions."""
    if row.get("total_flops"):
        return _published(row)
    if row.get("gmacs"):
        return _network_of_totals(row, training, gpus)
    scripted = maxtext_runs.model_of(row, float(row.get("global_batch") or 0))
    if scripted is not None:
        return work_of(scripted, training)
    name = re.sub(r" \(q?lora\)", "", row["model"].lower())
    sequence = int(row["seq_len"]) if row["seq_len"] else None
    batch = float(row.get("global_batch") or 0) or float(row["micro_batch"] or 0) * gpus
    preset = _SSD.get(row.get("group", ""), _LATER_SSD) if name == "ssd" else _PRESETS.get(name, name)
    size = int(row["image_size"]) if row.get("image_size") else None
    known = next(
        (candidate for candidate in presets().values() if preset in {candidate.name, *candidate.aliases}), None
    )
    if known is not None and known.architecture == "whole":
        sequence = size = None
    usual = _LOCAL_BATCH_OTHER if row.get("task") not in TEXT_TASKS else 256.0
    try:
        work = _preset_work(preset, training, sequence, batch or usual * gpus, size)
    except UnusableInput:
        work = None
    return work or _from_columns(row, training, sequence, batch or 8.0 * gpus)


def _published(row: dict[str, str]) -> Work:
    """A published run as a user states it who knows FLOPs alone."""
    return work_of(Explicit(total_flops=float(row["total_flops"]), memory_gib=1.0), Training())


def _network_of_totals(row: dict[str, str], training: Training, gpus: int) -> Work:
    """A network of which a model table states multiply-adds, layer outputs and parameters."""
    details = {
        "gflops": str(2 * float(row["gmacs"])),
        "melements": row["melements"],
        "parameters": row["params"],
    }
    if _UNNORMALISED.match(row["model"]):
        details |= {"passes": "8.5", "saved": "1"}
    if row["model"].startswith("repvgg"):
        # Two convolutions and the identity share one saved input, and their sum goes through one activation in place.
        details["saved"] = "1.5"
    task = (
        "vision-transformer" if row.get("task") == "vit" or _IMAGE_TRANSFORMER.match(row["model"]) else "convolutional"
    )
    batch = float(row["micro_batch"]) * gpus
    amount = Amount(unit="samples", total=1e9, per_step=batch, per_sample=1, assumptions=())
    return work_of_blocks(row["model"], task, whole(details, 0), amount, training)


#: Names of timm's networks without normalisation.
_UNNORMALISED = re.compile(r"vgg\d+$")
#: Names of timm's attention and mixer networks.
_IMAGE_TRANSFORMER = re.compile(
    "vit|deit|beit|cait|swin|mixer|gmlp|resmlp|xcit|pit_|tnt|twins|crossvit|levit|eva|pvt|nest"
)


#: Tasks of the sources that train on text.
TEXT_TASKS = frozenset(("llm-pretrain", "llm-finetune", "bert"))


def _preset_work(name: str, training: Training, sequence: int | None, batch: float, size: int | None) -> Work | None:
    probe = work_of(Preset(model=name, tokens=1e12), training) if _is_token_model(name) else None
    if probe is not None:
        tokens = batch * (sequence or probe.units_per_sample)
        return work_of(Preset(model=name, tokens=1e12, sequence_length=sequence, global_batch_tokens=tokens), training)
    return work_of(Preset(model=name, samples=1e9, image_size=size, global_batch_samples=batch), training)


def _is_token_model(name: str) -> bool:
    try:
        return work_of(Preset(model=name, tokens=1e12), Training()).unit == "tokens"
    except UnusableInput:
        return False


def _from_columns(row: dict[str, str], training: Training, sequence: int | None, batch: float) -> Work | None:
    """A transformer of the row's dimensions; the feed-forward width follows from the parameters."""
    if not row["params"]:
        return None
    if row.get("active_params") and float(row["active_params"]) < 0.9 * float(row["params"]):
        return None
    layers, hidden, heads = _dimensions(row)
    kv = int(row["kv_heads"] or heads)
    vocabulary, length = int(row["vocab"] or 51200), sequence or 2048
    gated = bool(row["layers"]) and not _GPT.match(row["model"])
    attention = 2 * hidden * hidden * (1 + kv / heads)
    tied = not gated
    ends = vocabulary * hidden * (1 if tied else 2)
    width = (float(row["params"]) - ends - layers * attention) / (layers * hidden * (3 if gated else 2))
    model = Transformer(
        layers=layers,
        hidden_size=hidden,
        ffn_size=max(256, round(width)),
        attention_heads=heads,
        kv_heads=kv,
        head_size=hidden // heads,
        vocabulary_size=vocabulary,
        sequence_length=length,
        gated_mlp=gated,
        causal=True,
        tokens=1e12,
        global_batch_tokens=batch * length,
        tied_embeddings=tied,
    )
    return work_of(model, training)


def _dimensions(row: dict[str, str]) -> tuple[int, int, int]:
    """(layers, hidden, heads) of a row; with only a parameter count, the usual proportions h = 128 L, 12 L h^2."""
    if row["layers"] and row["hidden"] and row["heads"]:
        return int(row["layers"]), int(row["hidden"]), int(row["heads"])
    parameters = float(row["params"])
    # Whole heads of 128, and an even number of them, which tensor parallelism divides.
    hidden = 256 * max(1, round((parameters * 128 / 12) ** (1 / 3) / 256))
    return max(1, round(parameters / (12 * hidden**2))), hidden, hidden // 128
