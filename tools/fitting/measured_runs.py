"""Convert measured runs to estimator inputs."""

import csv
import lzma
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypedDict

import numpy as np

from gpuplan.catalog.model.accelerators import Accelerator, accelerators
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.job import OFFLOADED, Training
from gpuplan.planner.performance import estimate
from gpuplan.planner.performance.estimate_assembly import model_flops_per_unit
from gpuplan.planner.performance.estimator_request import REASONS, Estimates, LayoutRequest, Machines, one_configuration
from gpuplan.planner.performance.goodput import modelled_goodput
from gpuplan.planner.workload.step_work import CONVOLUTIONAL_TASKS, Work
from tools.fitting import maxtext_runs, neuron_runs
from tools.fitting.run_work import TEXT_TASKS, work_of_row

FACTS = Path(__file__).resolve().parents[2] / "planner" / "performance" / "calibration" / "facts"

PRECISIONS = frozenset(("bf16", "fp16", "fp32", "tf32", "fp8", "fp4"))
#: FLOP/s "hardware" of DeepSpeed's posts: Narayanan 2021 eq. 3 with recomputation, 96 l h^2 per token and so on.
_HARDWARE_OVER_MODEL = 4 / 3


class _Adapters(TypedDict, total=False):
    """Fields of `Training` that state adapters."""

    adapters_on: str
    rank: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One measured run: the workload, the machine, and the units per second and accelerator.

    Where `row["scored"]` is "ratio", the unit is unknown but the same for all runs of `compared_within`.
    """

    row: dict[str, str]
    work: Work
    training: Training
    machines: Machines
    request: LayoutRequest
    per_accelerator: float


def rows(name: str) -> list[dict[str, str]]:
    """Rows of one calibration file."""
    with lzma.open(FACTS / name, "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def runs() -> list[Run]:
    """Every run that the estimator can predict: its work is known, and its machine is in the catalogue."""
    parsed = (_run(row) for row in rows("runs.csv.xz"))
    return [run for run in parsed if run is not None]


def why_unanswered(row: dict[str, str]) -> str:
    """Why a row has no estimate; empty where it has one."""
    if not row["throughput"] or not row["gpus_total"]:
        return "states no throughput or number of accelerators"
    run = _run(row)
    if row["gpu"] not in accelerators():
        return f"{row['gpu']} is not in the catalogue, or has no published rate"
    if run is None:
        return f"size of {row['model']} not known"
    if predict(run) is not None:
        return ""
    machines, request = list(requests_of(run))[-1]
    return REASONS[int(estimate(run.work, run.training, machines, goodput=1.0, request=request).reason[0])]


def _run(row: dict[str, str]) -> Run | None:
    chip = accelerators().get(row["gpu"])
    if chip is None or not row["throughput"] or not row["gpus_total"]:
        return None
    gpus = int(row["gpus_total"])
    if row["group"] == "litgpt":
        # Its table names the machine; its configuration files name how many of the devices the run used.
        gpus = _LITGPT_DEVICES.get(row["id"], 1)
        row = row | _litgpt_configured(row, gpus)
    if row["group"] == "maxtext":
        row = maxtext_runs.configured(row, gpus)
    if row["group"] == "aws-neuron":
        row = neuron_runs.configured(row)
    if row["model"] == "BERT" and row["seq_len"] == "512" and row["notes"].startswith(_BINNED):
        row = row | {"seq_len": _BINNED_TOKENS}
    training = training_of(row)
    try:
        work = work_of_row(row, training, gpus)
    except UnusableInput:
        return None
    if work is None:
        return None
    # The measured tables used synthetic images or decoded on accelerators.
    work = replace(work, decode_seconds_per_sample=0.0)
    training = replace(training, memory_format=_memory_format(row, work))
    fabric = float(row["internode_gbps"] or "nan")
    return Run(
        row=row,
        work=work,
        training=training,
        machines=machine(chip, gpus, int(row["gpus_per_node"] or 0), fabric),
        request=request_of(row, gpus),
        per_accelerator=_rate(row, work, gpus),
    )


#: Mean length of BERT's samples of up to 512 tokens in bins of 64, as NVIDIA's scripts read them (`pretrain/phase2/bin_size_64`):
#: half of the positions of Wikipedia's are padding (Krell 2021, Efficient Sequence Packing), and half a bin remains of it.
_BINNED, _BINNED_TOKENS = ("PyTorch pretrain", "PaddlePaddle pretrain"), "288"
_EPOCHS = re.compile(r"epochs (\d+)")
#: LitGPT's subset of Alpaca: 2,000 samples an epoch, of 120 tokens in the mean and 70 in the standard deviation.
_ALPACA_SAMPLES, _ALPACA_MEAN, _ALPACA_DEVIATION = 2000, 120.0, 70.0
_LITGPT_DEVICES = {"litgpt-0004": 4, "litgpt-0032": 2, "litgpt-0039": 2}
#: Samples of an optimizer step where its configuration files do not say 8.
_LITGPT_BATCHES = {"litgpt-0004": 16, "litgpt-0020": 64, "litgpt-0023": 64, "litgpt-0043": 32, "litgpt-0044": 32}


def _litgpt_configured(row: dict[str, str], gpus: int) -> dict[str, str]:
    """What its configuration files and scripts add: several devices shard and recompute by block, one does neither."""
    several = gpus > 1
    return {
        "seq_len": str(_padded_tokens(int(row["micro_batch"]), int(row["vocab"]))),
        "global_batch": str(max(_LITGPT_BATCHES.get(row["id"], 8), int(row["micro_batch"]) * gpus)),
        "parallelism": "fsdp" if several else "single",
        "activation_ckpt": "full" if several else "none",
        "precision": "bf16-pure",
    }


#: Vocabulary up to which a text has more tokens, and how many more: Llama 3's 128k have up to 15 % fewer than Llama 2's 32k (Meta 2024).
_SMALL_VOCABULARY, _MORE_TOKENS = 33_000, 1.15


def _padded_tokens(micro_batch: int, vocabulary: int) -> int:
    """Mean length of samples padded to the longest of their micro-batch: the expected maximum of so many normal draws."""
    above = {1: 0.0, 2: 0.56, 3: 0.85, 4: 1.03, 8: 1.42}
    longer = _MORE_TOKENS if vocabulary <= _SMALL_VOCABULARY else 1.0
    return round(longer * (_ALPACA_MEAN + _ALPACA_DEVIATION * above.get(micro_batch, 1.77)))


def _rate(row: dict[str, str], work: Work, gpus: int) -> float:
    """Units per second and accelerator; for times to train, the inverse time."""
    value, unit = float(row["throughput"]), row["throughput_unit"]
    if unit == "minutes_to_train":
        return 1.0 / (value * gpus)
    if unit == "tokens/s/gpu":
        return value
    if unit.startswith("useful_tflops"):
        # Hours of published runs include failures, checkpoints and evaluation.
        return value * 1e12 / work.flops_per_unit / float(modelled_goodput(np.array([float(gpus)]))[0])
    if unit.startswith("minutes (Alpaca2k"):
        epochs = float(_EPOCHS.search(row["notes"]).group(1))  # type: ignore[union-attr]
        return epochs * _ALPACA_SAMPLES * float(row["seq_len"]) / (60 * value * gpus)
    if unit.startswith("tflops"):
        over = _HARDWARE_OVER_MODEL if "hardware" in unit else 1.0
        flops = _whole_attention_flops(work) if row["group"] == "maxtext" else model_flops_per_unit(work)
        return value * 1e12 / over / flops
    per_sample = row["scored"] == "absolute" and work.unit == "tokens" and unit != "tok/s"
    return value / gpus * (work.units_per_sample if per_sample else 1.0)


def _whole_attention_flops(work: Work) -> float:
    """FLOPs per token as MaxText counted them until 2025: attention without the causal half."""
    if work.shape is None:
        return work.flops_per_unit
    return model_flops_per_unit(replace(work, shape=replace(work.shape, causal=False)))


#: LitGPT computes the loss in chunks of 16-bit logits; llm-foundry's default is flash-attn's kernel, which reads them. Megatron's
#: overwrites its 32-bit copy: 6 bytes per logit, nearer to the 4 of these than to the 14 of Hugging Face's.
_CHUNKED = ("litgpt", "llm-foundry", "bigscience-a100", "bigscience-v100")
_CROSS_ENTROPY = dict.fromkeys(_CHUNKED, "chunked")
_SGD = frozenset(("cnn", "resnet50", "detection", "segmentation", "dlrm", "recsys"))


def training_of(row: dict[str, str]) -> Training:
    """Method, precision and software of a row."""
    precision = re.split("[-,]", row["precision"])[0]
    lora = "lora" if "LoRA" in row["model"] or row.get("method") in {"LoRA", "adapter"} else "full"
    method = "qlora" if row.get("method") == "QLoRA" or "(QLoRA)" in row["model"] else lora
    pure = "MODE PURE" in row["notes"].upper() or row["precision"] == "bf16-pure"
    named = row.get("optimizer", "").lower()
    optimizer = "sgd" if row.get("task") in _SGD or "sgd" in named else named if named == "adamw_8bit" else "adamw"
    return Training(
        method=method,
        **_adapters(row),
        precision=precision if precision in PRECISIONS else "auto",
        software=software_of(row),
        framework="xla" if row.get("group", "") in _COMPILED else "any",
        states="pure_bf16" if pure else "fp32_gradients" if "radients summed in fp32" in row["notes"] else "mixed",
        activation_checkpointing=OFFLOADED
        if "act offload" in row["notes"] or "checkpoints in host memory" in row["notes"]
        else "auto",
        offload=_offload(row),
        cross_entropy=_CROSS_ENTROPY.get(row.get("group", ""), "linear")
        if row.get("group", "") in _CROSS_ENTROPY or "cross-entropy in chunks" in row["notes"]
        else "auto",
        optimizer=optimizer,
    )


#: Models whose configurations of LitGPT (config_hub/finetune) adapt every projection at rank 8; TinyLlama's at rank 32. The
#: others' adapt queries and values at rank 32.
_ADAPTED_EVERYWHERE = re.compile("phi|gemma|tinyllama")
#: Sources whose recipes for performance adapt the packed query, key and value alone (NeMo, `target_modules`: from knowledge).
_QUERY_KEY_VALUE = frozenset(("nemo-docs", "megatron-bridge"))


def _adapters(row: dict[str, str]) -> _Adapters:
    """Where the adapters of a row are, and their rank, as notes or the source's configurations say."""
    if "rank 8 (its default: q and v)" in row["notes"]:
        return {"adapters_on": "query_value", "rank": 8}
    if row.get("group") in _QUERY_KEY_VALUE:
        return {"adapters_on": "query_value"}
    if row.get("group") != "litgpt":
        return {}
    if _ADAPTED_EVERYWHERE.match(row["model"]):
        return {"adapters_on": "all", "rank": 32 if row["model"].startswith("tinyllama") else 8}
    return {"adapters_on": "query_value", "rank": 32}


def _offload(row: dict[str, str]) -> str:
    """What is in host memory: as the notes say, else the optimizer alone."""
    if "offload" not in row["parallelism"]:
        return "none"
    return "parameters" if "offload: optimizer and parameters" in row["notes"] else "optimizer"


_FORMATS = {"AMP nhwc": "channels_last", "AMP nchw": "channels_first"}


def _memory_format(row: dict[str, str], work: Work) -> str:
    """What notes say of the order of elements; detectors of 2019 had PyTorch's own."""
    if work.task not in CONVOLUTIONAL_TASKS:
        return "auto"
    if row["group"] == "maskrcnn-benchmark":
        return "channels_first"
    return next((name for words, name in _FORMATS.items() if words in row["notes"]), "auto")


_COMPILED = frozenset(("maxtext", "tpu-recipes", "aws-neuron"))
_EAGER = frozenset(("timm-3090", "litgpt", "maskrcnn-benchmark", "llm-foundry"))
#: Written-out attention: fused softmax kernels (Megatron-DeepSpeed of 2021) still pass the scores through memory.
_PLAIN = frozenset(("bigscience-a100", "bigscience-v100"))


def software_of(row: dict[str, str]) -> str:
    """The software class of a row: what its notes say, else that of its source."""
    notes, group = row["notes"], row.get("group", "")
    if (
        group in _PLAIN
        or row["model"] == "ELECTRA"
        or row["model"].startswith("Transformer-XL")
        or "baseline" in notes
        or notes.startswith("SQuAD fine-tune, PyTorch")
        or "attention written out" in notes
        or (group == "aws-neuron" and neuron_runs.writes_attention_out(row))
    ):
        return "plain"
    if group in _COMPILED:
        return "compiled"
    scripts = group == "nv-dle" and row.get("task") not in TEXT_TASKS
    return "eager" if group in _EAGER or scripts or "logits in full" in notes or notes.startswith("HF+FA2") else "fused"


def machine(chip: Accelerator, gpus: int, per_node: int, fabric: float = float("nan")) -> Machines:
    """One machine row; `fabric` in Gbit/s of a node, nan for the usual one."""
    per_node = min(per_node or chip.usual_per_node, gpus)
    while gpus % per_node:
        per_node -= 1
    return one_configuration(chip, devices=per_node, nodes=gpus // per_node, internode_gbps=fabric)


def request_of(row: dict[str, str], gpus: int) -> LayoutRequest:
    """The layout of a row, as far as it is stated."""
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
        interleave=ways.get("vp", 1 if "vpn/a" in text or row.get("group") in _PLAIN else None)
        if pipeline > 1
        else None,
        zero_stage=stage,
        micro_batch=micro,
        checkpointing=row["activation_ckpt"] or None,
    )


def predict(run: Run) -> Estimates | None:
    """The estimate of a run with its own layout, regardless of memory; None if it cannot run."""
    for machines, request in requests_of(run):
        prediction = estimate(run.work, run.training, machines, goodput=1.0, request=request)
        if not prediction.reason[0]:
            return prediction
    return None


def requests_of(run: Run) -> Iterator[tuple[Machines, LayoutRequest]]:
    """Requests for a run, in order: the stated layout, our interpretation of it, and the same without a memory limit."""
    for request in _relaxed(run.request):
        yield run.machines, request
    roomy = replace(run.machines, device_memory_mib=np.array([1e9]))
    for request in _relaxed(run.request):
        yield roomy, replace(request, checkpointing=request.checkpointing or "full")


def _relaxed(request: LayoutRequest) -> Iterator[LayoutRequest]:
    """The request, then without the parts that a row may state in other terms."""
    yield request
    yield replace(request, micro_batch=None, interleave=None)
    yield replace(request, micro_batch=None, interleave=None, expert=None, context=None)
