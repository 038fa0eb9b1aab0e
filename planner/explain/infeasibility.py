"""Why no plan is feasible: every configuration is marked with the requirements it breaks.

A set of requirements conflicts if every configuration breaks at least one of them: the minimal
conflicting sets are the minimal hitting sets of the marks. A configuration whose mark contains no
other's mark needs the fewest requirements relaxed: those marks are the smallest relaxations.
"""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.money import usd_display, usd_micros
from gpuplan.catalog.parsing.quantities import MAX_HOURS
from gpuplan.planner.candidates.candidate_set import Candidates, candidates, over, with_late_and_dear
from gpuplan.planner.candidates.configuration_choice import cheapest, fastest, in_words
from gpuplan.planner.candidates.eligibility import OPT_INS
from gpuplan.planner.candidates.job_requirements import (
    BIT,
    allowing_values,
    kinds_asked,
    present,
    unavailable_by_name,
)
from gpuplan.planner.candidates.planning_problem import Question
from gpuplan.planner.explain.assumptions_and_warnings import region_notes
from gpuplan.planner.explain.terms_notes import unknown_carbon
from gpuplan.planner.model.job import MAX_NODES, REQUIREMENTS, TrainingJob
from gpuplan.planner.model.outcome import Choice, LeastChange, NoPlan
from gpuplan.planner.model.quota import IGNORE

#: The most nodes of a relaxation: four times the allowed number, at most this many.
MOST_NODES = 1024
MICROS_PER_CENT = 10_000
#: At most so many relaxations are listed.
MOST_RELAXATIONS = 8

Marks = NDArray[np.uint32]


def explain(question: Question, candidates: Candidates) -> NoPlan:
    """The conflicts and the smallest relaxations of a job for which `candidates` has no feasible configuration."""
    job = question.job
    nodes = searched_nodes(job)
    marked = everything(question)
    conflicts = minimal_conflicts(
        np.unique(np.concatenate([marks for _, marks in marked])),
        present(job, limited_by_quotas=bool(question.markets[0].quotas)),
    )
    relaxations = _least([relaxation for variant, marks in marked for relaxation in _relaxations(job, variant, marks)])
    nearest = min(
        relaxations,
        key=lambda relaxation: (len(relaxation.requirements), relaxation.choice.cost.expected),
        default=None,
    )
    return NoPlan(
        job=job,
        snapshot_id=question.markets[0].columns.snapshot_id,
        start=question.start,
        settings=question.settings,
        learned=question.learned,
        conflicts=conflicts or (("workload",),),
        relaxations=relaxations[:MOST_RELAXATIONS],
        nearest=nearest.choice if nearest else None,
        nearest_breaks=nearest.requirements if nearest else (),
        offers_considered=candidates.offers_considered,
        rejected=with_late_and_dear(candidates, over(candidates.table, job.deadline_hours, job.budget_usd)),
        searched_nodes=nodes,
        warnings=(
            *unavailable_by_name(tuple(market.columns for market in question.markets), job.constraints),
            _searched(nodes) if nearest else _nothing_fits(candidates, marked[0][0], nodes),
            *_unlisted(relaxations),
            *_not_opted_in(candidates),
            *region_notes(job, question.markets[0].columns.regions),
            *unknown_carbon(candidates),
        ),
    )


def _unlisted(relaxations: tuple[LeastChange, ...]) -> tuple[str, ...]:
    """A sentence if there are more relaxations than are listed."""
    left = len(relaxations) - MOST_RELAXATIONS
    if left <= 0:
        return ()
    return (f"{left} more relaxations give up as many requirements or more; the first {MOST_RELAXATIONS} are listed",)


def _not_opted_in(candidates: Candidates) -> tuple[str, ...]:
    """A sentence on allowed offers that relaxations leave out, since a job must opt in to them."""
    left = [
        f"{candidates.rejected[reason]:,} offers: {reason}" for reason in OPT_INS if candidates.rejected.get(reason)
    ]
    return (f"relaxations leave out {'; '.join(left)}",) if left else ()


def _searched(nodes: int) -> str:
    most = "the most that a job may have" if nodes >= MAX_NODES else "a larger max_nodes widens the search"
    return (
        f"relaxations were searched on up to {nodes:,} nodes ({most}), in this snapshot, with this batch, without a move "
        "between configurations"
    )


def searched_nodes(job: TrainingJob) -> int:
    """The number of nodes up to which relaxations are searched."""
    return max(job.constraints.max_nodes, min(MOST_NODES, 4 * job.constraints.max_nodes))


def everything(question: Question) -> list[tuple[Candidates, Marks]]:
    """Every configuration with constraints relaxed, and the bits each breaks; separately, those at any precision."""
    job, nodes = question.job, searched_nodes(question.job)
    variants = [(question, np.uint32(0))]
    if job.training.precision != "auto":
        substituted = replace(job, training=replace(job.training, precision="auto"))
        variants.append((replace(question, job=substituted), BIT["training.precision"]))
    result = []
    for variant, bit in variants:
        relaxed = candidates(variant, relaxed_nodes=nodes)
        result.append((relaxed, over(relaxed.table, job.deadline_hours, job.budget_usd) | bit))
    return result


def _least(relaxations: list[LeastChange]) -> tuple[LeastChange, ...]:
    """The relaxations that contain no other one, fewest requirements first."""
    names = [frozenset(relaxation.requirements) for relaxation in relaxations]
    smallest = [
        relaxation
        for relaxation, mine in zip(relaxations, names, strict=True)
        if not any(other < mine for other in names)
    ]
    return tuple(sorted(smallest, key=lambda relaxation: len(relaxation.requirements)))


def minimal_conflicts(marks: Marks, requirements: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """All minimal sets of requirements that every mark hits, smallest first; none if some mark is empty or there are none.

    The minimal hitting sets of the marks so far are updated with each further mark (Berge, Hypergraphs, 1989).
    """
    if not len(marks):
        return ()
    stated = [int(BIT[name]) for name in requirements]
    hitting = {0}
    for mark in minimal_marks(marks):
        bits = [bit for bit in stated if bit & mark]
        grown = {hit if hit & mark else hit | bit for hit in hitting for bit in (bits if not hit & mark else (0,))}
        hitting = {hit for hit in grown if not any(other != hit and other & hit == other for other in grown)}
    places_of_sets = [tuple(i for i, bit in enumerate(stated) if bit & hit) for hit in hitting if hit]
    return tuple(
        tuple(requirements[i] for i in places) for places in sorted(places_of_sets, key=lambda at: (len(at), at))
    )


def minimal_marks(marks: Marks) -> list[int]:
    """The marks that contain no other mark, fewest requirements first."""
    unique = sorted(np.flatnonzero(np.bincount(marks)).tolist(), key=lambda mark: (mark.bit_count(), mark))
    minimal: list[int] = []
    for mark in unique:
        if not any(smaller & mark == smaller for smaller in minimal):
            minimal.append(mark)
    return minimal


def _relaxations(job: TrainingJob, candidates: Candidates, marks: Marks) -> list[LeastChange]:
    result = []
    for mark in minimal_marks(marks):
        names = [name for name in REQUIREMENTS if mark & int(BIT[name])]
        index = _least_giving(candidates, marks == mark, names)
        if index is None:
            continue
        choice = in_words(candidates, candidates.table, index)
        result.append(
            LeastChange(
                requirements=tuple(names),
                asked=tuple(asked(job, name) for name in names),
                needed=tuple(needed(name, choice, float(candidates.table.carbon_kg[index])) for name in names),
                choice=choice,
                carbon_kg=_known(float(candidates.table.carbon_kg[index])),
            )
        )
    return result


def _known(kg: float) -> float | None:
    return None if math.isnan(kg) else kg


def _least_giving(candidates: Candidates, among: NDArray[np.bool_], names: list[str]) -> int | None:
    """The configuration that exceeds these requirements least: in time, else in carbon, else in cost."""
    kg = candidates.table.carbon_kg
    if "constraints.carbon_budget_kg" in names and not np.isnan(kg[among]).all():
        among = among & ~np.isnan(kg)
        if "deadline" not in names:
            among = among & (kg <= kg[among].min())
    return (fastest if "deadline" in names else cheapest)(candidates.table, among)


def asked(job: TrainingJob, name: str) -> str:
    """The value of a requirement that a job states."""
    if name == "deadline":
        return f"{job.deadline_hours:.6g} h"
    if name == "budget_usd":
        return usd_display(usd_micros(job.budget_usd or 0.0))
    if name.startswith("training."):
        return str(getattr(job.training, name.removeprefix("training.")))
    if name == "objective":
        return job.objective
    if name == "constraints.carbon_budget_kg":
        return f"{job.constraints.carbon_budget_kg:.6g} kg"
    if name == "constraints.price_kinds":
        return ", ".join(sorted(kinds_asked(job.constraints)))
    value = getattr(job.constraints, name.partition(".")[2])
    return ", ".join(value) if isinstance(value, tuple) else str(value)


def needed(name: str, choice: Choice, kg: float) -> str:
    """The value that the requirement must have to allow this choice."""
    words = allowing_values(choice.instance_type, choice.offer.region, choice.offer.price_kind) | {
        "deadline": _deadline(choice.hours.confident),
        "budget_usd": usd_display(-(-choice.cost.expected // MICROS_PER_CENT) * MICROS_PER_CENT),
        "training.precision": "auto",
        "objective": "cost",
        "constraints.carbon_budget_kg": "none" if math.isnan(kg) else f"{_rounded_up(kg)} kg",
        "constraints.max_nodes": str(choice.nodes),
        "constraints.max_accelerators": str(choice.nodes * choice.instance_type.devices),
        "constraints.quotas": IGNORE,
    }
    return words[name]


def _deadline(hours: float) -> str:
    """The shortest deadline, in four digits rounded up, that these hours keep; none beyond the longest accepted deadline."""
    if hours > MAX_HOURS:
        return "none"
    return f"{_rounded_up(hours)} h"


def _rounded_up(value: float) -> str:
    """Four digits, rounded up, so that a requirement with this value is met."""
    scale = 10.0 ** (3 - math.floor(math.log10(value)))
    return f"{math.ceil(value * scale) / scale:.6g}"


def _nothing_fits(candidates: Candidates, relaxed: Candidates, nodes: int) -> str:
    """One sentence for a job that no machine of the snapshot can run even with every constraint relaxed."""
    reasons = relaxed.rejected or candidates.rejected
    first = f"; most offers: {max(reasons, key=lambda reason: reasons[reason])}" if reasons else ""
    return f"no machine of the snapshot runs this job on up to {nodes:,} nodes, with every constraint relaxed{first}"
