"""Sections for a counted module: cost per sample, memory, and the job file."""

from collections.abc import Sequence

from gpuplan.api.presentation.sections import Block, Heading, Sections, Tone, sections_of
from gpuplan.api.presentation.text_formatting import number
from gpuplan.api.presentation.text_tables import bullets, cell, facts, heading
from gpuplan.planner.model.workloads import Profile

_MIB = 2**20


def render_profile(
    name: str, workload: Profile, *, path: str, assumptions: Sequence[str], states_gib: float
) -> Sections:
    """Headline, counts and assumptions; `path` is the job file, `states_gib` is weights, gradients and optimizer in GiB."""
    parts: list[Block | Heading] = [cell(f"{name}: counted into {path}", Tone.GOOD)]
    parts.append(facts(_rows(workload, states_gib)))
    parts += [heading("Notes"), *bullets([*assumptions, *workload.notes], Tone.PLAIN)]
    parts.append(cell(f"Next: gpuplan plan {path}, or gpuplan estimate {path} --on ACCELERATOR --gpus N", Tone.PLAIN))
    return sections_of(*parts)


def _rows(workload: Profile, states_gib: float) -> list[tuple[str, str | None]]:
    frozen = workload.parameters - workload.trainable_parameters
    steps, modules = workload.sequential_steps, workload.optimizers
    return [
        ("parameters", f"{workload.parameters:,.0f}" + (f", {frozen:,.0f} of them frozen" if frozen else "")),
        ("modules with their own optimizer", str(modules) if modules > 1 else None),
        ("FLOPs per sample", f"{number(workload.flops_per_sample / 1e9)} GFLOP, forward and backward"),
        (
            "bytes moved per sample",
            f"{number(workload.fused_bytes_per_sample / _MIB)} MiB fused, {number(workload.bytes_per_sample / _MIB)} MiB eager",
        ),
        (
            "kept for the backward pass",
            f"{number(workload.activation_bytes_per_sample / _MIB)} MiB per sample at 16 bit",
        ),
        ("states", f"{number(states_gib)} GiB (weights, gradients, optimizer)"),
        ("sequential steps", f"{steps:,}" if steps > 1 else None),
    ]
