"""An answer that there is no plan: every configuration breaks something, and conflicts and ways out follow from what.

Each configuration is marked with the requirements it breaks. A set of requirements conflicts where every mark holds one
of them; a mark that holds no other mark is a least way out.
"""

import math
from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations

import numpy as np

from planner.job import REQUIREMENTS, TrainingJob
from planner.verify.alternatives import Choice, choice
from planner.verify.context import Context, estimator_of
from planner.verify.counts import counts
from planner.verify.enumeration import Priced, Sweep, names_of
from planner.verify.ledger import Path
from planner.verify.named import second_text
from planner.verify.pairs import in_phases
from planner.verify.survey import Survey, by_carbon, by_cost, by_time, cheapest, fastest, greenest
from planner.verify.wording import asked, needed

CHECK = "infeasibility"
PRECISION = "training.precision"
#: Ways out are looked for on four times the nodes allowed, up to so many, and so many of them are told.
MOST_NODES = 1024
MOST_TOLD = 8

Mark = frozenset[str]


def check_infeasible(context: Context) -> dict[str, object]:
    """Everything that the answer says; what it was held against."""
    ledger, job = context.ledger, context.claim.job
    ledger.is_same("finish", ("start",), second_text(context.claim.start), "not the start of the job")
    most = job.constraints.max_nodes
    sweeps = (each.within(frozenset()) for each in context.enumeration.sweeps(context.open_lots, most))
    fits = next((each.at(0) for each in sweeps if len(each)), None)
    what = "" if fits is None else f"{fits.nodes} x {fits.lot.machine.type.name} in {':'.join(fits.lot.place)}"
    ledger.holds(CHECK, ("conflicts",), fits is None, what, f"{what} meets every requirement")
    phased = None if fits is not None else in_phases(context, _budget_micros(job))
    if phased is not None and phased.cheapest is not None:
        micros, words = phased.cheapest
        why = f"{words} meets every requirement for {micros / 1e6:.2f} USD, in two phases"
        ledger.holds(CHECK, ("conflicts",), False, words, why)
    nodes = max(most, min(MOST_NODES, 4 * most))
    ledger.is_same(CHECK, ("searched_nodes",), nodes, "not how many nodes ways out are looked for on")
    variants = {False: context} | ({True: _at_any_precision(context)} if job.training.precision != "auto" else {})
    ways: dict[Mark, Priced] = {}
    marks: dict[Mark, int] = {}
    for substituted, variant in variants.items():
        _marked(variant, nodes, substituted, ways, marks)
    _conflicts(context, set(marks))
    least = _least_ways(marks)
    told = _relaxations(variants, ways, least)
    _nearest(variants, told)
    counts(context, Survey())
    return {
        "offers": context.shelves.offers,
        "offers_that_can_be_had": sum(lot.size for lot in context.shelves.lots if not lot.reason),
        "configurations": sum(marks.values()),
        "nodes_up_to": nodes,
        "pairs_in_phases_priced_exactly": 0 if phased is None else phased.priced,
        "marks": {
            " + ".join(_ordered(mark)): number for mark, number in sorted(marks.items(), key=lambda one: -one[1])[:8]
        },
    }


def _budget_micros(job: TrainingJob) -> float:
    """What a plan must cost less than to keep the budget; inf without one."""
    return math.inf if job.budget_usd is None else math.floor(job.budget_usd * 1e6 * (1 + 1e-15)) + 1.0


def _at_any_precision(context: Context) -> Context:
    """The same with the precision left to the accelerator."""
    training = replace(context.claim.job.training, precision="auto")
    estimator = estimator_of(context.claim, context.work, training)
    return replace(context, estimator=estimator, enumeration=replace(context.enumeration, estimator=estimator))


def _marked(context: Context, nodes: int, substituted: bool, ways: dict[Mark, Priced], marks: dict[Mark, int]) -> None:
    """Adds every configuration that can be had, on up to so many nodes, to the count and the least of its mark."""
    lots = [lot for lot in context.shelves.lots if not lot.reason]
    for sweep in context.enumeration.sweeps(lots, nodes):
        for bits in np.unique(sweep.broken).tolist():
            alike = sweep.take(sweep.broken == bits)
            mark = sweep.lot.broken | names_of(bits) | ({PRECISION} if substituted else set())
            marks[mark] = marks.get(mark, 0) + len(alike)
            each, known = _first(alike, mark), ways.get(mark)
            if known is None or _asks_less(each, known, mark):
                ways[mark] = each


def _first(alike: Sweep, mark: Mark) -> Priced:
    """The configuration of a sweep that asks for least more, by the order of `_asks_less`."""
    if "constraints.carbon_budget_kg" in mark and not np.isnan(alike.carbon_kg).all():
        alike = alike.take(~np.isnan(alike.carbon_kg))
    if "deadline" in mark:
        return fastest(alike)
    return greenest(alike) if "constraints.carbon_budget_kg" in mark else cheapest(alike)


def _asks_less(each: Priced, other: Priced, mark: Mark) -> bool:
    """Whether a configuration asks for less more of what it breaks: of time, else of carbon, else of money."""
    if "constraints.carbon_budget_kg" in mark and (each.carbon_kg is None) != (other.carbon_kg is None):
        return other.carbon_kg is None
    if "deadline" in mark:
        return by_time(each) < by_time(other)
    if "constraints.carbon_budget_kg" in mark and each.carbon_kg is not None:
        return by_carbon(each) < by_carbon(other)
    return by_cost(each) < by_cost(other)


def _ordered(mark: Iterable[str]) -> list[str]:
    return sorted(mark, key=REQUIREMENTS.index)


def _conflicts(context: Context, marks: set[Mark]) -> None:
    """All minimal sets of stated requirements of which every configuration breaks one; the job itself where none runs."""
    ledger = context.ledger
    stated: list[tuple[str, ...]] = []
    for number in range(ledger.size("conflicts")):
        names = tuple(ledger.text("conflicts", number, i) for i in range(ledger.size("conflicts", number)))
        ledger.tick(CHECK, *(("conflicts", number, i) for i in range(len(names))))
        stated.append(names)
    expected = minimal_hitting_sets(marks, _stated(context.claim.job)) or {("workload",)}
    for number, names in enumerate(stated):
        why = "not a minimal set of requirements of which every configuration breaks one"
        ledger.holds(CHECK, ("conflicts", number), names in expected, sorted(expected), why)
        ledger.holds(CHECK, ("conflicts", number), names not in stated[:number], None, "this conflict stands before")
    missing = sorted(expected - set(stated))
    ledger.holds(CHECK, ("conflicts",), not missing, missing, "conflicts are missing")


def minimal_hitting_sets(marks: set[Mark], requirements: list[str]) -> set[tuple[str, ...]]:
    """Every minimal set of requirements that has one in common with each mark; none if a mark is empty."""
    found: set[tuple[str, ...]] = set()
    if not marks or not all(marks):
        return found
    for size in range(1, len(requirements) + 1):
        for names in combinations(requirements, size):
            if not any(set(smaller) <= set(names) for smaller in found) and all(mark & set(names) for mark in marks):
                found.add(names)
    return found


def _stated(job: TrainingJob) -> list[str]:
    """The requirements that the job states, and those that always bind."""
    asked_for = job.constraints
    lists = ("providers", "accelerators", "vendors", "instance_types", "regions", "geography")
    stated = {f"constraints.{name}": bool(getattr(asked_for, name)) for name in lists} | {
        "constraints.price_kinds": True,
        "constraints.max_nodes": True,
        "constraints.max_accelerators": asked_for.max_accelerators is not None,
        "constraints.carbon_budget_kg": asked_for.carbon_budget_kg is not None,
        "objective": job.objective == "carbon",
        PRECISION: job.training.precision != "auto",
        "deadline": job.deadline_hours is not None,
        "budget_usd": job.budget_usd is not None,
    }
    return [name for name in REQUIREMENTS if stated[name]]


def _least_ways(marks: Iterable[Mark]) -> set[Mark]:
    """Marks that hold no other mark."""
    every = sorted(marks, key=len)
    found: list[Mark] = []
    for mark in every:
        if not any(smaller <= mark for smaller in found):
            found.append(mark)
    return set(found)


def _relaxations(
    variants: dict[bool, Context], ways: dict[Mark, Priced], least: set[Mark]
) -> list[tuple[Mark, Choice, Path]]:
    """Each way out that is told: its plan priced anew, least of its kind, and worded as it should be."""
    context = variants[False]
    ledger, job = context.ledger, context.claim.job
    told: list[tuple[Mark, Choice, Path]] = []
    count = ledger.size("relaxations")
    wanted = min(MOST_TOLD, len(least))
    ledger.holds(CHECK, ("relaxations",), count == wanted, wanted, "not as many least ways out as there are")
    seen: set[Mark] = set()
    for number in range(count):
        path: Path = ("relaxations", number)
        names = ledger.text(*path, "requirement").split(" + ")
        mark = frozenset(names)
        ledger.is_same(
            CHECK, (*path, "requirement"), " + ".join(_ordered(mark & set(REQUIREMENTS))), "not requirements"
        )
        is_least = mark in least and mark not in seen
        ledger.holds(CHECK, (*path, "requirement"), is_least, None, "not a least way out, or told twice")
        seen.add(mark)
        found = choice(variants.get(PRECISION in mark, context), (*path, "plan"), requirements=False)
        words = [(*path, name) for name in ("from", "to", "cost_usd")]
        if ledger.has(*path, "carbon_kg"):
            words.append((*path, "carbon_kg"))
        if found is None or mark not in ways or not mark <= set(REQUIREMENTS):
            ledger.tick(CHECK, *words)
            continue
        told.append((mark, found, (*path, "plan")))
        best, ordered = ways[mark], _ordered(mark)
        kg = _kg(context, found)
        same = abs(found.micros - best.micros) <= 1 + context.relative * best.micros
        same = same and abs(found.clock.kept - best.kept_hours) <= 1e-9 * best.kept_hours
        why = "another configuration asks for less more of these requirements"
        ledger.holds(CHECK, (*path, "plan"), same, f"{best.nodes} x {best.lot.machine.type.name}", why)
        ledger.is_same(CHECK, words[0], "; ".join(asked(job, name) for name in ordered), "not what the job asks for")
        to = "; ".join(needed(name, found.named, found.micros, found.clock.kept, kg) for name in ordered)
        ledger.is_same(CHECK, words[1], to, "not what this configuration needs")
        ledger.is_money(CHECK, words[2], found.micros, "not the cost of its plan", relative=context.relative)
        if len(words) > 3:
            ledger.is_number(CHECK, words[3], kg, "not the carbon of its plan")
    return told


def _kg(context: Context, found: Choice) -> float | None:
    """kg of CO2 of a configuration, None where unknown."""
    lot, nodes = found.named.lot, found.named.nodes
    each, busy = context.rates.kg_per_node_hour(lot), found.busy
    return None if each is None else each * nodes * busy.up


def _nearest(variants: dict[bool, Context], told: list[tuple[Mark, Choice, Path]]) -> None:
    """The way out that breaks least for least."""
    context = variants[False]
    ledger = context.ledger
    if not ledger.is_there(CHECK, ("nearest_plan",), bool(told), "not whether there is a way out"):
        return
    mark, best, _ = min(told, key=lambda one: (len(one[0]), one[1].micros))
    found = choice(variants.get(PRECISION in mark, context), ("nearest_plan",), requirements=False)
    if found is not None:
        same = found.micros == best.micros and found.clock.kept == best.clock.kept
        ledger.holds(
            CHECK, ("nearest_plan", "cost_usd"), same, best.micros / 1e6, "another way out breaks less for less"
        )
    count = ledger.size("nearest_plan", "breaks")
    names = [ledger.text("nearest_plan", "breaks", i) for i in range(count)]
    ledger.tick(CHECK, *(("nearest_plan", "breaks", i) for i in range(count)))
    ledger.holds(CHECK, ("nearest_plan", "breaks"), names == _ordered(mark), _ordered(mark), "not what it breaks")
