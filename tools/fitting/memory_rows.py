"""Convert measured memory facts to estimator inputs: the job, the machine, and the observation."""

import csv
import json
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np

from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.job import Preset, Training, Transformer
from gpuplan.planner.performance.estimator_request import LayoutRequest, Machines
from gpuplan.planner.workload import work_of
from gpuplan.planner.workload.presets import presets
from gpuplan.planner.workload.step_work import Work
from tools.fitting.measured_runs import machine, request_of, rows, training_of
from tools.fitting.run_work import work_of_row

GIB_PER_GB = 1e9 / (1 << 30)
FILE = "memory.csv.xz"

#: Dimensions missing from the facts, from the models' published configurations (config.json on the Hugging Face Hub).
with Path(__file__).with_name("memory_dimensions.csv").open(encoding="utf-8") as _file:
    _DIMENSIONS: dict[str, dict[str, int | bool]] = {
        row.pop("model"): {name: json.loads(value) for name, value in row.items() if value}
        for row in csv.DictReader(_file)
    }
_PRESETS = {"t0_3b": "t5-3b", "gpt-13b": "gpt3-13b", "stable-diffusion-v1-4": "stable-diffusion-1.5"}
#: LitGPT's configuration files say on how many devices a run of its table was; "4xA10G" is the machine it ran on.
_DEVICES = {"mem-litgpt-0032": 2, "mem-litgpt-0039": 2, "mem-litgpt-0044": 1}
#: Models whose LitGPT configuration puts adapters on query and value alone, as its own default, the runs of its tutorials
#: and PEFT's defaults do.
_QUERY_AND_VALUE = frozenset(("llama2-7b", "llama3-8b", "mistral-7b", "falcon-7b", "stablelm-3b-alpha"))
#: Tokens of a sample where a fact does not tell: PEFT's table is of tweets cut at 64 tokens.
_LENGTHS = {"peft": 64, "deepspeed-docs": 1024}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One measurement: `peak_gib` where it was measured, by PyTorch's allocator (`reserved` or allocated) or nvidia-smi.

    A peak of nvidia-smi is `whole`: it includes the context and the buffers of communication.

    `loads_whole` marks stacks that build the whole model on each device before they shard it; `source` is the file
    that the fact was read in.
    """

    row: dict[str, str]
    source: str
    work: Work
    training: Training
    machines: Machines
    request: LayoutRequest
    fits: bool
    peak_gib: float | None
    reserved: bool
    whole: bool
    loads_whole: bool


def facts() -> tuple[list[Fact], list[tuple[str, str]]]:
    """All facts that the estimator can predict, and (id, reason) of the others."""
    known, left = [], []
    for row in rows(FILE):
        fact = _fact(row)
        if isinstance(fact, Fact):
            known.append(fact)
        else:
            left.append((row["id"], fact))
    return known, left


def _fact(row: dict[str, str]) -> Fact | str:
    """The fact of `row`, or why the estimator cannot predict it."""
    row = _row_as_planned(row)
    chip = accelerators().get(row["gpu"])
    if chip is None:
        return "accelerator not in the catalogue"
    if row["fits"] == "0" and not row["micro_batch"]:
        return "ran out of memory at a batch that is not told"
    gpus = int(row["gpus_total"] or 1)
    training = _training(row)
    work = work_of_fact(row, training, gpus)
    if work is None:
        return "dimensions of the model not known"
    return Fact(
        row=row,
        source=_source(row),
        work=work,
        training=training,
        machines=machine(chip, gpus, 0),
        request=request_of(row, gpus),
        fits=row["fits"] == "1",
        peak_gib=float(row["peak_gb"]) * GIB_PER_GB if row["peak_gb"] else None,
        reserved="allocated" not in row["peak_kind"],
        whole="nvidia-smi" in row["peak_kind"],
        loads_whole=row["group"] == "litgpt" and gpus > 1,
    )


def _source(row: dict[str, str]) -> str:
    """Group, and the file within it for a group with several tables."""
    table = "configurations" if "config_hub" in row["source"] else "tutorials"
    return f"litgpt {table}" if row["group"] == "litgpt" else row["group"]


def _row_as_planned(row: dict[str, str]) -> dict[str, str]:
    """The row, completed from its source: devices in use, batch and checkpointing of its scripts."""
    completed = dict(row)
    if row["group"] == "litgpt":
        alone = row["parallelism"] in {"single", "ddp/fsdp"} or _DEVICES.get(row["id"]) == 1
        completed["gpus_total"] = "1" if alone else str(_DEVICES.get(row["id"], row["gpus_total"]))
        completed["parallelism"] = "single" if alone else "fsdp"
        completed["activation_ckpt"] = row["activation_ckpt"] or ("none" if alone else "full")
    if row["group"] == "peft":
        completed["micro_batch"] = row["micro_batch"] or "1"
        completed["activation_ckpt"] = row["activation_ckpt"] or "none"
    if "recomputation on" in row["notes"]:
        completed["activation_ckpt"] = "full"
    completed["seq_len"] = row["seq_len"] or str(_LENGTHS.get(row["group"], ""))
    return completed


def _training(row: dict[str, str]) -> Training:
    training = training_of(row)
    if row["group"] == "peft":
        # The table of early 2023: weights loaded in 32 bit (four bytes a frozen parameter), attention written out.
        training = replace(training, precision="fp32", software="plain")
    if training.method == "full":
        return training
    everywhere = row["group"] == "litgpt" and "config_hub" in row["source"] and row["model"] not in _QUERY_AND_VALUE
    everywhere = everywhere or "on all linear layers" in row["notes"]
    rank = 32 if "rank 32" in row["notes"] else 8
    # Unsloth's and PEFT's defaults have no dropout.
    dropout = row["group"] not in {"unsloth", "peft"}
    return replace(training, rank=rank, adapters_on="all" if everywhere else "query_value", adapter_dropout=dropout)


def work_of_fact(row: dict[str, str], training: Training, gpus: int) -> Work | None:
    """The work of a fact's row under `training`; None if its model is unknown."""
    name = row["model"].lower()
    try:
        model = _dimensions(name, row, gpus)
        if model is not None:
            return work_of(model, training)
        if name in _PRESETS and not row["params"]:
            return work_of(Preset(model=_PRESETS[name], samples=1e6), training)
        return work_of_row(row | {"model": _PRESETS.get(name, row["model"])}, training, gpus)
    except UnusableInput:
        return None


def _dimensions(name: str, row: dict[str, str], gpus: int) -> Transformer | None:
    """Dimensions of our own or of a preset whose head its framework holds apart from the embedding."""
    length = int(row["seq_len"] or 0)
    batch = float(length * gpus * int(row["micro_batch"] or 1))
    dimensions = _DIMENSIONS.get(name)
    if dimensions is None and row["group"] == "litgpt":
        dimensions = _published(name)
    if dimensions is None or not length:
        return None
    untied = {"tied_embeddings": False} if row["group"] == "litgpt" else {}
    amounts = {"sequence_length": length, "tokens": 1e12, "global_batch_tokens": batch, "causal": True}
    make: Callable[..., Transformer] = Transformer
    return make(**(dimensions | untied | amounts))


def _published(name: str) -> dict[str, int | bool] | None:
    """Dimensions of the preset called `name`; None if there is none or it is no transformer."""
    row = next((preset for preset in presets().values() if name in {preset.name, *preset.aliases}), None)
    if row is None or row.architecture != "transformer":
        return None
    shared = {field.name for field in fields(row)} & {field.name for field in fields(Transformer)}
    return {field: getattr(row, field) for field in shared - {"sequence_length", "tokens", "global_batch_tokens"}}


def sizes_gib() -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Memory of every size of accelerator in the catalogue that trains, GiB, in rising order."""
    return np.unique([chip.device_memory_mib / 1024 for chip in accelerators().values() if chip.trains != "no"])
