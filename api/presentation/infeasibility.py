"""Sections for an infeasible job: conflicting requirements, and the cost of the smallest relaxations."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gpuplan.api.presentation.machine_phrases import machines, place
from gpuplan.api.presentation.sections import Block, Heading, Sections, Tone, sections_of
from gpuplan.api.presentation.text_formatting import duration, number, plain, usd
from gpuplan.api.presentation.text_tables import bullets, cell, facts, heading, listing, sentences

Part = Mapping[str, Any]

MAX_NODES = "constraints.max_nodes"


def render_infeasible(infeasible: Part) -> Sections:
    """Conflicts, the smallest relaxation of each requirement, and the nearest plan."""
    name = (infeasible.get("job") or {}).get("name") or "this job"
    parts: list[Block | Heading] = [cell(f"No plan meets the requirements of {plain(name)}.", Tone.BAD)]
    if infeasible.get("conflicts"):
        parts.append(heading("Conflicting requirements", "conflicts"))
        nodes = infeasible.get("searched_nodes")
        parts += bullets(in_the_way(conflict, nodes) for conflict in infeasible["conflicts"])
    parts += _relaxations(infeasible)
    parts += _nearest(infeasible.get("nearest_plan"))
    parts += _rejected(infeasible)
    parts += sentences(infeasible)
    return sections_of(*parts)


def in_the_way(conflict: Sequence[str], nodes: int | None, label: Callable[[str], str] = str) -> str:
    """A minimal set of conflicting requirements, as a sentence; `label` names a requirement.

    Only runs on up to `nodes` nodes were evaluated: a run on more nodes may meet these requirements. A conflict with
    `max_nodes` holds for any number of nodes, because every run on more nodes violates it.
    """
    names = [label(name) for name in conflict]
    within = "" if MAX_NODES in conflict else _within(nodes)
    if list(conflict) == ["workload"]:
        return f"the workload itself: no machine allowed for the job can run it{within}"
    if len(names) == 1:
        return f"{names[0]}: no configuration{within} meets it, even with all other requirements relaxed"
    return f"{', '.join(names[:-1])} and {names[-1]}: no configuration{within} meets {'both' if len(names) == 2 else 'all'}"


def no_way_out(nodes: int | None) -> str:
    """States that relaxing requirements does not help, within the nodes searched."""
    return f"No relaxation of a requirement helps{_within(nodes)}"


def _within(nodes: int | None) -> str:
    """The limit of the search in nodes; None for an answer of an earlier release, which lacks it."""
    return " within the node counts searched" if nodes is None else f" within {number(nodes)} nodes"


def conflicts_in_short(part: Part) -> str:
    """The conflicts in one line, with the node limit of the search if the answer has it."""
    conflicts = "; ".join(" with ".join(names) for names in part["conflicts"]) or "no machine"
    nodes = part.get("searched_nodes")
    return f"in conflict{'' if nodes is None else _within(nodes)}: {conflicts}"


def _relaxations(infeasible: Part) -> list[Block | Heading]:
    """The relaxations, with one line per requirement to relax."""
    rows: list[tuple[object, ...]] = []
    for relaxation in infeasible.get("relaxations", ()):
        names = str(relaxation["requirement"]).split(" + ")
        asked, needed = (shown(relaxation.get(end)).split("; ") for end in ("from", "to"))
        for i, (name, now, then) in enumerate(zip(names, asked, needed, strict=True)):
            rows.append((f"and {name}" if i else name, now, then, "" if i else usd(relaxation.get("cost_usd"))))
    if not rows:
        return [heading(no_way_out(infeasible.get("searched_nodes")), "ways_out")]
    titles = ("relax", "now", "needed", "plan then costs")
    return [
        heading("Smallest relaxations that help, without migration", "ways_out"),
        listing(titles, rows, right=(3,)),
    ]


def shown(value: object) -> str:
    """A requirement's value: lists joined by commas; a missing value as `none`."""
    if value is None:
        return "not set"
    if isinstance(value, list | tuple):
        return ", ".join(str(item) for item in value) or "none"
    if isinstance(value, float):
        return number(value, 6)
    return str(value)


def _nearest(plan: Part | None) -> list[Block | Heading]:
    """The configuration that needs the smallest relaxation."""
    if not plan:
        return []
    rows = [
        ("machines", f"{machines(plan)} in {place(plan)}"),
        ("cost", usd(plan["cost_usd"])),
        ("time", duration(plan["hours"])),
        ("breaks", ", ".join(plan.get("breaks", ())) or None),
    ]
    return [heading("Nearest plan"), facts(rows)]


def _rejected(infeasible: Part) -> list[Block | Heading]:
    rejected = infeasible.get("rejected") or {}
    rows = [(number(count), reason) for reason, count in sorted(rejected.items(), key=lambda item: -item[1])]
    return [heading("Rejected offers"), listing(("offers", "because"), rows, right=(0,))] if rows else []
