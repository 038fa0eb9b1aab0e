"""Sections for an infeasible job: conflicting requirements, and the cost of the smallest relaxations."""

from collections.abc import Callable, Sequence

from gpuplan.api.presentation.phrases import job_name, machines, place_and_kind
from gpuplan.api.presentation.sections import Block, Heading, Sections, Tone, sections_of
from gpuplan.api.presentation.text_formatting import duration, number, usd
from gpuplan.api.presentation.text_tables import bullets, cell, facts, heading, listing, sentences
from gpuplan.planner.model.plan import Infeasible, NearestPlan

MAX_NODES = "constraints.max_nodes"


def render_infeasible(infeasible: Infeasible) -> Sections:
    """Conflicts, the smallest relaxation of each requirement, and the nearest plan."""
    parts: list[Block | Heading] = [cell(f"No plan meets the requirements of {job_name(infeasible.job)}.", Tone.BAD)]
    if infeasible.conflicts:
        parts.append(heading("Conflicting requirements", "conflicts"))
        nodes = infeasible.searched_nodes
        parts += bullets(in_the_way(conflict, nodes) for conflict in infeasible.conflicts)
    parts += _relaxations(infeasible)
    parts += _nearest(infeasible.nearest_plan)
    parts += _rejected(infeasible)
    parts += sentences(infeasible.warnings)
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


def conflicts_in_short(conflicts: Sequence[Sequence[str]], nodes: int | None) -> str:
    """The conflicts in one line, with the node limit of the search if it is known."""
    shown = "; ".join(" with ".join(names) for names in conflicts) or "no machine"
    return f"in conflict{'' if nodes is None else _within(nodes)}: {shown}"


def _relaxations(infeasible: Infeasible) -> list[Block | Heading]:
    """The relaxations, with one line per requirement to relax."""
    rows: list[tuple[object, ...]] = []
    for relaxation in infeasible.relaxations:
        for i, (name, now, then) in enumerate(relaxation.one_by_one()):
            rows.append((f"and {name}" if i else name, now, then, "" if i else usd(relaxation.cost_usd)))
    if not rows:
        return [heading(no_way_out(infeasible.searched_nodes), "ways_out")]
    titles = ("relax", "now", "needed", "plan then costs")
    return [
        heading("Smallest relaxations that help, without migration", "ways_out"),
        listing(titles, rows, right=(3,)),
    ]


def _nearest(plan: NearestPlan | None) -> list[Block | Heading]:
    """The configuration that needs the smallest relaxation."""
    if plan is None:
        return []
    rows = [
        ("machines", f"{machines(plan)} in {place_and_kind(plan)}"),
        ("cost", usd(plan.cost_usd)),
        ("time", duration(plan.hours)),
        ("breaks", ", ".join(plan.breaks) or None),
    ]
    return [heading("Nearest plan"), facts(rows)]


def _rejected(infeasible: Infeasible) -> list[Block | Heading]:
    rejected = infeasible.rejected
    rows = [(number(count), reason) for reason, count in sorted(rejected.items(), key=lambda item: -item[1])]
    return [heading("Rejected offers"), listing(("offers", "because"), rows, right=(0,))] if rows else []
