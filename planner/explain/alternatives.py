"""Alternatives to a plan: the best of each provider, price kind and accelerator vendor, the fastest, the cheapest."""

from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.model.offer import Offer
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.planner.candidates.candidate_set import Candidates, candidates, over
from gpuplan.planner.candidates.configuration_choice import cheapest, cost_micros, first_least, in_words
from gpuplan.planner.candidates.configurations import Configurations
from gpuplan.planner.candidates.job_requirements import BIT
from gpuplan.planner.candidates.markets import Market
from gpuplan.planner.candidates.planning_problem import Question
from gpuplan.planner.model.frameworks import framework_of_stack, runs_on
from gpuplan.planner.model.outcome import Choice, CommitmentOffer, FrameworkChoice, LabelledChoice


def cheaper_with_another_framework(question: Question, cost_micros: int) -> FrameworkChoice | None:
    """The cheapest configuration on machines that only code for another framework uses, if it costs less than the plan.

    None for jobs that name accelerators or vendors, which have chosen, for other objectives than cost, and for running
    jobs, which cannot change their framework. It stays on one configuration.
    """
    job = question.job
    chosen = job.constraints.accelerators or job.constraints.vendors
    if job.training.framework == "any" or chosen or job.objective != "cost" or question.origin is not None:
        return None
    excluded = {chip.vendor for chip in accelerators().values() if not runs_on(job.training.framework, chip.stack)}
    other = replace(
        job,
        training=replace(job.training, framework="any"),
        constraints=replace(job.constraints, vendors=tuple(sorted(excluded))),
    )
    other_candidates = candidates(replace(question, job=other))
    rented = [number for number, market in enumerate(question.markets) if not market.owned]
    table = other_candidates.table
    fits = over(table, job.deadline_hours, job.budget_usd) == 0
    index = cheapest(table, fits & np.isin(table.market, rented))
    if index is None:
        return None
    choice = in_words(other_candidates, table, index)
    if choice.cost.expected >= cost_micros:
        return None
    framework = framework_of_stack(accelerators()[choice.accelerator].stack)
    return FrameworkChoice(framework=framework, choice=choice, extra=choice.cost.expected - cost_micros)


Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def alternatives(
    candidates: Candidates, front: Ints, late_or_dear: NDArray[np.uint32], micros: int, *, moves: bool
) -> tuple[LabelledChoice, ...]:
    """One configuration per label; if none of a label meets deadline and budget, its fastest, marked as not meeting them.

    `front` is the frontier of cost and hours over the table, fastest first; `late_or_dear` has the requirement bits that
    each configuration breaks; `micros` is the cost of the plan. If the plan `moves` between configurations, the first
    alternative is the best that stays on one.
    """
    table, feasible = candidates.table, late_or_dear == 0
    # A configuration that is no slower and no dearer than a feasible one is feasible too. So the ends of the feasible part
    # of the frontier are the fastest and the cheapest feasible configurations.
    within = front[feasible[front]]
    picks: list[tuple[str, int | None]] = []
    if moves:
        picks.append(("without a move", _at(within, -1) if len(within) else _at(front, 0)))
    if candidates.question.job.objective != "cost":
        picks.append(("least cost", _at(within, -1)))
    picks.append(("fastest within the requirements", _at(within, 0)))
    picks.append(("cheapest at any speed", _at(front, -1)))
    by_cost = cost_micros(table), table.cost_breakdown.hours_at_confidence
    picks += [(label, _best_of(group, feasible, *by_cost)) for label, group in _groups(candidates, table)]
    choices = {
        index: in_words(candidates, table, index) for index in {index for _, index in picks if index is not None}
    }
    return tuple(
        _compared(label, choices[index], micros, int(late_or_dear[index]))
        for label, index in picks
        if index is not None
    )


def _at(elements: Ints, place: int) -> int | None:
    return int(elements[place]) if len(elements) else None


def _best_of(group: Ints, feasible: Flags, micros: Floats, hours: Floats) -> int:
    """The cheapest feasible configuration of a group, which is not empty; if none is feasible, the fastest."""
    left = group[feasible[group]]
    if len(left):
        return first_least(left, micros, hours)
    return first_least(group, hours, micros)


def _compared(label: str, choice: Choice, micros: int, bits: int) -> LabelledChoice:
    return LabelledChoice(
        label=label,
        choice=choice,
        extra=choice.cost.expected - micros,
        meets_deadline=not bits & int(BIT["deadline"]),
        meets_budget=not bits & int(BIT["budget_usd"]),
    )


def _groups(candidates: Candidates, table: Configurations) -> list[tuple[str, Ints]]:
    """Label and configurations of each provider, price kind and accelerator vendor that occurs."""
    markets = candidates.question.markets
    names = _names(tuple(market.columns for market in markets))
    vendors = _vendor_names()
    provider, kind, vendor = np.empty((3, len(table)), np.int32)
    for number, market in enumerate(markets):
        mine = slice(None) if len(markets) == 1 else np.flatnonzero(table.market == number)
        place = table.place[mine]
        provider[mine] = _owners(market.columns, names)[market.snapshot.region_index[place]]
        kind[mine] = market.snapshot.kind_index[place]
        vendor[mine] = _vendors_of_types(market.columns)[market.snapshot.type_index[place]]
    kinds = markets[0].columns.kinds
    groups = [(f"best on {names[i]}", np.flatnonzero(provider == i)) for i in _occurring(provider)]
    groups += [(f"best {kinds[i]}", np.flatnonzero(kind == i)) for i in _occurring(kind)]
    return groups + [(f"best on {vendors[i]} accelerators", np.flatnonzero(vendor == i)) for i in _occurring(vendor)]


def _names(markets: tuple[Columns, ...]) -> tuple[str, ...]:
    """The providers of all markets, in alphabetical order."""
    return tuple(sorted({provider for columns in markets for provider, _ in columns.regions}))


def _vendor_names() -> tuple[str, ...]:
    """The vendors of the accelerator table, in alphabetical order."""
    return tuple(sorted({accelerator.vendor for accelerator in accelerators().values()}))


@lru_cache(maxsize=8)
def _vendors_of_types(columns: Columns) -> NDArray[np.int32]:
    """The vendor of each instance type's accelerator, as an index into the vendor names."""
    names = _vendor_names()
    return np.array(
        [names.index(accelerators()[instance_type.accelerator].vendor) for instance_type in columns.instance_types],
        np.int32,
    )


def _occurring(values: NDArray[np.int32]) -> list[int]:
    """The values that occur, ascending; none is negative."""
    return [int(value) for value in np.flatnonzero(np.bincount(values))]


@lru_cache(maxsize=8)
def _owners(columns: Columns, names: tuple[str, ...]) -> NDArray[np.int32]:
    """The provider of each region of a snapshot, as an index into the names."""
    return np.array([names.index(name) for name, _ in columns.regions], np.int32)


def commitments(market: Market, chosen: Choice) -> tuple[CommitmentOffer, ...]:
    """The chosen machine in the chosen region under each price kind with a term, cheapest obligation first."""
    columns, kind = market.columns, chosen.instance_type
    numbers = (number for number, other in enumerate(columns.instance_types) if other.name == kind.name)
    number = next((number for number in numbers if columns.instance_types[number] == kind), None)
    if number is None:
        return ()
    commitments_by_term = []
    for offer in _with_a_term(columns, number, chosen.offer.region):
        hours = price_kinds()[offer.price_kind].term_hours
        obligation = chosen.nodes * offer.usd_micros_per_hour * hours
        plain = max(1, chosen.nodes * chosen.offer.usd_micros_per_hour)
        busy = obligation / plain
        pays_off = busy if busy <= hours else None
        commitments_by_term.append(
            CommitmentOffer(offer=offer, nodes=chosen.nodes, obligation=obligation, break_even_hours=pays_off)
        )
    return tuple(sorted(commitments_by_term, key=lambda commitment: (commitment.obligation, commitment.offer.key)))


def _with_a_term(columns: Columns, type_number: int, region: str) -> tuple[Offer, ...]:
    """The offers of an instance type in a region of its provider under price kinds with a term."""
    place = (columns.instance_types[type_number].provider, region)
    if place not in columns.regions:
        return ()
    region_index = columns.regions.index(place)
    offers = np.flatnonzero(columns.type_index == type_number)
    offers = offers[columns.region_index[offers] == region_index]
    with_a_term = np.array([price_kinds()[name].term_hours > 0 for name in columns.kinds])
    return tuple(columns.offer(i) for i in offers[with_a_term[columns.kind_index[offers]]].tolist())
