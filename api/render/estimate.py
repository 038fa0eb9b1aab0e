"""An estimate for people: how long, whether it fits, and where each step's time goes."""

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType

from api.render.tables import bullets, cell, facts, heading, listing
from api.render.text import duration, layout, number, percent, plain


def render_estimate(answer: Mapping[str, Any]) -> Group:
    """Headline, throughput, memory, terms and what was assumed."""
    memory = answer["memory"]
    parts: list[RenderableType] = [_headline(answer, memory), _figures(answer), heading("Memory per accelerator")]
    parts.append(_memory(memory))
    parts += [heading("Where each step's time goes"), _terms(answer)]
    for title, style in (("assumptions", ""), ("warnings", "yellow")):
        if answer.get(title):
            parts += [heading(title.capitalize()), *bullets(answer[title], style)]
    return Group(*parts)


def _headline(answer: Mapping[str, Any], memory: Mapping[str, Any]) -> RenderableType:
    on = answer.get("on", {})
    where = f"{number(on.get('gpus'))} x {on.get('accelerator', 'accelerators')}"
    if not memory["fits"]:
        return cell(f"It does not fit in memory on {where}.", "bold red")
    band = answer["band"]
    likely = f"80 % likely between {duration(band['low_hours'])} and {duration(band['high_hours'])}"
    return cell(f"{duration(answer['hours'])} of steady training on {where} ({likely})", "bold green")


def _figures(answer: Mapping[str, Any]) -> RenderableType:
    on, rate = answer.get("on", {}), answer["throughput"]
    assumed = [
        f"{plain(name).replace('_', ' ')} {number(value.get('value'))}"
        for name, value in on.items()
        if isinstance(value, Mapping) and value.get("assumed")
    ]
    return facts(
        [
            ("with restarts, evaluation, checkpoints", duration(answer["hours_with_goodput"])),
            ("step", None if answer["step_seconds"] is None else f"{number(answer['step_seconds'])} s"),
            (
                "throughput",
                f"{number(rate['value'])} {rate['unit']}, {number(rate['per_accelerator'])} per accelerator",
            ),
            ("model FLOPs utilisation", percent(answer["mfu"], 1)),
            ("TFLOP/s per accelerator", number(answer["tflops_per_accelerator"])),
            ("precision", answer.get("precision")),
            ("layout", layout(answer["layout"])),
            ("assumed", ", ".join(assumed) or None),
        ]
    )


def _memory(memory: Mapping[str, Any]) -> RenderableType:
    verdict = "fits" if memory["fits"] else "does NOT fit"
    return facts(
        [
            ("peak", f"{number(memory['peak_gib'])} GiB of {number(memory['capacity_gib'])} GiB: {verdict}"),
            ("states", f"{number(memory['states_gib'])} GiB (weights, gradients, optimizer)"),
            ("activations", f"{number(memory['activations_gib'])} GiB"),
            ("other", f"{number(memory['other_gib'])} GiB (context, buffers, fragmentation)"),
            ("largest micro-batch", _count(memory.get("largest_micro_batch"), "at this layout", "none fits")),
            ("least accelerators", _count(memory.get("least_accelerators"), "that hold the job at any layout", "none")),
        ]
    )


def _count(value: int | None, what: str, nothing: str) -> str | None:
    """`12 at this layout`; nothing where it is not known."""
    return None if value is None else f"{number(value)} {what}" if value else nothing


def _terms(answer: Mapping[str, Any]) -> RenderableType:
    total = sum(value for value in answer["terms"].values() if value) or 1.0
    rows = [
        (name.replace("_", " "), f"{number(seconds)} s", percent(seconds / total))
        for name, seconds in answer["terms"].items()
        if seconds
    ]
    return listing(("cause", "per step", "share"), rows, right=(1, 2))
