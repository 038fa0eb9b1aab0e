"""Carry measured runs and memory facts over into gpuplan's own calibration data: `python -m benchmarks.import_runs`.

Run again it writes the same bytes. Each row keeps its source. What is added: `family`, the sources that share a stack
or an organiser and are left out together; `scored`, whether a row counts by itself (`absolute`) or only against
others of the same unknown work (`ratio`); and `compared_within`, which others those are.
"""

import csv
import io
import lzma
import math
import re
from collections import Counter
from pathlib import Path

FACTS = Path(__file__).resolve().parents[2] / "shared" / "data" / "runs"
CALIBRATION = Path(__file__).resolve().parents[1] / "planner" / "calibration"
RUNS, MEMORY = "runs.csv.xz", "memory.csv.xz"

#: Columns of a run; `source` says where it was read, `group` is the unit of scores.
COLUMNS = [
    "id",
    "source",
    "group",
    "family",
    "year",
    "task",
    "model",
    "params",
    "active_params",
    "layers",
    "hidden",
    "heads",
    "kv_heads",
    "seq_len",
    "vocab",
    "image_size",
    "gpu",
    "gpus_total",
    "gpus_per_node",
    "internode_gbps",
    "precision",
    "parallelism",
    "global_batch",
    "micro_batch",
    "activation_ckpt",
    "throughput",
    "throughput_unit",
    "scored",
    "compared_within",
    "notes",
]
MEMORY_COLUMNS = [
    "id",
    "source",
    "group",
    "model",
    "params",
    "layers",
    "hidden",
    "heads",
    "kv_heads",
    "vocab",
    "method",
    "optimizer",
    "precision",
    "parallelism",
    "gpus_total",
    "activation_ckpt",
    "micro_batch",
    "seq_len",
    "gpu",
    "gpu_mem_gb",
    "fits",
    "peak_gb",
    "peak_kind",
    "notes",
]

#: Source groups that share a stack: what one teaches of its software the others repeat.
_FAMILIES = {
    "megatron-bridge": "megatron-nemo",
    "nemo-docs": "megatron-nemo",
    "megatron-lm": "megatron-nemo",
    "megatron-papers": "megatron-nemo",
    "maxtext": "maxtext",
    "tpu-recipes": "maxtext",
}
_NAMES = {
    "NVIDIA A40": "A40",
    "NVIDIA RTX A5000": "RTX-A5000",
    "NVIDIA L4": "L4",
    "H100-96GB-SXM": "H100-96GB-HBM2e-SXM-500W",
}
#: Units that count known work; all others are compared only.
_ABSOLUTE = {"tokens/s/gpu", "sequences/sec", "img/s", "tok/s"}
#: Models of which the unit of a sample is known where a row says "samples".
_SAMPLES_ARE_KNOWN = {"timm-3090", "deepspeed-docs"}
#: Words of a source that tell variants of one model apart.
_VARIANT = re.compile(
    r"\bv[12]-[A-Z0-9]+|phase ?[12]|fine-?tun\w*|squad|pre-?train\w*|\bbase\b|\blarge\b", re.IGNORECASE
)


def imported(name: str) -> bytes:
    """The bytes of our own file `name`, from the facts."""
    wanted = {
        RUNS: ("runs_calibration.csv", run_row, COLUMNS),
        MEMORY: ("memory_calibration.csv", fact_row, MEMORY_COLUMNS),
    }
    facts, convert, columns = wanted[name]
    with (FACTS / facts).open(encoding="utf-8", newline="") as file:
        rows = [convert(row) for row in csv.DictReader(file) if "SUSPECT" not in row["notes"]]
    if name == RUNS:
        _pair_up(rows)
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return lzma.compress(text.getvalue().encode())


def run_row(row: dict[str, str]) -> dict[str, str]:
    """One measured run in our columns."""
    kept = {name: row[name] for name in COLUMNS if name in row}
    group = row["source_group"]
    image = re.search(r"img (\d+)px", row["notes"])
    scored = _scored(row)
    throughput, unit = row["throughput"], row["throughput_unit"]
    if unit.startswith("tflops") and not throughput:
        throughput = row["tflops_per_gpu"]
    return kept | {
        "group": group,
        "family": "mlperf" if group.startswith("mlperf") else _FAMILIES.get(group, group),
        "gpu": _NAMES.get(row["gpu"], row["gpu"]),
        "image_size": image.group(1) if image else "",
        "internode_gbps": internode_gbps(row["interconnect_inter"]),
        "throughput": throughput,
        "scored": scored,
        "compared_within": comparison(row) if scored == "ratio" else "",
    }


def fact_row(row: dict[str, str]) -> dict[str, str]:
    """One memory fact in our columns."""
    return {name: row[name] for name in MEMORY_COLUMNS if name in row} | {"group": row["source_group"]}


def _scored(row: dict[str, str]) -> str:
    unit = row["throughput_unit"]
    if (
        unit in _ABSOLUTE
        or unit.startswith("tflops")
        or (unit == "samples/s" and row["source_group"] in _SAMPLES_ARE_KNOWN)
    ):
        return "absolute"
    return "ratio"


def comparison(row: dict[str, str]) -> str:
    """Rows with the same text did the same work: model, framework, precision, variant, and batch for time to train.

    How many samples reach the target depends on the global batch, so times to train are compared only
    where batches differ less than fourfold.
    """
    batch = float(row["global_batch"] or 0)
    variant = " ".join(sorted({word.lower() for word in _VARIANT.findall(row["source"])}))
    framework = row["notes"].split(";")[0].strip() if row["source_group"] == "nv-dle" else ""
    if row["throughput_unit"] == "minutes_to_train":
        # DeepSpeed's own rows state one recipe.
        bucket = f"batch 4^{int(math.log(batch, 4))}" if batch else "one recipe"
        return f"{row['source_group']} | {row['model']} | {bucket}"
    return f"{row['source_group']} | {row['model']} | {framework} | {row['precision']} | {row['seq_len']} | {variant}"


def _pair_up(rows: list[dict[str, str]]) -> None:
    """A time to train that no run of like batch stands beside is compared with those of the nearest batch."""
    timed = [row for row in rows if row["scored"] == "ratio" and row["throughput_unit"] == "minutes_to_train"]
    shared = Counter(row["compared_within"] for row in timed)
    for row in timed:
        others = [other for other in timed if _benchmark(other) == _benchmark(row) and other is not row]
        if shared[row["compared_within"]] == 1 and others:
            nearest = min(others, key=lambda other: abs(math.log(_batch(other) / _batch(row))))
            row["compared_within"] = nearest["compared_within"]


def _benchmark(row: dict[str, str]) -> tuple[str, str]:
    return row["group"], row["model"]


def _batch(row: dict[str, str]) -> float:
    return float(row["global_batch"] or 1)


def internode_gbps(text: str) -> str:
    """Gbit/s of one node over all NICs for computing, where the row tells it; empty if not."""
    whole = re.search(r"(\d+) ?Gbps/node", text)
    if whole:
        return whole.group(1)
    computing = re.split(r"(?i)compute\w*:", text)[-1]
    each = re.search(r"(?i)(\d+) ?x[^,;]*?(\d+) ?Gb(?:ps|/s)", computing)
    return str(int(each.group(1)) * int(each.group(2))) if each else ""


def main() -> None:
    """Write both files and say what is in them."""
    for name in (RUNS, MEMORY):
        content = imported(name)
        (CALIBRATION / name).write_bytes(content)
        count = lzma.decompress(content).count(b"\n") - 1
        print(f"{name}: {count} rows, {len(content):,} bytes")


if __name__ == "__main__":
    main()
