"""Sections for spot policies: the decision now, the policy, and its backtest."""

from gpuplan.api.presentation.sections import Block, Heading, Sections, Tone, sections_of
from gpuplan.api.presentation.text_formatting import duration, number, percent, plain, usd, usd_per_hour
from gpuplan.api.presentation.text_tables import bullets, cell, facts, footer, heading, listing
from gpuplan.planner.model.spot_policy import FinishAsPlanned, PolicyDecision, PolicyExpectation, Simulation


def render_run_policy(answer: PolicyExpectation | PolicyDecision) -> Sections:
    """The policy, or its decision now."""
    return _policy(answer) if isinstance(answer, PolicyExpectation) else _decision(answer)


def _decision(answer: PolicyDecision) -> Sections:
    """The decision now, with its reasons."""
    first = "write a checkpoint, then " if answer.checkpoint_first else ""
    where = f" {plain(answer.place)}" if answer.place and answer.action in {"move", "start", "stay"} else ""
    joint = {"move": " to", "start": " at", "stay": " at"}.get(answer.action, "")
    action = f"{first}{answer.action}{joint}{where}"
    left = answer.on_demand_within_hours
    shown = facts(
        [
            ("on-demand can wait for", duration(left) if left > 0 else "no longer"),
            ("still to pay", _still(answer)),
            ("decide again in", duration(answer.decide_again_in_hours)),
        ]
    )
    return sections_of(
        cell(action[:1].upper() + action[1:], Tone.GOOD), *bullets(answer.reasons), shown, *_assumed(answer)
    )


def _still(answer: PolicyDecision) -> str:
    """The remaining cost, by the policy and on-demand."""
    demand = f"{usd(answer.on_demand_usd)} on-demand from now on"
    return demand if answer.expected_usd is None else f"{usd(answer.expected_usd)} expected, {demand}"


def _policy(answer: PolicyExpectation) -> Sections:
    """The inputs of a policy and its expected cost."""
    name = plain(answer.name or "this run")
    rows = [
        (
            place.name,
            usd_per_hour(f"{place.usd_per_hour:.6f}"),
            number(place.speed),
            percent(place.availability),
            number(place.preemptions_per_up_hour),
        )
        for place in answer.places
    ]
    every = answer.checkpoint_every_hours
    return sections_of(
        cell(
            f"{name}: {usd(answer.expected_usd)} expected, {usd(answer.on_demand_usd)} on-demand alone",
            Tone.GOOD,
        ),
        facts(
            [
                ("work", duration(answer.work_hours)),
                ("deadline", f"{duration(answer.deadline_hours)}, kept {answer.deadline_kept}"),
                ("changeover", duration(answer.changeover_hours)),
                ("on-demand", f"{usd_per_hour(answer.on_demand_usd_per_hour)} per hour"),
                ("decisions every", duration(answer.step_hours)),
                ("checkpoints every", duration(every) if every else None),
            ]
        ),
        heading("Places"),
        listing(("place", "USD/h", "speed", "up", "preemptions/h"), rows, right=(1, 2, 3, 4)),
        *_as_planned(answer.as_planned),
        *_assumed(answer),
    )


def _as_planned(finish: FinishAsPlanned | None) -> list[Block | Heading]:
    """The saved plan, beside its policy."""
    if finish is None:
        return []
    latest, confidence = finish.latest_switch_hours, percent(finish.confidence)
    first = (
        f"{usd(finish.spot_first_usd)} expected with on-demand at the last moment, "
        f"needed in {percent(finish.switch_probability, 1)} of runs"
    )
    rows = [
        ("ends after", f"{duration(finish.mean_hours)} on average, 95 % within {duration(finish.p95_hours)}"),
        ("in time", percent(finish.probability_in_time, 1)),
        (
            f"{confidence} sure until",
            "never: on-demand alone is too slow" if latest is None else f"on-demand is taken after {duration(latest)}",
        ),
        ("spot first", first),
    ]
    return [heading("As planned, on the plan's machines, replaced after every preemption"), facts(rows)]


def render_simulation(answer: Simulation) -> Sections:
    """The backtest, one row per rule."""
    rows = [
        (
            rule.rule,
            usd(rule.mean_usd),
            usd(rule.p95_usd),
            percent(rule.over_omniscient, 1),
            f"{rule.late_runs:,} of {answer.runs:,}",
            number(rule.spot_hours),
            number(rule.on_demand_hours),
            number(rule.preemptions),
        )
        for rule in answer.rules
    ]
    titles = ("rule", "USD", "USD p95", "over best", "late", "spot h", "on-demand h", "preemptions")
    traces = [(trace.name, duration(trace.hours), percent(trace.up)) for trace in answer.traces]
    policy = answer.policy
    return sections_of(
        cell(f"{plain(policy.name or 'this run')}: {answer.runs:,} starts replayed", Tone.GOOD),
        listing(titles, rows, right=tuple(range(1, len(titles)))),
        heading("Traces"),
        listing(("trace", "watched", "up"), traces, right=(1, 2)),
        *_assumed(policy),
        footer(
            "over best: cost above an optimum that knows all availability beforehand and checkpoints for free;  "
            f"random starts with seed {answer.seed}"
        ),
    )


def _assumed(answer: PolicyExpectation | PolicyDecision) -> list[Block | Heading]:
    return [heading("Assumptions"), *bullets(answer.assumptions)]
