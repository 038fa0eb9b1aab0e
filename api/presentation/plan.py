"""Sections for the full answer: machines, cost, certificate, risk, alternatives and prices."""

from collections.abc import Sequence

from gpuplan.api.presentation.capacity_ladder import render_capacity_ladder
from gpuplan.api.presentation.frontier import render_frontier
from gpuplan.api.presentation.infeasibility import render_infeasible
from gpuplan.api.presentation.optimality_phrases import best_of, deciding_ladder, why_nothing_of
from gpuplan.api.presentation.phrases import (
    identity,
    job_name,
    machines,
    mean_leaves_outages_out,
    node_price,
    offer,
    place_and_kind,
)
from gpuplan.api.presentation.schedule import render_contingency_standby, render_schedule, render_standby
from gpuplan.api.presentation.sections import Block, Heading, Sections, Tone, sections_of
from gpuplan.api.presentation.text_formatting import (
    chance,
    duration,
    layout,
    number,
    percent,
    plain,
    usd,
    usd_per_hour,
    when,
)
from gpuplan.api.presentation.text_tables import bullets, cell, facts, footer, heading, listing, sentences
from gpuplan.planner.model.plan import (
    Alternative,
    Certificate,
    Commitment,
    OtherFramework,
    Plan,
    PlanAnswer,
    PlanMeta,
    PlannedAnswer,
)
from gpuplan.planner.model.shared import Phase

#: The quantile of a plan's `p95` figures.
P95 = 0.95

#: Hours away that rounding up to a billing step may add or hide.
_SECOND = 1 / 3600


def render_answer(answer: PlanAnswer) -> Sections:
    """The sections of a plan or of an infeasible answer."""
    if isinstance(answer, PlannedAnswer):
        return render_plan(answer.plan, answer.meta)
    return render_infeasible(answer.infeasible)


def render_plan(plan: Plan, meta: PlanMeta) -> Sections:
    """All sections of a plan, most important first."""
    schedule = render_schedule([phase for phase in plan.phases if not phase.is_standby], plan.start)
    parts: list[Block | Heading] = [
        *_headline(plan),
        *_cost(plan),
        *schedule,
        *_worth(plan),
        *_certificate(plan),
        *_certainty(plan),
    ]
    behind = any(phase.is_standby for phase in plan.phases)
    for phase in plan.phases:
        parts += render_standby(phase) if phase.is_standby else _phase(phase, behind=behind)
    parts += [*render_contingency_standby(plan.fallback), *render_capacity_ladder(plan), *_alternatives(plan)]
    if plan.frontier:
        parts += render_frontier(plan.frontier)
    parts += [*_sensitivity(plan), *_prices(plan, meta), *sentences(plan.warnings, plan.assumptions, plan.doubts or ())]
    parts.append(footer(f"plan {plan.id}, prices of snapshot {plan.snapshot_id}"))
    return sections_of(*parts)


def _worth(plan: Plan) -> list[Block | Heading]:
    """The saving of migration or standby over the best single configuration; empty for a plan on one configuration."""
    if len(plan.phases) < 2:
        return []
    alone = next((candidate for candidate in plan.alternatives if candidate.label == "without a move"), None)
    if alone is None or alone.misses:
        return [*bullets(["no single configuration meets the requirements"])]
    saved, cost = float(alone.extra_usd), float(alone.cost_usd)
    part = "less than 0.1 %" if saved < cost / 1000 else percent(saved / cost, 1)
    return [*bullets([f"this saves {usd(alone.extra_usd)} ({part}) over {offer(alone)} from start to end"])]


def _headline(plan: Plan) -> list[Block | Heading]:
    cost, hours = plan.cost_usd, plan.hours
    named = [(f"{machines(phase)} in {place_and_kind(phase)}", phase.is_standby) for phase in plan.phases]
    what = " then ".join(name for name, behind in named if not behind)
    what += "".join(f", with {name} as standby" for name, behind in named if behind)
    return [
        cell(f"{best_of(plan)} for {job_name(plan.job)}: {what}", Tone.GOOD),
        cell(
            f"Expected {usd(cost.expected)} and {duration(hours.expected)}, done {when(plan.finishes_at)};"
            f" 19 of 20 such runs stay within {usd(cost.p95)} and {duration(hours.p95)}."
        ),
    ]


def _cost(plan: Plan) -> list[Block | Heading]:
    cost = plan.cost_usd
    rows: list[tuple[object, ...]] = [(name, usd(amount)) for name, amount in cost.breakdown.parts().items()]
    rows.append(("total expected", usd(cost.expected)))
    if cost.price_low is not None:
        rows.append(("at the low end of the prices' 80 % bands", usd(cost.price_low)))
        rows.append(("at the high end", usd(cost.price_high)))
    return [heading("Cost", "cost"), listing(("part", "USD"), rows, right=(1,)), *_worst(plan)]


def _worst(plan: Plan) -> list[Block | Heading]:
    """The highest possible cost, at which exports stop the run; empty for plans of releases without limits."""
    if plan.run_limit is None:
        return []
    limits = [f"{machines(phase)} after {duration(phase.run_limit.hours)}" for phase in plan.phases if phase.run_limit]
    limit_note = (
        f"at most {usd(plan.run_limit.cost_usd)} if the run never finishes: exported files stop {', '.join(limits)}"
    )
    return [*bullets([limit_note])]


def _certificate(plan: Plan) -> list[Block | Heading]:
    proof = plan.certificate
    shown = facts(
        [
            ("compared", f"{number(proof.offers_considered)} offers"),
            (
                "configurations",
                f"{number(proof.configurations_considered)} (machine, node count, place, price kind)",
            ),
            ("node counts", proof.enumeration.node_counts),
            *_proven(proof, "objective" if deciding_ladder(plan) is None else "cheapest if obtained"),
            *_expected(proof),
            ("proven by", proof.solver),
        ]
    )
    rejected = sorted(proof.rejected.items(), key=lambda item: -item[1])
    rows = [(number(count), reason) for reason, count in rejected]
    return [
        heading(why_nothing_of(plan), "proof"),
        shown,
        *bullets(proof.over or ()),
        *([listing(("left out", "because"), rows, right=(0,))] if rows else []),
    ]


def _proven(proof: Certificate, cost_label: str) -> list[tuple[str, object]]:
    """Objective and bound: cost in dollars; time or carbon in its own unit, with the least cost beside it."""
    gap = f"gap {number(proof.gap)}"
    if proof.objective.of == "cost":
        return [(cost_label, usd(proof.objective_usd)), ("lower bound", f"{usd(proof.bound_usd)}, {gap}")]
    least = proof.objective
    return [
        ("objective", f"{number(least.value)} {least.unit}"),
        ("lower bound", f"{number(least.bound)} {least.unit}, {gap}"),
        ("least cost for it", usd(proof.objective_usd)),
    ]


def _expected(proof: Certificate) -> list[tuple[str, object]]:
    """What following the ladder is expected to cost, and its bound."""
    if proof.ladder is None:
        return []
    bound = f"lower bound {usd(proof.ladder.bound_usd)}, gap {number(proof.ladder.gap)}"
    return [("with refusals", f"{usd(proof.ladder.objective_usd)} on average by the ladder; {bound}")]


def _certainty(plan: Plan) -> list[Block | Heading]:
    hours = plan.hours
    confidence = plan.job.get("confidence")
    outages = "; rare outages of days count only in the shares below" if mean_leaves_outages_out(plan) else ""
    shown = facts(
        [
            ("expected (mean)", f"{duration(hours.expected)}{outages}"),
            ("50 % of runs finish within", duration(hours.median)),
            (
                f"{percent(confidence)} of runs finish within",
                None if confidence == P95 else duration(hours.confident),
            ),
            ("95 % of runs finish within", duration(hours.p95)),
            ("probability of meeting the deadline", _chance(plan.deadline_probability)),
            ("carbon", None if plan.carbon_kg is None else f"{number(plan.carbon_kg)} kg CO2e"),
        ]
    )
    return [heading("Time and risk", "sure"), shown]


def _chance(probability: float | None) -> str:
    return "the job has no deadline" if probability is None else chance(probability)


def _phase(phase: Phase, *, behind: bool) -> list[Block | Heading]:
    """A planned phase; `behind` says whether a standby may take over the rest of its work."""
    rate = phase.throughput
    memory = f"{number(phase.memory_gib_per_accelerator)} of {number(phase.capacity_gib_per_accelerator)} GiB"
    return [
        heading(f"Run on {machines(phase)}", "runs"),
        facts(
            [
                ("price", f"{node_price(phase)}, {place_and_kind(phase)}"),
                ("runs", _runs(phase, behind=behind)),
                ("precision", phase.precision),
                ("layout", layout(phase.layout)),
                ("throughput", f"{number(rate.value)} {rate.unit}"),
                ("model FLOPs utilisation", percent(phase.mfu, 1)),
                ("memory per accelerator", memory),
                ("interruptions", _interruptions(phase)),
                ("modelled", ", ".join(phase.modelled).replace("_", " ") or None),
            ]
        ),
    ]


def _runs(phase: Phase, *, behind: bool) -> str:
    """How long the machines are rented, and how much of that is steady training."""
    hours, training = duration(phase.hours), duration(phase.training_hours)
    if behind:
        away = phase.hours - _paid_hours(phase)
        unpaid = f", {duration(away)} of them away after preemptions and unpaid" if away > _SECOND else ""
        until = "until the work is done or the standby takes over"
        return f"{hours} on average{unpaid}, {until}; the full work is {training} of steady training"
    away = phase.expected_preemptions * (phase.preemption_wait_hours or 0.0)
    unpaid = f" and {duration(away)} away after preemptions, unpaid" if away else ""
    return f"{hours}, of which {training} steady training{unpaid}"


def _paid_hours(phase: Phase) -> float:
    """Expected hours that are billed: set-up, and those that the machines cost; all hours where an earlier plan states no set-up."""
    rate = phase.nodes * phase.usd_per_node_hour
    if phase.setup_hours is None or not rate:
        return phase.hours
    return phase.setup_hours + float(phase.cost_usd.breakdown.compute / rate)


def _interruptions(phase: Phase) -> str | None:
    """Expected preemptions and the checkpoint interval, for interruptible machines."""
    interval = phase.checkpoint_interval_hours
    if interval is None:
        return None
    return f"{number(phase.expected_preemptions)} expected, a checkpoint every {duration(interval)}"


def _alternatives(plan: Plan) -> list[Block | Heading]:
    """Alternatives with their extra cost; commitments separately, because they are obligations."""
    parts: list[Block | Heading] = []
    if plan.alternatives:
        chosen = identity(plan.phases[0]) if len(plan.phases) == 1 else ()
        rows = [_alternative(labels, alternative, chosen) for labels, alternative in _merged(plan.alternatives)]
        if (other := plan.other_framework) is not None:
            label = f"for code written for {plain(other.framework)}"
            rows.append(_alternative([label], other, ()))
        titles = ("alternative", "machines and place", "cost", "extra cost", "time")
        parts += [heading("Alternatives without migration", "alternatives"), listing(titles, rows, right=(2, 3, 4))]
    if plan.commitments:
        columns = ("kind", "USD/h", "whole obligation", "pays off after")
        table = listing(columns, [_commitment(commitment) for commitment in plan.commitments], right=(1, 2, 3))
        parts += [heading("The same machines with a commitment", "commitments"), table]
    return parts


def _merged(alternatives: Sequence[Alternative]) -> list[tuple[list[str], Alternative]]:
    """Configurations without duplicates, with all their labels, in order of first appearance."""
    merged: dict[tuple[object, ...], tuple[list[str], Alternative]] = {}
    for alternative in alternatives:
        merged.setdefault(identity(alternative), ([], alternative))[0].append(
            plain(alternative.label).replace("_", " ")
        )
    return list(merged.values())


def _alternative(
    labels: list[str], part: Alternative | OtherFramework, chosen: tuple[object, ...]
) -> tuple[object, ...]:
    """One row; the plan's own configuration is marked."""
    misses = part.misses if isinstance(part, Alternative) else ""
    label = ", ".join(labels) + (f" ({misses})" if misses else "")
    extra = "this plan" if identity(part) == chosen else usd(part.extra_usd)
    return label, offer(part), usd(part.cost_usd), extra, duration(part.hours)


def _commitment(part: Commitment) -> tuple[object, ...]:
    kind = part.price_kind.replace("_", " ")
    hours = part.break_even_hours
    pays_off = "not within its term" if hours is None else f"{duration(hours)} of use"
    return kind, usd_per_hour(part.usd_per_node_hour), usd(part.total_obligation_usd), pays_off


def _sensitivity(plan: Plan) -> list[Block | Heading]:
    """The effect of a later or earlier deadline, or of another price."""
    sensitivity = plan.sensitivity
    # Steps are computed for single configurations only: a plan with migration may be cheaper.
    moves = (plan.job.get("constraints") or {}).get("max_phases") != 1
    least, most = ("at least ", "at most ") if moves else ("", "")
    cheaper, faster = sensitivity.next_cheaper, sensitivity.next_faster
    optimal_until, per_hour = sensitivity.holds_until_usd_per_node_hour, sensitivity.deadline_usd_per_hour
    rows = [
        (
            "each hour of deadline",
            f"is worth {usd(per_hour)} along the cost-time frontier" if per_hour else None,
        ),
        (
            "with more time",
            cheaper and f"a deadline of {duration(cheaper.deadline_hours)} saves {least}{usd(cheaper.saves_usd)}",
        ),
        (
            "with less time",
            faster and f"a deadline of {duration(faster.deadline_hours)} costs {most}{usd(faster.costs_usd)} more",
        ),
        ("remains cheapest up to", optimal_until and f"{usd_per_hour(optimal_until)} per node-hour"),
    ]
    return [heading("If something moved", "moved"), facts(rows)] if any(value for _, value in rows) else []


def _prices(plan: Plan, meta: PlanMeta) -> list[Block | Heading]:
    rows: list[tuple[str, object]] = [("price", fromkey) for fromkey in dict.fromkeys(map(_observed, plan.phases))]
    age = meta.price_age_days
    rows.append(("age", None if age is None else f"{number(int(age))} days when this plan was made"))
    return [heading("Prices used", "prices"), facts(rows)]


def _observed(phase: Phase) -> str:
    """When the price was observed, and its source."""
    about = "about " if phase.price_observed_approximately else ""
    read = f"{about}{when(phase.price_observed_at)[:10]}, {phase.price_source}"
    estimate = phase.price_estimate
    if estimate is None:
        return f"observed {read}"
    low, high = usd_per_hour(estimate.low_usd_per_node_hour), usd_per_hour(estimate.high_usd_per_node_hour)
    return (
        f"{usd_per_hour(phase.usd_per_node_hour)} per node-hour expected at the start, 80 % within {low} to {high}; "
        f"observed {usd_per_hour(estimate.observed_usd_per_node_hour)} on {read}"
    )
