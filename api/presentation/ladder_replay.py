"""Sections for the replay of a capacity ladder: what every rule cost, what it got and when, and which traces were used."""

from gpuplan.api.presentation.sections import Sections, Tone, sections_of
from gpuplan.api.presentation.text_formatting import duration, number, offer_place, percent, plain, usd, usd_per_hour
from gpuplan.api.presentation.text_tables import bullets, cell, footer, heading, listing
from gpuplan.planner.model.ladder_replay import LadderSimulation


def render_ladder_replay(answer: LadderSimulation) -> Sections:
    """The rules side by side, then the choices, the traces and the assumptions."""
    runs = answer.runs
    rules = [
        (
            rule.rule,
            usd(rule.mean_usd),
            usd(rule.p95_usd),
            "-" if rule.over_hindsight is None else percent(rule.over_hindsight, 1),
            percent(1 - rule.late_runs / runs, 1),
            duration(rule.mean_hours),
            number(rule.preemptions),
        )
        for rule in answer.rules
    ]
    titles = ("rule", "USD", "USD p95", "over hindsight", "in time", "time", "preemptions")
    obtained = [
        (
            rule.rule,
            f"{use.choice}",
            percent(use.first_share, 1),
            "-" if use.first_after_hours is None else duration(use.first_after_hours),
            number(use.hours),
        )
        for rule in answer.rules
        for use in rule.obtained
        if use.hours > 0
    ]
    choices = [
        (
            f"{choice.number}",
            f"{choice.nodes:,} x {choice.instance_type}, {offer_place(choice)}",
            usd_per_hour(choice.usd_per_hour),
            duration(choice.work_hours),
        )
        for choice in answer.choices
    ]
    traces = [
        (f"{trace.choice}", trace.trace, percent(trace.up), "stands in" if trace.stands_in else "")
        for part in answer.sets
        for trace in part.traces
    ]
    name = plain(answer.name or answer.plan)
    left_out = [f"left out: {plain(part.name)} {plain(part.why)}" for part in answer.left_out]
    return sections_of(
        cell(f"{name}: {runs:,} starts replayed, deadline {duration(answer.deadline_hours)}", Tone.GOOD),
        listing(titles, rules, right=tuple(range(1, len(titles)))),
        heading("What each rule got"),
        listing(("rule", "choice", "obtained first", "after", "hours there"), obtained, right=(1, 2, 3, 4)),
        heading("Choices"),
        listing(("choice", "machines and place", "USD/h", "work"), choices, right=(2, 3)),
        heading("Traces"),
        listing(("choice", "trace", "up", ""), traces, right=(2,)),
        *bullets(left_out),
        heading("Assumptions"),
        *bullets(answer.assumptions),
        footer("over hindsight: cost above the cheapest single choice of the ladder, known beforehand for every start"),
    )
