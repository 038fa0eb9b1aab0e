"""Check of an infeasible answer: every configuration breaks a requirement, and conflicts and relaxations follow.

Each configuration is marked with the set of requirements that it breaks. A conflict is a minimal set of requirements
that intersects every mark. A least relaxation is a mark that contains no other mark.
"""

import math
from collections.abc import Iterable
from dataclasses import asdict, replace
from itertools import combinations

import numpy as np

from gpuplan.catalog.model.money import usd_display, usd_micros
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.catalog.parsing.quantities import MAX_HOURS
from gpuplan.planner.model.job import REQUIREMENTS, TrainingJob
from gpuplan.planner.model.verification import InfeasibleComparison
from gpuplan.planner.verify.alternatives_check import Choice, choice
from gpuplan.planner.verify.configuration_enumeration import Priced, Sweep, names_of
from gpuplan.planner.verify.configuration_survey import Survey, by_carbon, by_cost, by_time, cheapest, fastest, greenest
from gpuplan.planner.verify.eligibility_check import values_of
from gpuplan.planner.verify.field_coverage import Path
from gpuplan.planner.verify.named_offers import Named, second_text
from gpuplan.planner.verify.offer_counts import counts
from gpuplan.planner.verify.phase_figures import offloaded_gib
from gpuplan.planner.verify.phase_pairs import in_phases
from gpuplan.planner.verify.verification_context import Context, estimator_of

MICROS_PER_CENT = 10_000


def asked(job: TrainingJob, name: str) -> str:
    """The value that a job states for a requirement."""
    match name:
        case "deadline":
            return f"{job.deadline_hours:.6g} h"
        case "budget_usd":
            return usd_display(usd_micros(job.budget_usd or 0.0))
        case "training.precision":
            return job.training.precision
        case "training.framework":
            return job.training.framework
        case "objective":
            return job.objective
        case "constraints.carbon_budget_kg":
            return f"{job.constraints.carbon_budget_kg:.6g} kg"
        case "constraints.price_kinds":
            kinds = job.constraints.price_kinds or [row.name for row in price_kinds().values() if row.in_default]
            return ", ".join(sorted(kinds))
    value = getattr(job.constraints, name.removeprefix("constraints."))
    return ", ".join(value) if isinstance(value, tuple) else str(value)


def needed(name: str, named: Named, micros: int, confident_hours: float, carbon_kg: float | None) -> str:
    """The value of the requirement that would allow this configuration."""
    offer_group = named.offer_group
    words = values_of(offer_group.machine.type, offer_group.place, offer_group.kind) | {
        "deadline": "none" if confident_hours > MAX_HOURS else f"{_four_digits_up(confident_hours)} h",
        "budget_usd": usd_display(math.ceil(micros / MICROS_PER_CENT) * MICROS_PER_CENT),
        "training.precision": "auto",
        "objective": "cost",
        "constraints.carbon_budget_kg": "none" if carbon_kg is None else f"{_four_digits_up(carbon_kg)} kg",
        "constraints.max_nodes": str(named.nodes),
        "constraints.max_accelerators": str(named.nodes * offer_group.machine.type.devices),
        "constraints.quotas": "ignore",
    }
    return words[name]


def _four_digits_up(value: float) -> str:
    scale = 10.0 ** (3 - math.floor(math.log10(value)))
    return f"{math.ceil(value * scale) / scale:.6g}"


CHECK = "infeasibility"
PRECISION = "training.precision"
#: Relaxations are sought on up to four times the allowed nodes, at most `MOST_NODES`; at most `MOST_LISTED` are listed.
MOST_NODES = 1024
MOST_LISTED = 8

Mark = frozenset[str]


def check_infeasible(context: Context) -> InfeasibleComparison:
    """Check everything that the answer states; returns a summary of the comparison."""
    field_coverage, job = context.field_coverage, context.submitted_plan.job
    field_coverage.is_same("finish", ("start",), second_text(context.submitted_plan.start), "not the start of the job")
    most = job.constraints.max_nodes
    sweeps = (sweep.within(frozenset()) for sweep in context.enumeration.sweeps(context.open_offer_groups, most))
    fits = next((sweep.at(0) for sweep in sweeps if len(sweep)), None)
    what = (
        ""
        if fits is None
        else f"{fits.nodes} x {fits.offer_group.machine.type.name} in {':'.join(fits.offer_group.place)}"
    )
    field_coverage.is_true(CHECK, ("conflicts",), fits is None, what, f"{what} meets every requirement")
    phased = None if fits is not None else in_phases(context, _budget_micros(job))
    if phased is not None and phased.cheapest is not None:
        micros, words = phased.cheapest
        why = f"{words} meets every requirement for {micros / 1e6:.2f} USD, in two phases"
        field_coverage.is_true(CHECK, ("conflicts",), False, words, why)
    nodes = max(most, min(MOST_NODES, 4 * most))
    field_coverage.is_same(
        CHECK, ("searched_nodes",), nodes, "not the highest node count of the search for relaxations"
    )
    variants = {False: context} | ({True: _at_any_precision(context)} if job.training.precision != "auto" else {})
    ways: dict[Mark, Priced] = {}
    marks: dict[Mark, int] = {}
    for substituted, variant in variants.items():
        _marked(variant, nodes, substituted, ways, marks)
    _conflicts(context, set(marks))
    least = _least_ways(marks)
    relaxations = _relaxations(variants, ways, least)
    _nearest(variants, relaxations)
    counts(context, Survey())
    return InfeasibleComparison(
        offers=context.open_offers.offers,
        offers_that_can_be_had=sum(
            offer_group.size for offer_group in context.open_offers.offer_groups if not offer_group.reason
        ),
        configurations=sum(marks.values()),
        nodes_up_to=nodes,
        pairs_in_phases_priced_exactly=0 if phased is None else phased.priced,
        marks={
            " + ".join(_ordered(mark)): number for mark, number in sorted(marks.items(), key=lambda one: -one[1])[:8]
        },
    )


def _budget_micros(job: TrainingJob) -> float:
    """The cost in micro-dollars that a plan must stay below to meet the budget; inf without one."""
    return math.inf if job.budget_usd is None else math.floor(job.budget_usd * 1e6 * (1 + 1e-15)) + 1.0


def _at_any_precision(context: Context) -> Context:
    """The same context with `training.precision` set to auto."""
    training = replace(context.submitted_plan.job.training, precision="auto")
    estimator = estimator_of(context.submitted_plan, context.work, training)
    hosts_gib = offloaded_gib(context.work, training)
    enumeration = replace(context.enumeration, estimator=estimator, hosts_gib=hosts_gib)
    return replace(context, estimator=estimator, enumeration=enumeration)


def _marked(context: Context, nodes: int, substituted: bool, ways: dict[Mark, Priced], marks: dict[Mark, int]) -> None:
    """Count every eligible configuration on up to `nodes` nodes by its mark, and collect the best of each mark."""
    offer_groups = [offer_group for offer_group in context.open_offers.offer_groups if not offer_group.reason]
    for sweep in context.enumeration.sweeps(offer_groups, nodes):
        for bits in np.unique(sweep.broken).tolist():
            alike = sweep.take(sweep.broken == bits)
            mark = sweep.offer_group.broken | names_of(bits) | ({PRECISION} if substituted else set())
            marks[mark] = marks.get(mark, 0) + len(alike)
            first, known = _first(alike, mark), ways.get(mark)
            if known is None or _asks_less(first, known, mark):
                ways[mark] = first


def _first(alike: Sweep, mark: Mark) -> Priced:
    """The configuration of a sweep that exceeds the requirements least, in the order of `_asks_less`."""
    if "constraints.carbon_budget_kg" in mark and not np.isnan(alike.carbon_kg).all():
        alike = alike.take(~np.isnan(alike.carbon_kg))
    if "deadline" in mark:
        return fastest(alike)
    return greenest(alike) if "constraints.carbon_budget_kg" in mark else cheapest(alike)


def _asks_less(priced: Priced, other: Priced, mark: Mark) -> bool:
    """Whether a configuration exceeds the broken requirements by less: in time, else in carbon, else in cost."""
    if "constraints.carbon_budget_kg" in mark and (priced.carbon_kg is None) != (other.carbon_kg is None):
        return other.carbon_kg is None
    if "deadline" in mark:
        return by_time(priced) < by_time(other)
    if "constraints.carbon_budget_kg" in mark and priced.carbon_kg is not None:
        return by_carbon(priced) < by_carbon(other)
    return by_cost(priced) < by_cost(other)


def _ordered(mark: Iterable[str]) -> list[str]:
    return sorted(mark, key=REQUIREMENTS.index)


def _conflicts(context: Context, marks: set[Mark]) -> None:
    """Check that the conflicts are all minimal hitting sets of the marks; `workload` where no configuration runs."""
    field_coverage = context.field_coverage
    stated: list[tuple[str, ...]] = []
    for number in range(field_coverage.size("conflicts")):
        names = tuple(
            field_coverage.text("conflicts", number, i) for i in range(field_coverage.size("conflicts", number))
        )
        field_coverage.tick(CHECK, *(("conflicts", number, i) for i in range(len(names))))
        stated.append(names)
    submitted = context.submitted_plan
    limited = bool(submitted.settings.quotas) and submitted.job.constraints.quotas != "ignore"
    expected = minimal_hitting_sets(marks, _stated(submitted.job, limited_by_quotas=limited)) or {("workload",)}
    for number, names in enumerate(stated):
        why = "not a minimal set such that every configuration breaks one of its requirements"
        field_coverage.is_true(CHECK, ("conflicts", number), names in expected, sorted(expected), why)
        field_coverage.is_true(
            CHECK, ("conflicts", number), names not in stated[:number], None, "this conflict stands before"
        )
    missing = sorted(expected - set(stated))
    field_coverage.is_true(CHECK, ("conflicts",), not missing, missing, "conflicts are missing")


def minimal_hitting_sets(marks: set[Mark], requirements: list[str]) -> set[tuple[str, ...]]:
    """Every minimal set of requirements that intersects each mark; none if a mark is empty."""
    hitting_sets: set[tuple[str, ...]] = set()
    if not marks or not all(marks):
        return hitting_sets
    for size in range(1, len(requirements) + 1):
        for names in combinations(requirements, size):
            if not any(set(smaller) <= set(names) for smaller in hitting_sets) and all(
                mark & set(names) for mark in marks
            ):
                hitting_sets.add(names)
    return hitting_sets


def _stated(job: TrainingJob, *, limited_by_quotas: bool) -> list[str]:
    """The requirements that the job states, and those that always apply."""
    stated = {f"constraints.{name}": value not in ((), None) for name, value in asdict(job.constraints).items()} | {
        "constraints.price_kinds": True,
        "objective": job.objective == "carbon",
        "training.framework": job.training.framework != "any",
        PRECISION: job.training.precision != "auto",
        "deadline": job.deadline_hours is not None,
        "budget_usd": job.budget_usd is not None,
        "constraints.quotas": limited_by_quotas,
    }
    return [name for name in REQUIREMENTS if stated[name]]


def _least_ways(marks: Iterable[Mark]) -> set[Mark]:
    """The marks that contain no other mark."""
    every = sorted(marks, key=len)
    minimal_marks: list[Mark] = []
    for mark in every:
        if not any(smaller <= mark for smaller in minimal_marks):
            minimal_marks.append(mark)
    return set(minimal_marks)


def _relaxations(
    variants: dict[bool, Context], ways: dict[Mark, Priced], least: set[Mark]
) -> list[tuple[Mark, Choice, Path]]:
    """Check each relaxation: its plan is recomputed, the best of its mark, and described correctly."""
    context = variants[False]
    field_coverage, job = context.field_coverage, context.submitted_plan.job
    relaxations: list[tuple[Mark, Choice, Path]] = []
    count = field_coverage.size("relaxations")
    wanted = min(MOST_LISTED, len(least))
    field_coverage.is_true(CHECK, ("relaxations",), count == wanted, wanted, "not the number of least relaxations")
    seen: set[Mark] = set()
    for number in range(count):
        path: Path = ("relaxations", number)
        names = field_coverage.text(*path, "requirement").split(" + ")
        mark = frozenset(names)
        field_coverage.is_same(
            CHECK, (*path, "requirement"), " + ".join(_ordered(mark & set(REQUIREMENTS))), "not requirements"
        )
        is_least = mark in least and mark not in seen
        field_coverage.is_true(CHECK, (*path, "requirement"), is_least, None, "not a least relaxation, or listed twice")
        seen.add(mark)
        relaxed = choice(variants.get(PRECISION in mark, context), (*path, "plan"), requirements=False)
        words = [(*path, name) for name in ("from", "to", "cost_usd")]
        if field_coverage.has(*path, "carbon_kg"):
            words.append((*path, "carbon_kg"))
        if relaxed is None or mark not in ways or not mark <= set(REQUIREMENTS):
            field_coverage.tick(CHECK, *words)
            continue
        relaxations.append((mark, relaxed, (*path, "plan")))
        best, ordered = ways[mark], _ordered(mark)
        kg = _kg(context, relaxed)
        same = abs(relaxed.micros - best.micros) <= 1 + context.relative * best.micros
        same = same and abs(relaxed.clock.confident - best.confident_hours) <= 1e-9 * best.confident_hours
        why = "another configuration needs a smaller change of these requirements"
        field_coverage.is_true(
            CHECK, (*path, "plan"), same, f"{best.nodes} x {best.offer_group.machine.type.name}", why
        )
        field_coverage.is_same(
            CHECK, words[0], "; ".join(asked(job, name) for name in ordered), "not the value that the job states"
        )
        to = "; ".join(needed(name, relaxed.named, relaxed.micros, relaxed.clock.confident, kg) for name in ordered)
        field_coverage.is_same(CHECK, words[1], to, "not what this configuration needs")
        field_coverage.is_money(CHECK, words[2], relaxed.micros, "not the cost of its plan", relative=context.relative)
        if len(words) > 3:
            field_coverage.is_number(CHECK, words[3], kg, "not the carbon of its plan")
    return relaxations


def _kg(context: Context, choice: Choice) -> float | None:
    """kg of CO2 of a configuration; None where unknown."""
    offer_group, nodes = choice.named.offer_group, choice.named.nodes
    kg_per_node_hour, busy = context.rates.kg_per_node_hour(offer_group), choice.busy
    return None if kg_per_node_hour is None else kg_per_node_hour * nodes * busy.up


def _nearest(variants: dict[bool, Context], relaxations: list[tuple[Mark, Choice, Path]]) -> None:
    """Check the nearest plan: the relaxation with the fewest broken requirements, then the lowest cost."""
    context = variants[False]
    field_coverage = context.field_coverage
    if not field_coverage.is_there(CHECK, ("nearest_plan",), bool(relaxations), "not whether there is a relaxation"):
        return
    mark, best, _ = min(relaxations, key=lambda one: (len(one[0]), one[1].micros))
    nearest = choice(variants.get(PRECISION in mark, context), ("nearest_plan",), requirements=False)
    if nearest is not None:
        same = nearest.micros == best.micros and nearest.clock.confident == best.clock.confident
        field_coverage.is_true(
            CHECK,
            ("nearest_plan", "cost_usd"),
            same,
            best.micros / 1e6,
            "another relaxation breaks fewer requirements or costs less",
        )
    count = field_coverage.size("nearest_plan", "breaks")
    names = [field_coverage.text("nearest_plan", "breaks", i) for i in range(count)]
    field_coverage.tick(CHECK, *(("nearest_plan", "breaks", i) for i in range(count)))
    field_coverage.is_true(
        CHECK, ("nearest_plan", "breaks"), names == _ordered(mark), _ordered(mark), "not what it breaks"
    )
