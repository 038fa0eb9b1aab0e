"""Why there is no plan: which requirements cannot hold together, and what the least giving way would cost."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType

from api.render.machines import machines, place
from api.render.tables import bullets, cell, facts, heading, listing
from api.render.text import duration, number, plain, usd

Part = Mapping[str, Any]


def render_infeasible(infeasible: Part) -> Group:
    """Conflicts, the least relaxation of each requirement, and the plan that comes nearest."""
    name = (infeasible.get("job") or {}).get("name") or "this job"
    parts: list[RenderableType] = [cell(f"No plan meets what {plain(name)} asks for.", "bold red")]
    if infeasible.get("conflicts"):
        parts.append(heading("What stands in the way"))
        parts += bullets(in_the_way(conflict) for conflict in infeasible["conflicts"])
    parts += _relaxations(infeasible)
    parts += _nearest(infeasible.get("nearest_plan"))
    parts += _rejected(infeasible)
    from api.render.plan import sentences

    parts += sentences(infeasible)
    return Group(*parts)


def in_the_way(conflict: Sequence[str]) -> str:
    """A minimal set of requirements that conflict, as a sentence."""
    if list(conflict) == ["workload"]:
        return "the workload itself: no machine that the job may have can run it"
    if len(conflict) == 1:
        return f"{conflict[0]}: nothing meets it, whatever else gives way"
    return f"{', '.join(conflict[:-1])} and {conflict[-1]}: nothing meets {'both' if len(conflict) == 2 else 'all'}"


def _relaxations(infeasible: Part) -> list[RenderableType]:
    """Each way out, one line per requirement that has to give way for it."""
    rows: list[tuple[object, ...]] = []
    for each in infeasible.get("relaxations", ()):
        names = str(each["requirement"]).split(" + ")
        asked, needed = (shown(each.get(end)).split("; ") for end in ("from", "to"))
        for i, (name, now, then) in enumerate(zip(names, asked, needed, strict=True)):
            rows.append((f"and {name}" if i else name, now, then, "" if i else usd(each.get("cost_usd"))))
    if not rows:
        return [heading("No requirement that gives way would help")]
    titles = ("give way in", "now", "would have to be", "plan then costs")
    return [heading("The ways out, each the least that helps without a move"), listing(titles, rows, right=(3,))]


def shown(value: object) -> str:
    """A requirement's value: lists joined, what is absent named so."""
    if value is None:
        return "not set"
    if isinstance(value, list | tuple):
        return ", ".join(str(each) for each in value) or "none"
    if isinstance(value, float):
        return number(value, 6)
    return str(value)


def _nearest(plan: Part | None) -> list[RenderableType]:
    """The configuration that asks for the least."""
    if not plan:
        return []
    rows = [
        ("machines", f"{machines(plan)} in {place(plan)}"),
        ("cost", usd(plan["cost_usd"])),
        ("time", duration(plan["hours"])),
        ("breaks", ", ".join(plan.get("breaks", ())) or None),
    ]
    return [heading("The nearest plan"), facts(rows)]


def _rejected(infeasible: Part) -> list[RenderableType]:
    rejected = infeasible.get("rejected") or {}
    rows = [(number(count), reason) for reason, count in sorted(rejected.items(), key=lambda item: -item[1])]
    return [heading("What was left out"), listing(("offers", "because"), rows, right=(0,))] if rows else []
