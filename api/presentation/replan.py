"""Sections for replanning a running job: the advice, then the comparison."""

from collections.abc import Sequence

from gpuplan.api.presentation.infeasibility import in_the_way
from gpuplan.api.presentation.optimality_phrases import best as proven_best
from gpuplan.api.presentation.phrases import job_name, machines, node_price, offer, place_and_kind
from gpuplan.api.presentation.schedule import render_contingency_standby, render_standby
from gpuplan.api.presentation.sections import Block, Heading, Sections, Tone, sections_of
from gpuplan.api.presentation.text_formatting import (
    additional_hours,
    duration,
    number,
    percent,
    usd,
    usd_per_hour,
    when,
)
from gpuplan.api.presentation.text_tables import bullets, cell, facts, footer, heading, listing, sentences
from gpuplan.planner.model.plan import Alternative, Certificate
from gpuplan.planner.model.replan import FromNow, NoneLeft, Replan, ReplanAnswer, StaysOptimal
from gpuplan.planner.model.shared import Phase

_ACTIONS = {
    "continue": "continue as it is",
    "standby": "continue, with standby machines",
    "move_later": "continue, and change later",
    "move": "move to other machines now",
    "add_nodes": "run on more machines now",
    "shed_nodes": "run on fewer machines now",
    "restart": "start again on the same machines",
    "start": "start",
    "none": "no plan meets the requirements",
}


#: Shares below this would be shown as 0 %.
_LEAST_SHARE = 5e-4


def render_replan(answer: ReplanAnswer) -> Sections:
    """All sections of the answer, advice first."""
    replanned = answer.replan
    style = Tone.GOOD if answer.outcome == "replanned" else Tone.BAD
    parts: list[Block | Heading] = [
        cell(f"{job_name(replanned.job)}: {_ACTIONS[replanned.action]}", style),
        *bullets(replanned.summary),
    ]
    parts += [*_stands(replanned), *_compared(replanned)]
    if replanned.best:
        parts += _best(replanned.best)
    if replanned.infeasible:
        parts += _infeasible(replanned.infeasible)
    parts += sentences(replanned.warnings, replanned.assumptions)
    parts.append(footer(f"{replanned.id}, prices of snapshot {replanned.snapshot_id}"))
    return sections_of(*parts)


def _stands(part: Replan) -> list[Block | Heading]:
    running, left = part.running, part.left
    on = running.on
    lost = running.done - running.kept
    rows = [
        ("at", when(part.now)),
        ("machines", None if on is None else f"{machines(on)} in {place_and_kind(on)}{'' if running.up else ', gone'}"),
        ("done", percent(running.done, 1) + (f", of which {percent(lost, 1)} is lost" if lost > 0 else "")),
        ("spent", usd(running.spent_usd)),
        ("left to do", percent(left.share, 1)),
        ("left of the deadline", None if left.deadline_hours is None else duration(left.deadline_hours)),
        ("left of the budget", None if left.budget_usd is None else usd(left.budget_usd)),
    ]
    return [heading("Status"), facts(rows)]


def _compared(replanned: Replan) -> list[Block | Heading]:
    """Compares continuing with the best plan, part by part, from now on."""
    stays, best, extra = replanned.continue_, replanned.best, replanned.difference
    if stays is None:
        return []
    titles = ["from now", "continue as it is"]
    rows: list[list[object]] = []
    for part, amount in stays.breakdown.parts().items():
        rows.append([part, usd(amount)])
    rows.append(["total expected", usd(stays.cost_usd)])
    rows.append(["expected time", duration(stays.hours)])
    rows.append(["time at requested confidence", duration(stays.hours_confident)])
    rows.append(["done", when(stays.finishes_at)])
    rows.append(["in time", _chance(stays.deadline_probability)])
    if compared := best is not None and extra is not None and replanned.action != "continue":
        titles += ["the best", "more by"]
        parts = best.cost_usd.breakdown.parts(), extra.breakdown.parts()
        for row in rows[:-5]:
            row += [usd(amounts[str(row[0])]) for amounts in parts]
        rows[-5] += [usd(best.cost_usd.expected), usd(extra.usd)]
        rows[-4] += [duration(best.hours.expected), additional_hours(extra.hours)]
        rows[-3] += [duration(best.hours.confident), additional_hours(extra.hours_confident)]
        rows[-2] += [when(best.finishes_at), ""]
        rows[-1] += [_chance(best.deadline_probability), ""]
    blocks: list[Block | Heading] = [heading("Continuing against the best" if compared else "Continuing")]
    blocks.append(listing(titles, rows, right=tuple(range(1, len(titles)))))
    if stays.breaks:
        blocks += bullets([f"continuing violates {', '.join(stays.breaks)}"], Tone.WARNING)
    return [*blocks, *_optimality_limits(replanned.holds)]


def _optimality_limits(limits: StaysOptimal | None) -> list[Block | Heading]:
    if limits is None:
        return []
    price_, slower = limits.usd_per_node_hour, limits.times_slower
    rows = [
        ("price", "any" if price_ is None else f"up to {usd_per_hour(price_)} per node-hour"),
        ("speed", "any" if slower is None else f"up to {number(100 * (slower - 1))} % slower than estimated now"),
    ]
    return [heading("How long continuing remains the best"), facts(rows)]


def _chance(probability: float | None) -> str:
    if probability is None:
        return "no deadline"
    return "more than 99.9 %" if probability > 0.999 else percent(probability, 1)


def _best(best: FromNow) -> list[Block | Heading]:
    """The phases from now with their start times, and the certificate."""
    parts: list[Block | Heading] = []
    # A brief continuation before a move is not worth a row.
    rows = [_phase(phase) for phase in best.phases if not phase.is_standby and phase.share >= _LEAST_SHARE]
    titles = ("from", "on", "share of the rest", "time", "cost", "transferred")
    proof = best.certificate
    offers, tried = number(proof.offers_considered), number(proof.configurations_considered)
    parts += [
        heading(_title(proof)),
        listing(titles, rows, right=(2, 3, 4)),
        facts(
            [
                ("price", "; ".join(dict.fromkeys(node_price(phase) for phase in best.phases))),
                ("compared", f"{offers} offers, {tried} configurations (machine, node count, place, price kind)"),
                ("lower bound", f"{usd(proof.bound_usd)}, gap {number(proof.gap)}"),
            ]
        ),
    ]
    for phase in best.phases:
        parts += render_standby(phase) if phase.is_standby else []
    return [*parts, *render_contingency_standby(best.fallback), *_alternatives(best.alternatives)]


def _title(proof: Certificate) -> str:
    """The title of the plan: the best, or its proven distance from the best."""
    return "The best plan from now" if proof.gap <= 0 else f"{proven_best(proof)}, from now"


def _phase(part: Phase) -> tuple[object, ...]:
    moved = part.moved
    brought = ""
    if moved is not None:
        data = f" and {number(moved.data_gb)} GB of data" if moved.data_gb else ""
        brought = f"{number(moved.checkpoint_gb)} GB of checkpoint{data}, {usd(moved.egress_usd)}"
    return (
        when(part.starts_at),
        offer(part),
        percent(part.share, 1),
        duration(part.hours),
        usd(part.cost_usd.expected),
        brought,
    )


def _alternatives(parts: Sequence[Alternative]) -> list[Block | Heading]:
    if not parts:
        return []
    rows = []
    for part in parts:
        label = part.label.replace("_", " ") + (f" ({part.misses})" if part.misses else "")
        rows.append((label, offer(part), usd(part.cost_usd), usd(part.extra_usd), duration(part.hours)))
    titles = ("alternative from now", "machines and place", "cost", "extra cost", "time")
    return [heading("Alternatives"), listing(titles, rows, right=(2, 3, 4))]


def _infeasible(part: NoneLeft) -> list[Block | Heading]:
    conflicts = [in_the_way(conflict, part.searched_nodes) for conflict in part.conflicts]
    parts: list[Block | Heading] = [heading("Conflicting requirements"), *bullets(conflicts)]
    rows = [
        (relaxation.requirement, relaxation.from_, relaxation.in_all, usd(relaxation.cost_usd))
        for relaxation in part.relaxations
    ]
    if rows:
        titles = ("relax", "left now", "needed", "costs from now")
        parts += [heading("Smallest relaxations that help"), listing(titles, rows, right=(3,))]
    return parts
