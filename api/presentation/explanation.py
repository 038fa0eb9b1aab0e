"""Sections for an explanation: the answer in sentences, then its figures."""

from collections.abc import Sequence

from gpuplan.api.presentation.frontier import thinned
from gpuplan.api.presentation.infeasibility import in_the_way
from gpuplan.api.presentation.phrases import job_name, machines, node_price, offer, place_and_kind, rented
from gpuplan.api.presentation.sections import Block, Heading, Sections, Tone, sections_of
from gpuplan.api.presentation.text_formatting import (
    additional_hours,
    difference_text,
    duration,
    number,
    plain,
    usd,
    usd_per_hour,
)
from gpuplan.api.presentation.text_tables import bullets, cell, facts, footer, heading, listing, sentences
from gpuplan.planner.model import explanation as model
from gpuplan.planner.model.shared import Configuration, Figure


def render_why(answer: model.WhyAnswer) -> Sections:
    """Every section of an explanation."""
    why = answer.why
    parts: list[Block | Heading] = [*_headline(why), *bullets(why.summary)]
    parts += _plan(why.plan)
    if why.infeasible:
        parts += _ruled_out("Why there is no plan", why.infeasible)
    if why.about:
        parts += _about(why.about, why.plan)
    parts += [*_requirements(why.requirements), *_steps(why.steps), *_frontier(why.frontier)]
    parts += sentences(why.warnings, why.assumptions)
    parts.append(footer(f"{why.id}, prices of snapshot {why.snapshot_id}"))
    return sections_of(*parts)


def _headline(why: model.Why) -> list[Block | Heading]:
    name = job_name(why.job)
    about = why.about
    if about is None:
        return [cell(f"Why {name} has this plan", Tone.GOOD)]
    return [cell(f"{name} and {plain(about.named.text)}", Tone.GOOD)]


def _dollars(value: object) -> str:
    """A sum with its sign before the dollar sign, also below a cent."""
    text = str(value)
    return f"-{usd(text[1:])}" if text.startswith("-") else usd(text)


def _run(phases: Sequence[Configuration]) -> str:
    return " then ".join(f"{machines(phase)}, {place_and_kind(phase)}" for phase in phases)


def _plan(plan: model.ShortPlan | None) -> list[Block | Heading]:
    if plan is None:
        return []
    rows = [
        ("machines", _run(plan.phases)),
        ("cost", usd(plan.cost_usd)),
        ("time at requested confidence", duration(plan.hours_confident)),
        ("carbon", _kg(plan.carbon_kg)),
    ]
    return [heading("The plan"), facts(rows)]


def _kg(value: float | None) -> str | None:
    return None if value is None else f"{number(value)} kg CO2e"


def _about(about: model.About, plan: model.ShortPlan | None) -> list[Block | Heading]:
    named = about.named
    what = plain(named.text)
    meant = f"{named.field.replace('_', ' ')}: {', '.join(plain(name) for name in named.names)}"
    parts: list[Block | Heading] = [heading(f"About {what}"), facts([("taken as", plain(meant, limit=300))])]
    if about.verdict not in {"chosen", "absent"}:
        parts += _compared_with(f"The best plan on {what}", about.best, plan)
    if about.wins_at:
        parts += _wins_at(about.wins_at)
    if about.joins_at:
        parts += _joins_at(about.joins_at)
    # Without what the plan does not use, the best plan is the plan.
    if about.without and about.verdict in {"chosen", "partly_chosen"}:
        parts += _compared_with(f"The best plan without {what}", about.without, plan)
    return parts


def _compared_with(title: str, other: model.OtherOutcome | None, plan: model.ShortPlan | None) -> list[Block | Heading]:
    """Compares another outcome with the plan, part by part."""
    if other is None:
        return []
    if other.ruled_out is not None:
        return _ruled_out(f"{title}: none", other.ruled_out)
    if other.plan is None:
        return []
    compared, extra = other.plan, other.extra
    parts: list[Block | Heading] = [heading(title), facts([("machines", _run(compared.phases))])]
    if plan is None or extra is None:
        return [*parts, facts([("cost", usd(compared.cost_usd)), ("time", duration(compared.hours_confident))])]
    rows = compared_costs(plan, compared, extra)
    rows.append(
        (
            "time at requested confidence",
            duration(plan.hours_confident),
            duration(compared.hours_confident),
            additional_hours(extra.hours_confident),
        )
    )
    rows.append(
        (
            "carbon, kg CO2e",
            number(plan.carbon_kg),
            number(compared.carbon_kg),
            number(extra.carbon_kg),
        )
    )
    return [*parts, listing(("part", "the plan", "this", "more by"), rows, right=(1, 2, 3))]


def compared_costs(plan: model.ShortPlan, other: model.ShortPlan, extra: model.Extra) -> list[tuple[str, ...]]:
    """The cost of a plan beside that of another and the difference, part by part and in all."""
    parts = [costs.breakdown.parts() for costs in (plan, other, extra)]
    rows = [(name, *(usd(amounts[name]) for amounts in parts)) for name in parts[0]]
    return [*rows, ("total expected", usd(plan.cost_usd), usd(other.cost_usd), usd(extra.usd))]


def _wins_at(part: model.WinsAt) -> list[Block | Heading]:
    on = part.on
    rows = [
        ("offer", offer(on)),
        ("price now", node_price(on)),
        ("wins at", f"{usd_per_hour(part.usd_per_node_hour)} per node-hour or less"),
        ("or with", f"{number(part.discount_percent)} % off every offer of it"),
    ]
    return [heading("Break-even price"), facts(rows)]


def _joins_at(part: model.JoinsAt) -> list[Block | Heading]:
    on = part.on
    rows = [
        ("offer", offer(on)),
        ("price now", usd_per_hour(part.now_usd_per_node_hour)),
        ("used at", f"{usd_per_hour(part.usd_per_node_hour)} per node-hour or less"),
    ]
    return [heading("Price at which part of the plan would use it"), facts(rows)]


def _ruled_out(title: str, part: model.RuledOut) -> list[Block | Heading]:
    """Conflicts and the smallest relaxations, with the shortfall of each requirement."""
    conflicts = [in_the_way(conflict, part.searched_nodes) for conflict in part.conflicts]
    parts: list[Block | Heading] = [heading(title), *bullets(conflicts)]
    rows: list[tuple[object, ...]] = []
    for relaxation in part.relaxations:
        for i, (name, now, then) in enumerate(relaxation.one_by_one()):
            cost = ("", "") if i else (usd(relaxation.cost_usd), _or_blank(relaxation.extra_usd))
            rows.append((f"and {name}" if i else name, now, then, _short(relaxation.short_by.get(name)), *cost))
    if rows:
        titles = ("relax", "now", "needed", "short by", "plan then costs", "extra cost")
        parts += [listing(titles, rows, right=(3, 4, 5))]
    return parts


def _short(part: Figure | None) -> str:
    return "" if part is None else _amount(part.value, part.unit)


def _or_blank(value: object) -> str:
    return "" if value is None else usd(value)


def _amount(value: float, unit: str) -> str:
    """A figure in its unit."""
    if unit == "USD":
        return usd(value)
    return duration(value) if unit == "hours" else f"{number(value)} {unit}"


def _requirements(parts: Sequence[model.Requirement]) -> list[Block | Heading]:
    rows: list[tuple[object, ...]] = []
    for part in parts:
        gain = part.gain
        if part.binds and part.plan is not None:
            saving = f"saves {_amount(gain.value, gain.unit)}"
            rows.append((part.requirement, part.asked, saving, part.needed, rented(part.plan)))
        else:
            rows.append((part.requirement, part.asked, "not binding", "", ""))
    if not rows:
        return []
    titles = ("requirement", "asked", "if dropped", "needed value", "to save")
    return [heading("What binds"), listing(titles, rows)]


def _steps(steps: model.Steps | None) -> list[Block | Heading]:
    if steps is None:
        return []
    rows = [
        (f"a deadline of {duration(step.deadline_hours)}", usd(step.extra_usd), rented(step.plan))
        for step in (*reversed(steps.faster), *steps.slower)
    ]
    parts: list[Block | Heading] = []
    if rows:
        parts += [
            heading("Next deadlines that change the cost"),
            listing(("with", "extra cost", "on"), rows, right=(1,)),
        ]
    changes = [(_asked(step_change), _changed(step_change)) for step_change in steps.changes]
    changes += [
        (f"one more {dual.unit.rpartition(' ')[2]}", f"of {dual.requirement} is worth {_dual(dual)}")
        for dual in steps.duals
        if dual.value
    ]
    if changes:
        parts += [heading("Sensitivity"), facts(changes)]
    return parts


def _dual(part: model.Dual) -> str:
    unit = part.unit.partition(" per ")[0]
    return f"{_amount(part.value, unit)} along the cost-time frontier"


def _asked(part: model.Change) -> str:
    by = part.by
    if by.unit == "USD":
        return difference_text(_dollars(by.value))
    return difference_text(additional_hours(float(by.value)))


def _changed(part: model.Change) -> str:
    if part.extra_usd is None or part.extra_hours is None:
        return (
            "no run on one configuration is that cheap"
            if part.requirement == "budget_usd"
            else "no plan meets that deadline"
        )
    on = " then ".join(rented(phase) for phase in part.phases)
    if part.extra_usd == 0 and abs(part.extra_hours) < 1e-6:
        return "changes nothing"
    kg, longer = part.extra_carbon_kg, additional_hours(part.extra_hours)
    carbon = "" if not kg else f", {difference_text(f'{number(kg)} kg CO2e')}"
    hours = f", {difference_text(longer)}" if longer != "0 s" else ""
    needs = f", needs a deadline of {duration(part.deadline_hours)}" if part.requirement == "budget_usd" else ""
    return f"{difference_text(_dollars(part.extra_usd))}{hours}{carbon}{needs}: {on}"


def _frontier(frontier: model.Frontier) -> list[Block | Heading]:
    points = frontier.points
    parts: list[Block | Heading] = []
    if points:
        knee = frontier.knee
        named = None if knee is None else points[knee]
        rows = [_point(point, point is named) for point in _with(thinned(points), named)]
        titles = ("", "time", "cost", "kg CO2e", "machines")
        title = f"Cost against time against carbon ({len(points)} Pareto-optimal {'point' if len(points) == 1 else 'points'})"
        parts += [heading(title), listing(titles, rows, right=(1, 2, 3))]
        parts += bullets([f"knee: {frontier.knee_rule}"]) if named is not None else []
    if frontier.unknown_carbon:
        parts += bullets(frontier.unknown_carbon)
    return parts


def _with(shown: Sequence[model.FrontierPoint], named: model.FrontierPoint | None) -> list[model.FrontierPoint]:
    """The points to show, fastest first, always with the knee."""
    if named is None or any(part is named for part in shown):
        return list(shown)
    return sorted([*shown, named], key=lambda point: float(point.hours_confident))


def _point(part: model.FrontierPoint, named: bool) -> tuple[object, ...]:
    mark = f"knee ({number(part.factor)} x the best)" if named else "" if part.within else "outside"
    return mark, duration(part.hours_confident), usd(part.cost_usd), number(part.carbon_kg), offer(part)
