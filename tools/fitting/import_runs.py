"""Carry collected runs and memory facts over into the fitting facts: `python -m tools.fitting.import_runs FOLDER`.

Run again it writes the same bytes. Each row keeps its source. What is added: `family`, the sources that share a stack
or an organiser and are left out together; `scored`, whether a row counts by itself (`absolute`) or only against
others of the same unknown work (`ratio`); and `compared_within`, which others those are.
"""

import argparse
import csv
import io
import lzma
import math
import re
from collections import Counter
from pathlib import Path

FACTS = Path(__file__).resolve().parents[2] / "planner" / "performance" / "calibration" / "facts"
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
    "total_flops",
    "gmacs",
    "melements",
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
    "gmacs",
    "melements",
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
    "nemo-long-sequence": "megatron-nemo",
    "bigscience-a100": "bigscience",
    "bigscience-v100": "bigscience",
}
_NAMES = {
    "NVIDIA A40": "A40",
    "NVIDIA RTX A5000": "RTX-A5000",
    "NVIDIA L4": "L4",
    "H100-96GB-SXM": "H100-96GB-HBM2e-SXM-500W",
}
#: Units that count known work; all others are compared only.
_ABSOLUTE = {"tokens/s/gpu", "sequences/sec", "sequences/s", "img/s", "tok/s"}
#: Models of which the unit of a sample is known where a row says "samples".
_SAMPLES_ARE_KNOWN = {"timm-3090", "deepspeed-docs", "aws-neuron"}
#: Words of a source that tell variants of one model apart.
_VARIANT = re.compile(
    r"\bv[12]-[A-Z0-9]+|phase ?[12]|fine-?tun\w*|squad|pre-?train\w*|\bbase\b|\blarge\b", re.IGNORECASE
)


def imported(name: str, folder: Path) -> bytes:
    """The bytes of our own file `name`, from the collected tables in `folder`. Raises `OSError` if one is missing."""
    wanted = {
        RUNS: (("runs_calibration.csv", "runs_added.csv"), run_row, COLUMNS),
        MEMORY: (("memory_calibration.csv", "memory_added.csv"), fact_row, MEMORY_COLUMNS),
    }
    collected, convert, columns = wanted[name]
    rows = [convert(row) for table in collected for row in _read(folder / table) if "SUSPECT" not in row["notes"]]
    if name == RUNS:
        _pair_up(rows)
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return lzma.compress(text.getvalue().encode())


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def run_row(row: dict[str, str]) -> dict[str, str]:
    """One measured run in our columns."""
    shared_columns = {name: row[name] for name in COLUMNS if name in row}
    group = row["source_group"]
    image = re.search(r"img (\d+)px", row["notes"])
    scored = _scored(row)
    throughput, unit = row["throughput"], row["throughput_unit"]
    if unit.startswith("tflops") and not throughput:
        throughput = row["tflops_per_gpu"]
    return (
        shared_columns
        | _counts(row["notes"])
        | {
            "group": group,
            "family": "mlperf" if group.startswith("mlperf") else _FAMILIES.get(group, group),
            "gpu": _NAMES.get(row["gpu"], row["gpu"]),
            "precision": row["precision"].lower(),
            "image_size": image.group(1) if image else "",
            "internode_gbps": internode_gbps(row["interconnect_inter"]),
            "throughput": throughput,
            "scored": scored,
            "compared_within": comparison(row) if scored == "ratio" else "",
        }
    )


def fact_row(row: dict[str, str]) -> dict[str, str]:
    """One memory fact in our columns."""
    known = {name: row[name] for name in MEMORY_COLUMNS if name in row}
    return known | _counts(row["notes"]) | {"group": row["source_group"]}


def _counts(notes: str) -> dict[str, str]:
    """Multiply-adds (1e9) and layer outputs (1e6) of one sample forward, where the notes of a row tell them."""
    counts = re.search(r"fwd GMACs ([\d.]+), M activations ([\d.]+)", notes)
    return {"gmacs": counts.group(1), "melements": counts.group(2)} if counts else {"gmacs": "", "melements": ""}


def _scored(row: dict[str, str]) -> str:
    unit = row["throughput_unit"]
    if (
        unit in _ABSOLUTE
        or unit.startswith(("tflops", "useful_tflops"))
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
    if row["source_group"] == "litgpt":
        return f"litgpt | {re.sub(r' [(]Q?LoRA[)]', '', row['model'])}"
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
    item = re.search(r"(?i)(\d+) ?x[^,;]*?(\d+) ?Gb(?:ps|/s)", computing)
    return str(int(item.group(1)) * int(item.group(2))) if item else ""


def main() -> None:
    """Write both files and say what is in them."""
    parser = argparse.ArgumentParser(prog="python -m tools.fitting.import_runs", description="Import collected runs.")
    parser.add_argument("folder", type=Path, help="folder with runs_calibration.csv and memory_calibration.csv")
    folder = parser.parse_args().folder
    contents = {name: imported(name, folder) for name in (RUNS, MEMORY)}
    for name, content in contents.items():
        (FACTS / name).write_bytes(content)
        count = lzma.decompress(content).count(b"\n") - 1
        print(f"{name}: {count} rows, {len(content):,} bytes")


if __name__ == "__main__":
    main()
