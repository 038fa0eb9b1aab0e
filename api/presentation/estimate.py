"""Sections for an estimate: time, memory, and the time of a step by component."""

from collections.abc import Sequence
from typing import cast

from gpuplan.api.presentation.sections import Block, Heading, Sections, Tone, sections_of
from gpuplan.api.presentation.text_formatting import duration, layout, number, percent
from gpuplan.api.presentation.text_tables import bullets, cell, facts, heading, listing
from gpuplan.planner.model.estimate import Estimate, Memory, Terms


def render_estimate(answer: Estimate) -> Sections:
    """Headline, throughput, memory, step time components and assumptions."""
    parts: list[Block | Heading] = [_headline(answer), _figures(answer), heading("Memory per accelerator")]
    parts += [_memory(answer.memory), heading("Step time by component"), _terms(answer.terms)]
    for title, sentences, tone in (
        ("Largest doubts about the hours", [doubt.sentence for doubt in answer.doubts], Tone.PLAIN),
        ("Assumptions", answer.assumptions, Tone.PLAIN),
        ("Warnings", answer.warnings, Tone.WARNING),
    ):
        if sentences:
            parts += [heading(title), *bullets(sentences, tone)]
    return sections_of(*parts)


def render_comparison(compared: Sequence[tuple[str, Estimate | str]]) -> Sections:
    """A line per configuration, in the order asked: its estimate, or why it cannot run the job."""
    rows = []
    for label, answer in compared:
        if isinstance(answer, str):
            rows.append((label, answer, "", "", "", ""))
            continue
        band = f"{duration(answer.band.low_hours)} to {duration(answer.band.high_hours)}"
        memory = f"{number(answer.memory.peak_gib)} of {number(answer.memory.capacity_gib)} GiB"
        fits = "fits" if answer.memory.fits else "does NOT fit"
        hours = duration(answer.hours_with_goodput) if answer.memory.fits else "-"
        rows.append(
            (
                label,
                hours,
                band if answer.memory.fits else "-",
                f"{memory}: {fits}",
                percent(answer.mfu, 1),
                number(answer.throughput.value),
            )
        )
    unit = next((answer.throughput.unit for _, answer in compared if not isinstance(answer, str)), "")
    titles = ("configuration", "wall time", "80 % of steady training", "memory", "MFU", unit)
    return sections_of(listing(titles, rows, right=(1, 4, 5)))


def _headline(answer: Estimate) -> Block:
    where = f"{number(answer.on['gpus'])} x {answer.on['accelerator']}"
    if not answer.memory.fits:
        return cell(f"The job does not fit in memory on {where}.", Tone.BAD)
    likely = f"80 % likely between {duration(answer.band.low_hours)} and {duration(answer.band.high_hours)}"
    return cell(f"{duration(answer.hours)} of steady training on {where} ({likely})", Tone.GOOD)


def _figures(answer: Estimate) -> Block:
    rate = answer.throughput
    assumed = [
        f"{name.replace('_', ' ')} {number(value['value'])}"
        for name, value in (
            ("gpus_per_node", answer.on["gpus_per_node"]),
            ("internode_gbps", answer.on["internode_gbps"]),
        )
        if value["assumed"]
    ]
    return facts(
        [
            ("with restarts, evaluation, checkpoints", duration(answer.hours_with_goodput)),
            ("step", f"{number(answer.step_seconds)} s"),
            ("throughput", f"{number(rate.value)} {rate.unit}, {number(rate.per_accelerator)} per accelerator"),
            ("model FLOPs utilisation", percent(answer.mfu, 1)),
            ("TFLOP/s per accelerator", number(answer.tflops_per_accelerator)),
            ("precision", answer.precision),
            ("layout", layout(answer.layout)),
            ("assumed", ", ".join(assumed) or None),
        ]
    )


def _memory(memory: Memory) -> Block:
    verdict = "fits" if memory.fits else "does NOT fit"
    return facts(
        [
            ("peak", f"{number(memory.peak_gib)} GiB of {number(memory.capacity_gib)} GiB: {verdict}"),
            ("states", f"{number(memory.states_gib)} GiB (weights, gradients, optimizer)"),
            ("activations", f"{number(memory.activations_gib)} GiB"),
            ("other", f"{number(memory.other_gib)} GiB (context, buffers, fragmentation)"),
            ("largest micro-batch", _count(memory.largest_micro_batch, "at this layout", "none fits")),
            ("least accelerators", _count(memory.least_accelerators, "that fit the job with some layout", "none")),
        ]
    )


def _count(value: int | None, what: str, nothing: str) -> str | None:
    """`12 at this layout`; nothing where it is not known."""
    return None if value is None else f"{number(value)} {what}" if value else nothing


def _terms(terms: Terms) -> Block:
    seconds = cast(dict[str, float], terms)
    total = sum(seconds.values()) or 1.0
    rows = [
        (name.replace("_", " "), f"{number(part)} s", percent(part / total)) for name, part in seconds.items() if part
    ]
    return listing(("cause", "per step", "share"), rows, right=(1, 2))
