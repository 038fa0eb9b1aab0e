"""How long one call of the estimator takes for about 700 machine rows: `python -m benchmarks.estimate_speed`."""

import statistics
import time
from dataclasses import fields
from typing import Any

import numpy as np

from catalog.accelerators import accelerators
from planner.estimate import estimate
from planner.estimate.machines import LayoutRequest, Machines
from planner.job import Explicit, Preset, Training, Workload
from planner.workload import work_of

CHIPS = [
    "V100-16GB",
    "V100-32GB",
    "A100-40GB-SXM",
    "A100-80GB-SXM",
    "A100-80GB-PCIe",
    "H100-80GB-SXM",
    "H200-141GB-SXM",
    "B200-SXM",
    "GB200",
    "L4",
    "L40S",
    "A10G",
    "T4",
    "K80",
    "MI300X",
    "TPU-v5e",
    "TPU-v5p",
    "TPU-v6e",
    "Trainium1",
    "Gaudi2",
]
DEVICES = (1, 4, 8)
NODES = (1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 28, 32)
JOBS: dict[str, tuple[Workload, Training]] = {
    "llama-3-8b": (Preset(model="llama-3-8b", tokens=3e11, global_batch_tokens=4e6), Training(precision="bf16")),
    "llama-3-8b, 64k": (
        Preset(model="llama-3-8b", tokens=3e11, global_batch_tokens=4e6, sequence_length=65536),
        Training(),
    ),
    "llama-3-8b, lora": (Preset(model="llama-3-8b", tokens=1e8, global_batch_tokens=131072), Training(method="lora")),
    "llama-3-70b": (Preset(model="llama-3-70b", tokens=3e11, global_batch_tokens=4e6), Training()),
    "llama-3.1-405b": (Preset(model="llama-3.1-405b", tokens=1e12, global_batch_tokens=1.6e7), Training()),
    "mixtral-8x7b": (Preset(model="mixtral-8x7b", tokens=3e11, global_batch_tokens=4e6), Training()),
    "deepseek-v3": (Preset(model="deepseek-v3", tokens=1e12, global_batch_tokens=3e7), Training()),
    "bert-large": (Preset(model="bert-large", tokens=1e11), Training()),
    "resnet-50": (Preset(model="resnet-50", samples=1e8, global_batch_samples=4096), Training(optimizer="sgd")),
    "explicit": (Explicit(total_flops=1e21, memory_gib=500), Training()),
}


def machines() -> Machines:
    """Twenty accelerators x three machine sizes x twelve node counts."""
    table = tuple(accelerators()[name] for name in CHIPS)
    chip, devices, nodes = (part.ravel() for part in np.meshgrid(np.arange(len(table)), DEVICES, NODES, indexing="ij"))
    count = len(nodes)
    return Machines(
        accelerators=table,
        accelerator=chip,
        devices=devices,
        fraction=np.ones(count),
        device_memory_mib=np.array([float(table[index].device_memory_mib) for index in chip]),
        intranode_gbs=np.full(count, np.nan),
        scaleup_domain=np.maximum(devices, np.array([table[index].link_domain for index in chip])),
        internode_gbps=np.full(count, np.nan),
        clusters=np.ones(count, dtype=bool),
        nodes=nodes,
    )


def repeated(rows: Machines, times: int) -> Machines:
    """The same rows again and again."""
    columns: dict[str, Any] = {f.name: getattr(rows, f.name) for f in fields(rows) if f.name != "accelerators"}
    return Machines(
        accelerators=rows.accelerators, **{name: np.tile(values, times) for name, values in columns.items()}
    )


def print_amortised(rows: Machines) -> None:
    """Microseconds per (shape, nodes, layout) where the layout is given: the inner loop of every plan."""
    one = LayoutRequest(tensor=1, pipeline=1, context=1, zero_stage=3, micro_batch=1, checkpointing="full")
    many = repeated(rows, 14)
    work, training = work_of(*JOBS["llama-3-8b"]), JOBS["llama-3-8b"][1]
    times = []
    for _ in range(20):
        start = time.perf_counter()
        estimate(work, training, many, goodput=0.8, request=one)
        times.append(1e6 * (time.perf_counter() - start) / len(many))
    print(f"\n{len(many):,} configurations of llama-3-8b at a given layout: {statistics.median(times):.2f} us each")


def main() -> None:
    """Print milliseconds per call."""
    rows = machines()
    print(f"{len(rows)} rows\n{'job':22}{'best ms':>9}{'median':>9}{'p90':>9}{'can run':>9}")
    for name, (workload, training) in JOBS.items():
        work = work_of(workload, training)
        found = estimate(work, training, rows, goodput=0.8)
        times = []
        for _ in range(40):
            start = time.perf_counter()
            estimate(work, training, rows, goodput=0.8)
            times.append(1e3 * (time.perf_counter() - start))
        p90 = statistics.quantiles(times, n=10)[-1]
        able = int((found.reason == 0).sum())
        print(f"{name:22}{min(times):9.2f}{statistics.median(times):9.2f}{p90:9.2f}{able:9}")
    print_amortised(rows)


if __name__ == "__main__":
    main()
