"""Runs of plans for people: each figure beside its prediction, and what all runs together teach."""

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType

from api.render.tables import bullets, cell, heading, listing
from api.render.text import duration, number, percent, when

_TITLES = ("run", "figure", "measured", "predicted", "ratio", "80 % band", "inside")
_NAMES = {
    "hours": "hours",
    "throughput": "throughput",
    "peak_memory_gib": "peak memory",
    "preemptions": "preemptions",
}


def render_report(answer: Mapping[str, Any]) -> Group:
    """One report, just given."""
    state = f"running, {percent(answer['share_done'])} done" if answer["running"] else "finished"
    title = f"Kept {answer['id']} on plan {answer['plan_id']} ({answer['task']} on {answer['accelerator']}, {state})"
    footer = f"Take it back with: gpuplan actuals --forget {answer['id']}"
    return Group(cell(title, "bold green"), _figures([answer]), *bullets([footer]))


def render_actuals(answer: Mapping[str, Any]) -> Group:
    """Every report asked for, and what they teach."""
    reports = answer["actuals"]
    if not reports:
        return Group(cell("No run has been reported: gpuplan actuals PLAN_ID --hours ... --throughput ..."))
    parts: list[RenderableType] = [heading("Runs against their plans"), _figures(reports), heading("Reports")]
    parts += bullets(_about(each) for each in reports)
    if answer["learning"] == "off":
        return Group(*parts, *bullets(["learning is off: estimates take nothing from these runs"], "yellow"))
    lessons = [line for each in answer["learned"] for line in _lessons(each)]
    return Group(*parts, heading("What estimates take from all your runs"), *bullets(lessons or ["nothing yet"]))


def _figures(reports: list[Mapping[str, Any]]) -> RenderableType:
    rows = []
    for each in reports:
        for name, figure in each["figures"].items():
            band = figure["band"]
            rows.append(
                (
                    each["id"],
                    _NAMES[name],
                    _value(name, figure["measured"], each["unit"]),
                    _value(name, figure["predicted"], each["unit"]),
                    number(figure["ratio"]),
                    f"{_value(name, band['low'], each['unit'])} to {_value(name, band['high'], each['unit'])}",
                    "yes" if figure["inside_band"] else "NO",
                )
            )
    return listing(_TITLES, rows, right=(2, 3, 4))


def _value(name: str, value: float, unit: str) -> str:
    if name == "hours":
        return duration(value)
    return f"{number(value)} {unit if name == 'throughput' else 'GiB' if name == 'peak_memory_gib' else ''}".rstrip()


def _about(each: Mapping[str, Any]) -> str:
    state = f"running, {percent(each['share_done'])} done" if each["running"] else "finished"
    replaced = "" if each["counts"] else "; replaced by a later report on the same plan"
    return (
        f"{each['id']}: {each['task']} on {each['accelerator']}, {state}, plan {each['plan_id']}, "
        f"{when(each['reported_at'])}{replaced}"
    )


def _lessons(each: Mapping[str, Any]) -> list[str]:
    where = each["accelerator"] or "all other accelerators"
    said = (("hours", "hours"), ("peak memory", "memory"))
    return [
        f"{each['task']} on {where}: {what} x {each[f'{key}_factor']:.2f} ({number(each[f'{key}_runs'])} of your runs)"
        for what, key in said
        if each[f"{key}_runs"]
    ]
