"""Why nothing will do: every configuration is marked with the requirements it breaks, and the marks tell the rest.

A set of requirements conflicts if every configuration breaks at least one of them: the minimal
conflicting sets are the minimal hitting sets of the marks. A configuration whose mark contains no
other's mark needs the fewest requirements relaxed: those marks are the least ways out.
"""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from catalog.accelerators import accelerators
from catalog.money import usd_display, usd_micros
from catalog.quantities import MAX_HOURS
from catalog.regions import regions
from planner.answer import Choice, Infeasible, Relaxation
from planner.candidates.gather import Candidates, candidates, over, with_late_and_dear
from planner.candidates.requirements import BIT, kinds_asked, present
from planner.candidates.standing import OPT_INS
from planner.choice import cheapest, fastest, in_words
from planner.explain.objectives import unknown_carbon
from planner.explain.statements import region_notes
from planner.job import MAX_NODES, REQUIREMENTS, TrainingJob
from planner.question import Question

#: How far the search for a way out goes in nodes: four times what was allowed, at most this many.
MOST_NODES = 1024
MICROS_PER_CENT = 10_000
#: More ways out than this help nobody.
MOST_RELAXATIONS = 8

Marks = NDArray[np.uint16]


def explain(question: Question, found: Candidates) -> Infeasible:
    """The conflicts and the least relaxations of a job for which `found` holds no feasible configuration."""
    job = question.job
    nodes = searched_nodes(job)
    marked = everything(question)
    conflicts = minimal_conflicts(np.unique(np.concatenate([marks for _, marks in marked])), present(job))
    relaxations = _least([each for variant, marks in marked for each in _relaxations(job, variant, marks)])
    nearest = min(relaxations, key=lambda each: (len(each.requirements), each.choice.cost.expected), default=None)
    return Infeasible(
        job=job,
        snapshot_id=question.markets[0].columns.snapshot_id,
        start=question.start,
        settings=question.settings,
        learned=question.learned,
        conflicts=conflicts or (("workload",),),
        relaxations=relaxations[:MOST_RELAXATIONS],
        nearest=nearest.choice if nearest else None,
        nearest_breaks=nearest.requirements if nearest else (),
        offers_considered=found.offers_considered,
        rejected=with_late_and_dear(found, over(found.table, job.deadline_hours, job.budget_usd)),
        searched_nodes=nodes,
        warnings=(
            _searched(nodes) if nearest else _nothing_fits(found, marked[0][0], nodes),
            *_more(relaxations),
            *_not_opted_in(found),
            *region_notes(job, question.markets[0].columns.regions),
            *unknown_carbon(found),
        ),
    )


def _more(relaxations: tuple[Relaxation, ...]) -> tuple[str, ...]:
    """That there are more ways out than are listed."""
    left = len(relaxations) - MOST_RELAXATIONS
    if left <= 0:
        return ()
    return (f"{left} more ways out give way in as many requirements or more; the first {MOST_RELAXATIONS} are listed",)


def _not_opted_in(found: Candidates) -> tuple[str, ...]:
    """What no way out looks at although it is where the job may run, since a job has it only where it says so."""
    left = [f"{found.rejected[each]:,} offers: {each}" for each in OPT_INS if found.rejected.get(each)]
    return (f"no way out looks at {'; '.join(left)}",) if left else ()


def _searched(nodes: int) -> str:
    most = "the most that a job may have" if nodes >= MAX_NODES else "a larger max_nodes widens the search"
    return (
        f"ways out were looked for on up to {nodes:,} nodes ({most}), in this snapshot, at this batch, without a move "
        "between configurations"
    )


def searched_nodes(job: TrainingJob) -> int:
    """How many nodes ways out are looked for on."""
    return max(job.constraints.max_nodes, min(MOST_NODES, 4 * job.constraints.max_nodes))


def everything(question: Question) -> list[tuple[Candidates, Marks]]:
    """Every configuration there is with constraints relaxed, and the bits that each breaks; apart, those at any precision."""
    job, nodes = question.job, searched_nodes(question.job)
    variants = [(question, np.uint16(0))]
    if job.training.precision != "auto":
        substituted = replace(job, training=replace(job.training, precision="auto"))
        variants.append((replace(question, job=substituted), BIT["training.precision"]))
    result = []
    for variant, bit in variants:
        found = candidates(variant, relaxed_nodes=nodes)
        result.append((found, over(found.table, job.deadline_hours, job.budget_usd) | bit))
    return result


def _least(relaxations: list[Relaxation]) -> tuple[Relaxation, ...]:
    """Those that relax no more than another does, fewest requirements first."""
    names = [frozenset(each.requirements) for each in relaxations]
    kept = [each for each, mine in zip(relaxations, names, strict=True) if not any(other < mine for other in names)]
    return tuple(sorted(kept, key=lambda each: len(each.requirements)))


def minimal_conflicts(marks: Marks, requirements: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """All minimal sets of requirements that every mark hits, smallest first; none if some mark is empty or there are none.

    Sets that hit the marks seen so far are kept minimal as each further mark comes in (Berge, Hypergraphs, 1989).
    """
    if not len(marks):
        return ()
    stated = [int(BIT[name]) for name in requirements]
    hitting = {0}
    for mark in minimal_marks(marks):
        bits = [bit for bit in stated if bit & mark]
        grown = {each if each & mark else each | bit for each in hitting for bit in (bits if not each & mark else (0,))}
        hitting = {each for each in grown if not any(other != each and other & each == other for other in grown)}
    found = [tuple(i for i, bit in enumerate(stated) if bit & each) for each in hitting if each]
    return tuple(tuple(requirements[i] for i in places) for places in sorted(found, key=lambda at: (len(at), at)))


def minimal_marks(marks: Marks) -> list[int]:
    """The marks that contain no other mark, fewest requirements first."""
    unique = sorted({int(mark) for mark in marks}, key=lambda mark: (mark.bit_count(), mark))
    kept: list[int] = []
    for mark in unique:
        if not any(smaller & mark == smaller for smaller in kept):
            kept.append(mark)
    return kept


def _relaxations(job: TrainingJob, found: Candidates, marks: Marks) -> list[Relaxation]:
    result = []
    for mark in minimal_marks(marks):
        names = [name for name in REQUIREMENTS if mark & int(BIT[name])]
        index = _least_giving(found, marks == mark, names)
        if index is None:
            continue
        choice = in_words(found, found.table, index)
        result.append(
            Relaxation(
                requirements=tuple(names),
                asked=tuple(asked(job, name) for name in names),
                needed=tuple(needed(name, choice, float(found.table.carbon_kg[index])) for name in names),
                choice=choice,
                carbon_kg=_known(float(found.table.carbon_kg[index])),
            )
        )
    return result


def _known(kg: float) -> float | None:
    return None if math.isnan(kg) else kg


def _least_giving(found: Candidates, among: NDArray[np.bool_], names: list[str]) -> int | None:
    """The configuration that asks for the least more of these requirements: of time, else of carbon, else of money."""
    kg = found.table.carbon_kg
    if "constraints.carbon_budget_kg" in names and not np.isnan(kg[among]).all():
        among = among & ~np.isnan(kg)
        if "deadline" not in names:
            among = among & (kg <= kg[among].min())
    return (fastest if "deadline" in names else cheapest)(found.table, among)


def asked(job: TrainingJob, name: str) -> str:
    """What a job asks for by a requirement that it states."""
    if name == "deadline":
        return f"{job.deadline_hours:.6g} h"
    if name == "budget_usd":
        return usd_display(usd_micros(job.budget_usd or 0.0))
    if name == "training.precision":
        return job.training.precision
    if name == "objective":
        return job.objective
    if name == "constraints.carbon_budget_kg":
        return f"{job.constraints.carbon_budget_kg:.6g} kg"
    if name == "constraints.price_kinds":
        return ", ".join(sorted(kinds_asked(job.constraints)))
    value = getattr(job.constraints, name.partition(".")[2])
    return ", ".join(value) if isinstance(value, tuple) else str(value)


def needed(name: str, choice: Choice, kg: float) -> str:
    """What the requirement would have to allow for this choice."""
    place = f"{choice.offer.provider}:{choice.offer.region}"
    region = regions().get((choice.offer.provider, choice.offer.region))
    words = {
        "deadline": _deadline(choice.hours.confident),
        "budget_usd": usd_display(-(-choice.cost.expected // MICROS_PER_CENT) * MICROS_PER_CENT),
        "training.precision": "auto",
        "objective": "cost",
        "constraints.carbon_budget_kg": "none" if math.isnan(kg) else f"{_rounded_up(kg)} kg",
        "constraints.providers": choice.offer.provider,
        "constraints.accelerators": choice.accelerator,
        "constraints.vendors": accelerators()[choice.accelerator].vendor,
        "constraints.instance_types": choice.instance_type.name,
        "constraints.regions": place,
        "constraints.geography": region.geography if region else f"that of {place}",
        "constraints.price_kinds": choice.offer.price_kind,
        "constraints.max_nodes": str(choice.nodes),
        "constraints.max_accelerators": str(choice.nodes * choice.instance_type.devices),
    }
    return words[name]


def _deadline(hours: float) -> str:
    """A deadline that a job may state and that these hours keep: four digits, rounded up."""
    if hours > MAX_HOURS:
        return "none"
    return f"{_rounded_up(hours)} h"


def _rounded_up(value: float) -> str:
    """Four digits, rounded up, so that a requirement copied from here is met."""
    scale = 10.0 ** (3 - math.floor(math.log10(value)))
    return f"{math.ceil(value * scale) / scale:.6g}"


def _nothing_fits(found: Candidates, relaxed: Candidates, nodes: int) -> str:
    """One sentence for a job that no machine of the snapshot holds: why not, once every constraint is relaxed."""
    reasons = relaxed.rejected or found.rejected
    first = f"; most offers: {max(reasons, key=lambda reason: reasons[reason])}" if reasons else ""
    return f"no machine of the snapshot runs this job on up to {nodes:,} nodes, whatever is relaxed{first}"
