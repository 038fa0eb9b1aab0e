"""From counts at one or two batch sizes to a workload: what every sample adds, and what a pass costs anyway."""

from typing import Any

from api.documents.workload import LONGEST_NOTE

#: A job whose size is not given trains for this many steps: long enough to plan, and said.
NOMINAL_STEPS = 1000
#: A count whose fixed part comes out below minus this share of it grows faster than the batch.
_LINEAR = 0.01


def workload(
    result: dict[str, Any], *, model: str, samples: float | None, global_batch: float | None
) -> tuple[dict[str, Any], list[str]]:
    """The workload part of a job document, and what to tell the user about it."""
    counts, facts, notes = result["counts"], result["model"], list(result["notes"])
    batch = global_batch or float(result["stated_batch"])
    total = samples or NOMINAL_STEPS * batch
    said = (
        [] if samples else [f"--samples not given: {NOMINAL_STEPS:,} steps of {batch:g} samples written; edit samples"]
    )
    said += [] if global_batch else [f"--global-batch not given: the batch of the input, {batch:g}"]
    each = {name: _split(counts, name) for name in counts[0] if name not in {"batch", "sequential_steps"}}
    uneven = sorted(name for name, (_, fixed) in each.items() if fixed is None)
    sizes = " and ".join(str(count["batch"]) for count in counts)
    where = "the meta device" if result["device"] == "meta" else "the CPU"
    notes.insert(0, f"counted by torch {result['torch']} on {where} at batches of {sizes}")
    if uneven:
        notes.append(
            f"{', '.join(uneven)} grow faster than the batch: those of {counts[-1]['batch']} samples, shared out"
        )
    document = {
        "kind": "profile",
        "model": model,
        "samples": _number(total),
        "global_batch_samples": _number(batch),
        **{name: facts[name] for name in ("parameters", "trainable_parameters")},
        **_per_sample(each, counts),
        **_per_pass(each),
        "buffer_bytes": _number(facts["buffer_bytes"] + (each["kept_bytes"][1] or 0.0)),
        "optimizers": facts["modules"],
        "sequential_steps": counts[0]["sequential_steps"],
        "notes": [note.replace("\n", " ")[:LONGEST_NOTE] for note in notes],
    }
    return document, said


def _per_sample(each: dict[str, tuple[float, float | None]], counts: list[dict[str, Any]]) -> dict[str, float]:
    """FLOPs that a pass does whatever its batch are shared out over the samples counted."""
    shared = {
        name: each[name][0] + (each[name][1] or 0.0) / counts[0]["batch"]
        for name in ("matmul_flops", "convolution_flops", "attention_flops")
    }
    none, selective, full = (each[f"{level}kept_bytes"][0] for level in ("", "selective_", "full_"))
    return {
        "flops_per_sample": _number(shared["matmul_flops"] + shared["attention_flops"]),
        "convolution_flops_per_sample": _number(shared["convolution_flops"]),
        "attention_flops_per_sample": _number(shared["attention_flops"]),
        "attention_scores_per_sample": _number(each["attention_scores"][0]),
        "bytes_per_sample": _number(each["eager_bytes"][0]),
        "fused_bytes_per_sample": _number(each["fused_bytes"][0]),
        "activation_bytes_per_sample": _number(none),
        "selective_activation_bytes_per_sample": _number(min(none, selective)),
        "full_activation_bytes_per_sample": _number(min(none, selective, full)),
    }


def _per_pass(each: dict[str, tuple[float, float | None]]) -> dict[str, float]:
    eager, fused = (each[f"{kind}_bytes"][1] or 0.0 for kind in ("eager", "fused"))
    return {
        "bytes_per_pass": _number(eager),
        "fused_bytes_per_pass": _number(min(eager, fused)),
        **{name: _number(sum(part or 0.0 for part in each[name])) for name in ("kernels", "fused_kernels")},
    }


def _split(counts: list[dict[str, Any]], name: str) -> tuple[float, float | None]:
    """(per sample, per pass) of a count; per pass is None where it grows faster than the batch.

    With one batch size all of it is put down to the samples; kernels, to the pass.
    """
    first, batch = float(counts[0][name]), float(counts[0]["batch"])
    if len(counts) == 1:
        return (0.0, first) if name.endswith("kernels") else (first / batch, 0.0)
    second, larger = float(counts[1][name]), float(counts[1]["batch"])
    if name.endswith("kernels"):
        return 0.0, second
    slope = (second - first) / (larger - batch)
    fixed = first - slope * batch
    if slope < 0 or fixed < -_LINEAR * first:
        return second / larger, None
    return slope, max(0.0, fixed)


def _number(value: float) -> float | int:
    """Whole numbers as such, others to four digits after the point: what a person can read and edit."""
    return int(value) if float(value).is_integer() else round(value, 4)
