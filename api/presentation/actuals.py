"""Sections for reported runs: measured figures beside predictions, and the corrections learned."""

from collections.abc import Sequence

from gpuplan.api.presentation.sections import Block, Heading, Sections, Tone, sections_of
from gpuplan.api.presentation.text_formatting import duration, number, percent, when
from gpuplan.api.presentation.text_tables import bullets, cell, heading, listing
from gpuplan.api.schemas.actual_reports import Actual, Actuals, ListedActual, TaskCorrection

_TITLES = ("run", "figure", "measured", "predicted", "ratio", "80 % band", "inside")
_NAMES = {
    "hours": "hours",
    "throughput": "throughput",
    "peak_memory_gib": "peak memory",
    "preemptions": "preemptions",
}


def render_report(answer: Actual) -> Sections:
    """One report that was just saved."""
    state = f"running, {percent(answer.share_done)} done" if answer.running else "finished"
    title = f"Saved {answer.id} for plan {answer.plan_id} ({answer.task} on {answer.accelerator}, {state})"
    footer = f"Delete it with: gpuplan actuals --forget {answer.id}"
    return sections_of(cell(title, Tone.GOOD), _figures([answer]), *bullets([footer]))


def render_actuals(answer: Actuals) -> Sections:
    """Reports, and the corrections learned from them."""
    reports = answer.actuals
    if not reports:
        return sections_of(cell("No run has been reported: gpuplan actuals PLAN_ID --hours ... --throughput ..."))
    parts: list[Block | Heading] = [heading("Measured against predicted"), _figures(reports), heading("Reports")]
    parts += bullets(_about(report) for report in reports)
    if answer.learning == "off":
        return sections_of(*parts, *bullets(["learning is off: these runs do not correct estimates"], Tone.WARNING))
    lessons = [line for correction in answer.learned for line in _lessons(correction)]
    return sections_of(
        *parts, heading("Corrections that estimates use, from all your runs"), *bullets(lessons or ["none yet"])
    )


def _figures(reports: Sequence[Actual]) -> Block:
    rows = []
    for report in reports:
        for name, figure in report.figures.items():
            band = figure.band
            rows.append(
                (
                    report.id,
                    _NAMES[name],
                    _value(name, figure.measured, report.unit),
                    _value(name, figure.predicted, report.unit),
                    number(figure.ratio),
                    f"{_value(name, band.low, report.unit)} to {_value(name, band.high, report.unit)}",
                    "yes" if figure.inside_band else "NO",
                )
            )
    return listing(_TITLES, rows, right=(2, 3, 4))


def _value(name: str, value: float, unit: str) -> str:
    if name == "hours":
        return duration(value)
    return f"{number(value)} {unit if name == 'throughput' else 'GiB' if name == 'peak_memory_gib' else ''}".rstrip()


def _about(report: ListedActual) -> str:
    state = f"running, {percent(report.share_done)} done" if report.running else "finished"
    replaced = "" if report.counts else "; replaced by a later report on the same plan"
    return (
        f"{report.id}: {report.task} on {report.accelerator}, {state}, plan {report.plan_id}, "
        f"{when(report.reported_at)}{replaced}"
    )


def _lessons(correction: TaskCorrection) -> list[str]:
    where = correction.accelerator or "all other accelerators"
    learned = (
        ("hours", correction.hours_factor, correction.hours_runs),
        ("peak memory", correction.memory_factor, correction.memory_runs),
    )
    return [
        f"{correction.task} on {where}: {what} x {factor:.2f} ({number(runs)} of your runs)"
        for what, factor, runs in learned
        if runs
    ]
