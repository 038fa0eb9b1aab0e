"""Measured runs and memory facts as questions to the estimator."""

import csv
import lzma
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from catalog.accelerators import Accelerator, accelerators
from catalog.errors import UnusableInput
from planner.estimate import estimate
from planner.estimate.answer import model_flops_per_unit
from planner.estimate.machines import Estimates, LayoutRequest, Machines
from planner.job import Preset, Training, Transformer
from planner.workload import presets, work_of
from planner.workload.work import Work

CALIBRATION = Path(__file__).resolve().parents[1] / "planner" / "calibration"

#: Names in the facts that are neither a preset's name nor told by the columns.
_PRESETS = {
    "bert": "bert-large",
    "electra": "bert-base",
    "rn50v1.5": "resnet-50",
    "resnet50v1.5": "resnet-50",
    "resnet50 v1.5": "resnet-50",
    "convnets resnet50": "resnet-50",
    "convnets resnext101-32x4d": "resnext-101-32x4d",
    "convnets se-resnext101-32x4d": "se-resnext-101-32x4d",
    "resnext101-32x4d": "resnext-101-32x4d",
    "se-resnext101-32x4d": "se-resnext-101-32x4d",
    "convnets efficientnet-b0": "efficientnet-b0",
    "convnets efficientnet-b4": "efficientnet-b4-380",
    "convnets efficientnet-widese-b0": "efficientnet-widese-b0",
    "convnets efficientnet-widese-b4": "efficientnet-widese-b4",
    "efficientnet efficientnet-b0": "efficientnet-b0",
    "efficientnet efficientnet-b4": "efficientnet-b4-380",
    "efficientnet efficientnet-widese-b0": "efficientnet-widese-b0",
    "efficientnet efficientnet-widese-b4": "efficientnet-widese-b4",
    "efficientnet_v1": "efficientnet-b0",
    "efficientnet_v2": "efficientnetv2-s",
    "vit_base_patch16_224": "vit-b/16",
    "vit_large_patch16_224": "vit-l/16",
    "vgg16": "vgg-16",
    "llama4-scout": "llama-4-scout",
    "llama4-maverick": "llama-4-maverick",
    "maskrcnn": "mask-rcnn",
    "efficientdet": "efficientdet-d0",
    "dlrm small": "dlrm-small",
    "dlrm large": "dlrm",
    "wideanddeep": "wide-and-deep",
    "nnunet 2": "nnunet-2d",
    "nnunet 3": "unet-3d",
    "unet_medical": "unet",
    "transformer": "transformer-big",
    "se3transformer": "se3-transformer",
    "transformer-xl base": "transformer-xl-base",
    "transformer-xl large": "transformer-xl-large",
    "tft electricity": "temporal-fusion-transformer",
    "tft traffic": "temporal-fusion-transformer",
    "gpunet gpunet-0": "gpunet-0",
    "gpunet gpunet-1": "gpunet-0",
}
#: MLPerf replaced the network of its detection benchmark in v2.0; NVIDIA's own is another.
_SSD = {"mlperf-v0.7": "ssd-resnet34", "mlperf-v1.1": "ssd-resnet34", "nv-dle": "ssd-resnet50"}
_LATER_SSD = "retinanet"
_GPT = re.compile(r"mpt|gpt|megatron|opt|bloom|mt-nlg|nemotron", re.IGNORECASE)
PRECISIONS = frozenset(("bf16", "fp16", "fp32", "tf32", "fp8", "fp4"))
#: Samples per device where a row does not tell: what such networks are usually trained with.
_LOCAL_BATCH_OTHER = 128.0
#: FLOP/s "hardware" of DeepSpeed's posts: Narayanan 2021 eq. 3 with recomputation, 96 l h^2 per token and so on.
_HARDWARE_OVER_MODEL = 4 / 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One measured run: what was run where, and how many units per second and accelerator it reached.

    Where `row["scored"]` is "ratio" the unit is unknown but the same for all runs of `compared_within`.
    """

    row: dict[str, str]
    work: Work
    training: Training
    machines: Machines
    request: LayoutRequest
    per_accelerator: float


def rows(name: str) -> list[dict[str, str]]:
    """Rows of one of our calibration files."""
    with lzma.open(CALIBRATION / name, "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def runs() -> list[Run]:
    """Every run that the estimator has a question for: its work is known, and its machine is in the catalogue."""
    found = (_run(row) for row in rows("runs.csv.xz"))
    return [run for run in found if run is not None]


def _run(row: dict[str, str]) -> Run | None:
    chip = accelerators().get(row["gpu"])
    if chip is None or not row["throughput"]:
        return None
    gpus = int(row["gpus_total"])
    training = training_of(row)
    try:
        work = work_of_row(row, training, gpus)
    except UnusableInput:
        return None
    if work is None:
        return None
    fabric = float(row["internode_gbps"] or "nan")
    return Run(
        row=row,
        work=work,
        training=training,
        machines=machine(chip, gpus, int(row["gpus_per_node"] or 0), fabric),
        request=request_of(row, gpus),
        per_accelerator=_rate(row, work, gpus),
    )


def _rate(row: dict[str, str], work: Work, gpus: int) -> float:
    """Units per second and accelerator; of times to train, their inverse."""
    value, unit = float(row["throughput"]), row["throughput_unit"]
    if unit == "minutes_to_train":
        return 1.0 / (value * gpus)
    if unit == "tokens/s/gpu":
        return value
    if unit.startswith("tflops"):
        over = _HARDWARE_OVER_MODEL if "hardware" in unit else 1.0
        return value * 1e12 / over / model_flops_per_unit(work)
    per_sample = row["scored"] == "absolute" and work.unit == "tokens" and unit != "tok/s"
    return value / gpus * (work.units_per_sample if per_sample else 1.0)


#: Sources whose recipes run Transformer Engine and its fused attention.
_TUNED = frozenset(("megatron-bridge", "nemo-docs", "megatron-lm"))
_SGD = frozenset(("cnn", "resnet50", "detection", "segmentation", "dlrm", "recsys"))


def training_of(row: dict[str, str]) -> Training:
    """Method, precision and software of a row."""
    precision = row["precision"].split("-")[0]
    lora = "lora" if "LoRA" in row["model"] or row.get("method") in {"LoRA", "adapter"} else "full"
    method = "qlora" if row.get("method") == "QLoRA" else lora
    plain = (
        row["model"] == "ELECTRA"
        or row["model"].startswith("Transformer-XL")
        or "baseline" in row["notes"]
        or row["notes"].startswith("SQuAD fine-tune, PyTorch")
    )
    pure = "MODE PURE" in row["notes"].upper() or row["precision"] == "bf16-pure"
    optimizer = "sgd" if row.get("task") in _SGD or "SGD" in row.get("optimizer", "") else "adamw"
    return Training(
        method=method,
        precision=precision if precision in PRECISIONS else "auto",
        software="plain" if plain else "tuned" if row.get("group") in _TUNED else "fused",
        states="pure_bf16" if pure else "mixed",
        optimizer=optimizer,
    )


def work_of_row(row: dict[str, str], training: Training, gpus: int) -> Work | None:
    """The work of a row, from a preset of that name or from its dimensions."""
    name = row["model"].lower().replace(" (lora)", "")
    sequence = int(row["seq_len"]) if row["seq_len"] else None
    batch = float(row.get("global_batch") or 0) or float(row["micro_batch"] or 0) * gpus
    preset = _SSD.get(row.get("group", ""), _LATER_SSD) if name == "ssd" else _PRESETS.get(name, name)
    size = int(row["image_size"]) if row.get("image_size") else None
    known = next((each for each in presets().values() if preset in {each.name, *each.aliases}), None)
    if known is not None and known.architecture == "whole":
        sequence = size = None
    usual = _LOCAL_BATCH_OTHER if row.get("task") not in _TEXT_TASKS else 256.0
    try:
        work = _preset_work(preset, training, sequence, batch or usual * gpus, size)
    except UnusableInput:
        work = None
    return work or _from_columns(row, training, sequence, batch or 8.0 * gpus)


_TEXT_TASKS = frozenset(("llm-pretrain", "llm-finetune", "bert"))


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
    if row["model"] in _HYBRIDS:
        return _hybrid(_HYBRIDS[row["model"]], training, sequence or 8192, batch)
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


def machine(chip: Accelerator, gpus: int, per_node: int, fabric: float = float("nan")) -> Machines:
    """One machine row; `fabric` in Gbit/s of a node, nan for the usual one."""
    per_node = min(per_node or chip.usual_per_node, gpus)
    while gpus % per_node:
        per_node -= 1
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hybrid:
    """A Mamba-2 mixture as the transformer with as many FLOPs, parameters and routed bytes.

    Attention heads are those of its few attention layers spread over all blocks, and the projections of its
    Mamba layers stand as shared experts. Dimensions: the models' Hugging Face configurations.
    """

    layers: int
    hidden: int
    heads: int
    active: int
    shared: int
    expert_ffn: int


#: 23 Mamba and 6 attention layers of 32 heads, 23 mixtures of 128 experts, 6 active and 2 shared.
_HYBRIDS = {
    "Nemotron_3_Nano": _Hybrid(layers=23, hidden=2688, heads=8, active=6, shared=5, expert_ffn=1856),
}
_HYBRID_EXPERTS, _HYBRID_VOCABULARY = 128, 131_072


def _hybrid(found: _Hybrid, training: Training, length: int, batch: float) -> Work:
    model = Transformer(
        layers=found.layers,
        hidden_size=found.hidden,
        ffn_size=found.expert_ffn,
        attention_heads=found.heads,
        kv_heads=2,
        head_size=128,
        vocabulary_size=_HYBRID_VOCABULARY,
        sequence_length=length,
        gated_mlp=False,
        causal=True,
        tokens=1e12,
        global_batch_tokens=batch * length,
        experts=_HYBRID_EXPERTS,
        active_experts=found.active,
        shared_experts=found.shared,
        expert_ffn_size=found.expert_ffn,
    )
    return work_of(model, training)


def _dimensions(row: dict[str, str]) -> tuple[int, int, int]:
    """(layers, hidden, heads) of a row; where it tells parameters alone, the usual proportions h = 128 L, 12 L h^2."""
    if row["layers"] and row["hidden"] and row["heads"]:
        return int(row["layers"]), int(row["hidden"]), int(row["heads"])
    parameters = float(row["params"])
    hidden = 128 * max(1, round((parameters * 128 / 12) ** (1 / 3) / 128))
    return max(1, round(parameters / (12 * hidden**2))), hidden, hidden // 128


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
    for machines, request in requests_of(run):
        found = estimate(run.work, run.training, machines, goodput=1.0, request=request)
        if not found.reason[0]:
            return found
    return None


def requests_of(run: Run) -> Iterator[tuple[Machines, LayoutRequest]]:
    """What to ask for a run, in turn: its layout as told, as we understand it, and with all the memory it takes."""
    for request in _relaxed(run.request):
        yield run.machines, request
    roomy = replace(run.machines, device_memory_mib=np.array([1e9]))
    for request in _relaxed(run.request):
        yield roomy, replace(request, checkpointing=request.checkpointing or "full")


def _relaxed(request: LayoutRequest) -> Iterator[LayoutRequest]:
    """The request, then without the parts that a row may tell in other words than ours."""
    yield request
    yield replace(request, micro_batch=None, interleave=None)
    yield replace(request, micro_batch=None, interleave=None, expert=None, context=None)
