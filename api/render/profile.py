"""A counted module for people: what a sample costs, what it holds, and where the job file is."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType

from api.render.tables import bullets, cell, facts, heading
from api.render.text import number

_MIB = 2**20


def render_profile(document: Mapping[str, Any], *, path: str, said: Sequence[str], states_gib: float) -> Group:
    """Headline, counts and what was assumed; `path` is the job file, `states_gib` weights, gradients and optimizer."""
    counted = document["workload"]
    parts: list[RenderableType] = [cell(f"{document['name']}: counted into {path}", "bold green")]
    parts.append(facts(_rows(counted, states_gib)))
    parts += [heading("Notes"), *bullets([*said, *counted["notes"]], "")]
    parts.append(cell(f"Next: gpuplan plan {path}, or gpuplan estimate {path} --on ACCELERATOR --gpus N", ""))
    return Group(*parts)


def _rows(counted: Mapping[str, Any], states_gib: float) -> list[tuple[str, str | None]]:
    frozen = counted["parameters"] - counted["trainable_parameters"]
    steps, modules = counted["sequential_steps"], counted["optimizers"]
    return [
        ("parameters", f"{counted['parameters']:,}" + (f", {frozen:,} of them frozen" if frozen else "")),
        ("modules with an optimizer each", str(modules) if modules > 1 else None),
        ("FLOPs of a sample", f"{number(counted['flops_per_sample'] / 1e9)} GFLOP, forward and backward"),
        (
            "bytes moved by a sample",
            f"{number(counted['fused_bytes_per_sample'] / _MIB)} MiB fused, {number(counted['bytes_per_sample'] / _MIB)} MiB eager",
        ),
        (
            "kept for the backward pass",
            f"{number(counted['activation_bytes_per_sample'] / _MIB)} MiB of a sample at 16 bit",
        ),
        ("states", f"{number(states_gib)} GiB (weights, gradients, optimizer)"),
        ("steps that wait for each other", f"{steps:,}" if steps > 1 else None),
    ]
