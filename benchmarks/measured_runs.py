"""Measured runs and memory facts as questions to the estimator."""

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from catalog.accelerators import Accelerator, accelerators
from catalog.errors import UnusableInput
from planner.estimate import estimate
from planner.estimate.machines import Estimates, LayoutRequest, Machines
from planner.job import Preset, Training, Transformer
from planner.workload import work_of
from planner.workload.work import Work

FACTS = Path(__file__).resolve().parents[2] / "shared" / "data" / "runs"

#: Names in the facts that are neither a preset's name nor told by the columns.
_PRESETS = {
    "bert": "bert-large",
    "rn50v1.5": "resnet-50",
    "resnet50v1.5": "resnet-50",
    "resnet50 v1.5": "resnet-50",
    "vit_base_patch16_224": "vit-b/16",
    "vit_large_patch16_224": "vit-l/16",
    "llama4-scout": "llama-4-scout",
}
_GPT = re.compile(r"mpt|gpt|megatron|opt|bloom|mt-nlg", re.IGNORECASE)
_UNITS = {"tokens/s/gpu", "sequences/sec", "img/s", "samples/s"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One measured run: what was run where, and how many units per second and accelerator it reached."""

    row: dict[str, str]
    work: Work
    training: Training
    machines: Machines
    request: LayoutRequest
    per_accelerator: float


def rows(name: str) -> list[dict[str, str]]:
    """Rows of a facts file that are not marked as suspect."""
    with (FACTS / name).open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if "SUSPECT" not in row["notes"]]


def runs() -> list[Run]:
    """Every run whose work and machine are known and whose unit is absolute."""
    found = (_run(row) for row in rows("runs_calibration.csv"))
    return [run for run in found if run is not None]


def _run(row: dict[str, str]) -> Run | None:
    chip = accelerators().get(row["gpu"])
    if (
        chip is None
        or row["throughput_unit"] not in _UNITS
        or row["precision"] not in {"bf16", "fp16", "fp32", "tf32", "fp8", "fp4"}
    ):
        return None
    gpus = int(row["gpus_total"])
    training = training_of(row)
    try:
        work = work_of_row(row, training, gpus)
    except UnusableInput:
        return None
    if work is None:
        return None
    value = float(row["throughput"])
    if row["throughput_unit"] != "tokens/s/gpu":
        value /= gpus
    per = value * (work.units_per_sample if row["throughput_unit"] == "sequences/sec" or row["task"] == "bert" else 1.0)
    return Run(
        row=row,
        work=work,
        training=training,
        machines=machine(chip, gpus, int(row["gpus_per_node"] or 0), row.get("interconnect_inter", "")),
        request=request_of(row, gpus),
        per_accelerator=per,
    )


def training_of(row: dict[str, str]) -> Training:
    """Method, precision and software of a row."""
    precision = row["precision"].split("-")[0]
    lora = "lora" if "LoRA" in row["model"] or row.get("method") in {"LoRA", "adapter"} else "full"
    method = "qlora" if row.get("method") == "QLoRA" else lora
    plain = "baseline" in row["notes"] or row["notes"].startswith("SQuAD fine-tune, PyTorch")
    pure = "MODE PURE" in row["notes"].upper() or row["precision"] == "bf16-pure"
    optimizer = "sgd" if row.get("task") in {"cnn", "resnet50"} or "SGD" in row.get("optimizer", "") else "adamw"
    return Training(
        method=method,
        precision=precision if precision in {"bf16", "fp16", "fp32", "tf32", "fp8", "fp4"} else "auto",
        software="plain" if plain else "fused",
        states="pure_bf16" if pure else "mixed",
        optimizer=optimizer,
    )


def work_of_row(row: dict[str, str], training: Training, gpus: int) -> Work | None:
    """The work of a row, from a preset of that name or from its dimensions."""
    name = row["model"].lower().replace(" (lora)", "")
    sequence = int(row["seq_len"]) if row["seq_len"] else None
    batch = float(row.get("global_batch") or 0) or float(row["micro_batch"] or 0) * gpus
    image = re.search(r"img (\d+)px", row["notes"])
    preset = _PRESETS.get(name, name)
    size = int(image.group(1)) if image else None
    try:
        work = _preset_work(preset, training, sequence, batch or 256.0 * gpus, size)
    except UnusableInput:
        work = None
    return work or _from_columns(row, training, sequence, batch or 8.0 * gpus)


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
    if not (row["layers"] and row["hidden"] and row["heads"] and row["params"]):
        return None
    if row.get("active_params") and float(row["active_params"]) < 0.9 * float(row["params"]):
        return None
    layers, hidden, heads = int(row["layers"]), int(row["hidden"]), int(row["heads"])
    kv = int(row["kv_heads"] or heads)
    vocabulary, length = int(row["vocab"] or 51200), sequence or 2048
    gated = not _GPT.match(row["model"])
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


def machine(chip: Accelerator, gpus: int, per_node: int, network: str) -> Machines:
    """One machine row; the fabric as the row tells it, else the usual one."""
    per_node = min(per_node or chip.usual_per_node, gpus)
    while gpus % per_node:
        per_node -= 1
    rate = re.search(r"(\d+)Gbps/node", network)
    each = re.search(r"(\d+)x(\d+)Gbps", network)
    fabric = float(rate.group(1)) if rate else float(each.group(1)) * float(each.group(2)) if each else np.nan
    return Machines(
        accelerators=(chip,),
        accelerator=np.zeros(1, dtype=np.int64),
        devices=np.array([per_node], dtype=np.int64),
        fraction=np.ones(1),
        device_memory_mib=np.array([float(chip.device_memory_mib)]),
        intranode_gbs=np.full(1, np.nan),
        scaleup_domain=np.array([max(per_node, chip.link_domain)], dtype=np.int64),
        internode_gbps=np.array([fabric]),
        clusters=np.ones(1, dtype=bool),
        nodes=np.array([gpus // per_node], dtype=np.int64),
    )


def request_of(row: dict[str, str], gpus: int) -> LayoutRequest:
    """The layout of a row as far as it is told."""
    text = row["parallelism"]
    ways = {key: int(value) for key, value in re.findall(r"\b(tp|pp|cp|vp|ep)(\d+)", text)}
    micro = int(float(row["micro_batch"])) if row["micro_batch"] else None
    sharded = re.search(r"zero-?(\d)", text)
    stage = int(sharded.group(1)) if sharded else 3 if "fsdp" in text else 1 if ways else None
    pipeline = ways.get("pp", 1)
    return LayoutRequest(
        tensor=ways.get("tp") if ways else 1 if text else None,
        pipeline=pipeline if ways else 1 if text else None,
        context=ways.get("cp") if ways else None,
        expert=ways.get("ep") if "ep" in ways else None,
        interleave=ways.get("vp") if pipeline > 1 else None,
        zero_stage=stage,
        micro_batch=micro,
        checkpointing=row["activation_ckpt"] or None,
    )


def predict(run: Run) -> Estimates | None:
    """The estimate of a run: its own layout, as if it fitted where memory says no; None if it cannot be run."""
    for request in _relaxed(run.request):
        found = estimate(run.work, run.training, run.machines, goodput=1.0, request=request)
        if not found.reason[0]:
            return found
    roomy = replace(run.machines, device_memory_mib=np.array([1e9]))
    for request in _relaxed(run.request):
        kept = replace(request, checkpointing=request.checkpointing or "full")
        found = estimate(run.work, run.training, roomy, goodput=1.0, request=kept)
        if not found.reason[0]:
            return found
    return None


def _relaxed(request: LayoutRequest) -> Iterator[LayoutRequest]:
    """The request, then without the parts that a row may tell in other words than ours."""
    yield request
    yield replace(request, micro_batch=None, interleave=None)
    yield replace(request, micro_batch=None, interleave=None, expert=None, context=None)
