"""Converts counts at one or two batch sizes to a workload: costs per sample and per pass."""

from typing import Any

from gpuplan.catalog.parsing.document_fields import LONGEST_NOTE

#: Default training steps of a job without --samples; a note tells the user.
NOMINAL_STEPS = 1000
#: A count whose fitted fixed part is below minus this share grows faster than the batch.
_LINEAR = 0.01


def workload(
    result: dict[str, Any], *, model: str, samples: float | None, global_batch: float | None
) -> tuple[dict[str, Any], list[str]]:
    """The workload part of a job document, and notes for the user."""
    counts, facts, notes = result["counts"], result["model"], list(result["notes"])
    batch = global_batch or float(result["stated_batch"])
    total = samples or NOMINAL_STEPS * batch
    assumptions = (
        [] if samples else [f"--samples not given: {NOMINAL_STEPS:,} steps of {batch:g} samples written; edit samples"]
    )
    assumptions += [] if global_batch else [f"--global-batch not given: the batch of the input, {batch:g}"]
    costs = {name: _split(counts, name) for name in counts[0] if name not in {"batch", "sequential_steps"}}
    uneven = sorted(name for name, (_, fixed) in costs.items() if fixed is None)
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
        **_per_sample(costs, counts),
        **_per_pass(costs),
        "buffer_bytes": _number(facts["buffer_bytes"] + (costs["saved_bytes"][1] or 0.0)),
        "optimizers": facts["modules"],
        "sequential_steps": counts[0]["sequential_steps"],
        "notes": [note.replace("\n", " ")[:LONGEST_NOTE] for note in notes],
    }
    return document, assumptions


def _per_sample(costs: dict[str, tuple[float, float | None]], counts: list[dict[str, Any]]) -> dict[str, float]:
    """Costs per sample; fixed FLOPs of a pass are divided by the samples counted."""
    shared = {
        name: costs[name][0] + (costs[name][1] or 0.0) / counts[0]["batch"]
        for name in ("matmul_flops", "convolution_flops", "attention_flops")
    }
    none, selective, full = (costs[f"{level}saved_bytes"][0] for level in ("", "selective_", "full_"))
    return {
        "flops_per_sample": _number(shared["matmul_flops"] + shared["attention_flops"]),
        "convolution_flops_per_sample": _number(shared["convolution_flops"]),
        "attention_flops_per_sample": _number(shared["attention_flops"]),
        "attention_scores_per_sample": _number(costs["attention_scores"][0]),
        "bytes_per_sample": _number(costs["eager_bytes"][0]),
        "fused_bytes_per_sample": _number(costs["fused_bytes"][0]),
        "activation_bytes_per_sample": _number(none),
        "selective_activation_bytes_per_sample": _number(min(none, selective)),
        "full_activation_bytes_per_sample": _number(min(none, selective, full)),
    }


def _per_pass(costs: dict[str, tuple[float, float | None]]) -> dict[str, float]:
    eager, fused = (costs[f"{kind}_bytes"][1] or 0.0 for kind in ("eager", "fused"))
    return {
        "bytes_per_pass": _number(eager),
        "fused_bytes_per_pass": _number(min(eager, fused)),
        **{name: _number(sum(part or 0.0 for part in costs[name])) for name in ("kernels", "fused_kernels")},
    }


def _split(counts: list[dict[str, Any]], name: str) -> tuple[float, float | None]:
    """(per sample, per pass) of a count; per pass is None if the count grows faster than the batch.

    With one batch size everything is attributed to the samples, and kernels to the pass.
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
    """A readable number: whole numbers unchanged, others with four decimals."""
    return int(value) if float(value).is_integer() else round(value, 4)
