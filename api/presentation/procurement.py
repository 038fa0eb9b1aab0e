"""Sections for a procurement plan: what to buy, commit to and rent."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Literal

from gpuplan.api.presentation.optimality_phrases import best, why_nothing
from gpuplan.api.presentation.phrases import configuration
from gpuplan.api.presentation.sections import Block, Heading, Sections, Tone, sections_of
from gpuplan.api.presentation.text_formatting import located, number, percent, plain, usd, usd_per_hour
from gpuplan.api.presentation.text_tables import bullets, cell, facts, footer, heading, listing, sentences
from gpuplan.planner.model.procurement import (
    ForecastSweep,
    ProcurementPlan,
    SweepStep,
    UnboughtMachine,
    UnservedForecast,
)
from gpuplan.planner.model.procurement_sources import (
    ExistingCapacity,
    MachinePurchase,
    NodeCommitment,
    RentedRuns,
    SpendingCommitment,
)


def render_decision(decision: ProcurementPlan | UnservedForecast) -> Sections:
    """The sections of a decision or of an infeasible forecast."""
    return _decided(decision) if isinstance(decision, ProcurementPlan) else _impossible(decision)


def _impossible(part: UnservedForecast) -> Sections:
    names = [f"jobs[{row.job}] {plain(row.name)}: {part.reason}" for row in part.jobs]
    head = cell("This forecast cannot be served", Tone.BAD)
    return sections_of(head, *bullets(names or [part.reason]), *_turned_down(part))


def _decided(part: ProcurementPlan) -> Sections:
    parts: list[Block | Heading] = [*_headline(part), *_used(part.use), *_purchased(part.buy)]
    parts += [*_committed(part.commit), *_spent(part.commit_spend), *_rented(part.rent), *_costs(part)]
    parts += [*_bound(part), *_not_purchased(part.not_bought), *_risk(part), *_sensitivity(part)]
    parts += [*_proof(part), *_turned_down(part)]
    parts += [
        *sentences(part.warnings, part.assumptions),
        footer(f"decision {part.id}, prices of snapshot {part.snapshot_id}"),
    ]
    return sections_of(*parts)


def _headline(part: ProcurementPlan) -> list[Block | Heading]:
    priced_configurations = [f"{row.machines} x {plain(row.name)}" for row in part.buy]
    terms = [f"{row.nodes} x {plain(row.instance_type)}" for row in part.commit]
    terms += [f"{usd(row.usd_per_hour)}/h of {_plan_name(row)}" for row in part.commit_spend]
    rents = any(row.on for row in part.rent)
    uses = any(row.busy_share > 0 for row in part.use)
    actions = ["use what you have"] if uses else []
    actions += [f"buy {', '.join(priced_configurations)}"] if priced_configurations else []
    actions += [f"commit to {', '.join(terms)}"] if terms else []
    actions += ["rent the rest" if actions else "rent everything"] if rents else []
    cost = part.cost_usd
    without, decides = cost.without_buying, bool(part.buy or part.commit or part.commit_spend)
    other = "with what you have and renting" if part.use else "for renting everything"
    instead = f" instead of {usd(without)} {other}" if without is not None and decides else ""
    return [
        cell(f"{best(part.certificate)} for {plain(part.name)}: {', '.join(actions)}", Tone.GOOD),
        cell(
            f"{usd(cost.total)} over {number(part.horizon_years)} years at today's value{instead}; "
            f"{usd(part.upfront_usd)} upfront."
        ),
    ]


def _used(rows: Sequence[ExistingCapacity]) -> list[Block | Heading]:
    """Machines and commitments that you already have."""
    if not rows:
        return []
    shown = [(row.name, number(row.units), percent(row.busy_share), _runs(row)) for row in rows]
    titles = ("what", "number or USD/h", "busy", "runs per year")
    return [heading("What you have"), listing(titles, shown, right=(1, 2))]


def _runs(part: ExistingCapacity) -> str:
    done = [f"{plain(run.name)} {number(run.runs_per_year)}" for run in part.runs_per_year]
    return ", ".join(done) or "none: renting costs less"


def _purchased(rows: Sequence[MachinePurchase]) -> list[Block | Heading]:
    if not rows:
        return []
    titles = ("machine", "number", "unit price", "upfront", "busy", "pays for itself", "saves on the next best")
    return [heading("What to buy"), listing(titles, [_purchase(row) for row in rows], right=(1, 2, 3, 4, 6))]


def _purchase(part: MachinePurchase) -> tuple[object, ...]:
    even = part.break_even
    pays = "only when sold" if even is None else f"by {even.date} ({number(even.years)} years)"
    saves = "no alternative" if part.saves_usd is None else usd(part.saves_usd)
    cost = usd(part.usd_each), usd(part.upfront_usd)
    return part.name, part.machines, *cost, percent(part.busy_share), pays, saves


def _committed(rows: Sequence[NodeCommitment]) -> list[Block | Heading]:
    if not rows:
        return []
    titles = ("nodes", "kind, place and years", "USD/h", "whole obligation", "busy")
    return [heading("What to commit to"), listing(titles, [_term(row) for row in rows], right=(2, 3, 4))]


def _term(part: NodeCommitment) -> tuple[object, ...]:
    years = f"years {number(part.from_year)} to {number(part.until_year)}"
    kind = f"{part.price_kind.replace('_', ' ')}, {part.provider} {located(part.region, part.zone)}, {years}"
    what = f"{part.nodes} x {part.instance_type}"
    return (
        what,
        kind,
        usd_per_hour(part.usd_per_node_hour),
        usd(part.total_obligation_usd),
        percent(part.busy_share),
    )


def _plan_name(part: SpendingCommitment) -> str:
    """`savings plan 1y, p5 in us-east-1`."""
    what = f"{plain(part.family or 'any machine')} in {plain(part.region or 'any region')}"
    return f"{part.price_kind.replace('_', ' ')}, {what}"


def _spent(rows: Sequence[SpendingCommitment]) -> list[Block | Heading]:
    """Savings plans and the machines they pay for."""
    if not rows:
        return []
    shown = [
        (
            _plan_name(row),
            f"years {number(row.from_year)} to {number(row.until_year)}",
            usd_per_hour(row.usd_per_hour),
            usd(row.total_obligation_usd),
            percent(row.busy_share),
            ", ".join(
                f"{plain(on.name)} on {on.instance_type} at {usd_per_hour(on.usd_per_node_hour)}" for on in row.on
            ),
        )
        for row in rows
    ]
    titles = ("plan", "years", "USD/h", "whole obligation", "used", "for")
    return [heading("What to commit to spending"), listing(titles, shown, right=(2, 3, 4))]


def _bound(part: ProcurementPlan) -> list[Block | Heading]:
    """The binding limits."""
    limits = [
        f"{row.limit}: {number(row.used)} of {number(row.available)} used"
        + (f"; {plain(row.short)}" if row.short else "")
        + f"; without it: {plain(row.without_it)}, {usd(row.would_save_usd)} less"
        for row in part.binding
    ]
    return [heading("Binding limits"), *bullets(limits)] if limits else []


def _not_purchased(rows: Sequence[UnboughtMachine]) -> list[Block | Heading]:
    if not rows:
        return []
    shown = [
        (
            row.name,
            row.machines,
            usd(row.usd_each),
            usd(row.extra_cost_usd),
            "its electricity alone costs more than renting" if row.electricity_alone_costs_more_than_renting else "",
        )
        for row in rows
    ]
    titles = ("machine", "number", "unit price", "extra cost of the best answer with it", "")
    return [heading("What is not bought"), listing(titles, shown, right=(1, 2, 3))]


def _risk(decision: ProcurementPlan) -> list[Block | Heading]:
    """The cost of the decision in each scenario."""
    risk = decision.risk
    decides = decision.buy or decision.commit or decision.commit_spend
    if risk is None or len(risk.scenarios) < 2 or not decides:
        return []
    shown = [(row.name, percent(row.probability), usd(row.cost_usd), usd(row.saves_usd)) for row in risk.scenarios]
    loses = ("probability of costing more than buying nothing", percent(risk.loses_probability))
    titles = ("scenario", "probability", "cost", "saves on buying nothing")
    return [heading("Risk"), listing(titles, shown, right=(1, 2, 3)), facts([loses])]


def _rented(rows: Sequence[RentedRuns]) -> list[Block | Heading]:
    shown = [
        (
            row.name,
            percent(row.share_of_runs, 1),
            number(row.runs_per_year),
            configuration(on),
            usd(on.cost_usd),
        )
        for row in rows
        if (on := row.on) is not None
    ]
    if not shown:
        return []
    titles = ("job", "rented", "runs per year", "on", "each run")
    return [heading("What to rent"), listing(titles, shown, right=(1, 2, 4))]


def _costs(part: ProcurementPlan) -> list[Block | Heading]:
    cost = part.cost_usd
    rows: list[tuple[object, ...]] = [
        (part.name, usd(getattr(cost.breakdown, part.name))) for part in fields(cost.breakdown)
    ]
    rows.append(("total", usd(cost.total)))
    room = part.room
    limits = room.limits
    used = [("power", f"{number(room.watts)} W{_of(limits.power_watts, 'W')}")] if room.watts else []
    used += [("slots", f"{room.slots} of {number(limits.slots)}")] if limits.slots is not None else []
    return [heading("Cost"), listing(("part", "USD"), rows, right=(1,)), facts(used)]


def _of(most: float | None, unit: str) -> str:
    return "" if most is None else f" of {number(most)} {unit}"


def _sensitivity(part: ProcurementPlan) -> list[Block | Heading]:
    """The effect of more or fewer runs and of another electricity price."""
    parts: list[Block | Heading] = [heading("Sensitivity")]
    parts += _sweep(part.sensitivity.utilisation, "runs")
    if part.sensitivity.electricity is not None:
        parts += _sweep(part.sensitivity.electricity, "electricity")
    return parts


def _sweep(sweep: ForecastSweep, of: Literal["runs", "electricity"]) -> list[Block | Heading]:
    rows = [(_factor(step), step.answer, usd(step.cost_usd)) for step in sweep.steps]
    turns = [_turn(sweep.changes_below, "below"), _turn(sweep.changes_above, "above")]
    return [listing((of, "answer", "cost"), rows, right=(0, 2)), facts(turns)]


def _factor(step: SweepStep) -> str:
    return f"{step.times_the_price if step.times_the_runs is None else step.times_the_runs:g} x"


def _turn(step: SweepStep | None, side: str) -> tuple[str, object]:
    return f"changes {side}", "at none of these steps" if step is None else f"{_factor(step)}: {step.answer}"


def _proof(part: ProcurementPlan) -> list[Block | Heading]:
    proof = part.certificate
    rows = [
        (
            "compared",
            f"{number(proof.machines_considered)} machines, {number(proof.commitments_considered)} terms",
        ),
        ("objective", usd(proof.objective_usd)),
        ("lower bound", f"{usd(proof.bound_usd)}, gap {number(float(proof.gap))}"),
        ("proven by", proof.solver),
    ]
    return [heading(why_nothing(proof)), facts(rows)]


def _turned_down(part: ProcurementPlan | UnservedForecast) -> list[Block | Heading]:
    rows = [(row.name, row.reason) for row in part.turned_down]
    return [heading("Not considered"), listing(("machine", "because it"), rows)] if rows else []
