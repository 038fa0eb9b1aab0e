"""Why there is no plan: which requirements cannot hold together, and what the least giving way would cost."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType

from api.render.machines import machines, place
from api.render.tables import bullets, cell, facts, heading, listing
from api.render.text import duration, number, plain, usd

Part = Mapping[str, Any]

MAX_NODES = "constraints.max_nodes"


def render_infeasible(infeasible: Part) -> Group:
    """Conflicts, the least relaxation of each requirement, and the plan that comes nearest."""
    name = (infeasible.get("job") or {}).get("name") or "this job"
    parts: list[RenderableType] = [cell(f"No plan meets what {plain(name)} asks for.", "bold red")]
    if infeasible.get("conflicts"):
        parts.append(heading("What stands in the way"))
        nodes = infeasible.get("searched_nodes")
        parts += bullets(in_the_way(conflict, nodes) for conflict in infeasible["conflicts"])
    parts += _relaxations(infeasible)
    parts += _nearest(infeasible.get("nearest_plan"))
    parts += _rejected(infeasible)
    from api.render.plan import sentences

    parts += sentences(infeasible)
    return Group(*parts)


def in_the_way(conflict: Sequence[str], nodes: int | None, label: Callable[[str], str] = str) -> str:
    """A minimal set of requirements that conflict, as a sentence; `label` is what a requirement is called.

    Only runs on up to `nodes` nodes were looked at, so that runs on more of them may meet what is in conflict here. A
    conflict with `max_nodes` holds on any number: every run on more nodes breaks that.
    """
    names = [label(name) for name in conflict]
    within = "" if MAX_NODES in conflict else _within(nodes)
    if list(conflict) == ["workload"]:
        return f"the workload itself: no machine that the job may have can run it{within}"
    if len(names) == 1:
        return f"{names[0]}: nothing{within} meets it, whatever else gives way"
    return f"{', '.join(names[:-1])} and {names[-1]}: nothing{within} meets {'both' if len(names) == 2 else 'all'}"


def no_way_out(nodes: int | None) -> str:
    """That nothing which gives way would help, as far as was searched."""
    return f"No requirement that gives way would help{_within(nodes)}"


def _within(nodes: int | None) -> str:
    """How far was searched; None: an answer of an earlier release, which does not say."""
    return " on the nodes that were searched" if nodes is None else f" within {number(nodes)} nodes"


def conflicts_in_short(told: Part) -> str:
    """What stands in the way in a few words, and within how many nodes that was found, if the answer says."""
    conflicts = "; ".join(" with ".join(names) for names in told["conflicts"]) or "no machine"
    nodes = told.get("searched_nodes")
    return f"in conflict{'' if nodes is None else _within(nodes)}: {conflicts}"


def _relaxations(infeasible: Part) -> list[RenderableType]:
    """Each way out, one line per requirement that has to give way for it."""
    rows: list[tuple[object, ...]] = []
    for each in infeasible.get("relaxations", ()):
        names = str(each["requirement"]).split(" + ")
        asked, needed = (shown(each.get(end)).split("; ") for end in ("from", "to"))
        for i, (name, now, then) in enumerate(zip(names, asked, needed, strict=True)):
            rows.append((f"and {name}" if i else name, now, then, "" if i else usd(each.get("cost_usd"))))
    if not rows:
        return [heading(no_way_out(infeasible.get("searched_nodes")))]
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
