"""What else could be rented: the best of each provider and price kind, the fastest, the cheapest at any speed, the owned."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from catalog.columns import Columns
from catalog.offer import Offer
from catalog.price_kinds import price_kinds
from planner.answer import Alternative, Choice, Commitment
from planner.candidates.configurations import Configurations
from planner.candidates.gather import Candidates
from planner.candidates.market import Market
from planner.candidates.requirements import BIT
from planner.choice import cost_micros, first_least, in_words
from planner.kept import kept_per_snapshot

Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]


def alternatives(
    found: Candidates, front: Ints, late_or_dear: NDArray[np.uint16], micros: int, *, moves: bool
) -> tuple[Alternative, ...]:
    """One configuration per label; where none of a label meets deadline and budget, its fastest, marked so.

    `front` is the frontier of cost and hours over the table, fastest first, `late_or_dear` has the requirement bits that
    each configuration breaks, `micros` is what the plan costs. Of a plan that `moves` between configurations the first
    alternative is the best that stays on one.
    """
    table, feasible = found.table, late_or_dear == 0
    # What is no slower and no dearer than something feasible is feasible too, so that the frontier has the fastest and
    # the cheapest of the feasible at the ends of its own feasible part.
    within = front[feasible[front]]
    picks: list[tuple[str, int | None]] = []
    if moves:
        picks.append(("without a move", _at(within, -1) if len(within) else _at(front, 0)))
    if found.question.job.objective != "cost":
        picks.append(("least cost", _at(within, -1)))
    picks.append(("fastest within the requirements", _at(within, 0)))
    picks.append(("cheapest at any speed", _at(front, -1)))
    picks += [(label, _best_of(table, group, feasible)) for label, group in _groups(found, table)]
    choices = {index: in_words(found, table, index) for index in {index for _, index in picks if index is not None}}
    return tuple(
        _compared(label, choices[index], micros, int(late_or_dear[index]))
        for label, index in picks
        if index is not None
    )


def _at(elements: Ints, place: int) -> int | None:
    return int(elements[place]) if len(elements) else None


def _best_of(table: Configurations, group: Ints, feasible: Flags) -> int:
    """The cheapest feasible configuration of a group, which is not empty; where none is feasible, the fastest."""
    left, micros, hours = group[feasible[group]], cost_micros(table), table.bill.hours_kept
    if len(left):
        return first_least(left, micros, hours)
    return first_least(group, hours, micros)


def _compared(label: str, choice: Choice, micros: int, bits: int) -> Alternative:
    return Alternative(
        label=label,
        choice=choice,
        extra=choice.cost.expected - micros,
        meets_deadline=not bits & int(BIT["deadline"]),
        meets_budget=not bits & int(BIT["budget_usd"]),
    )


def _groups(found: Candidates, table: Configurations) -> list[tuple[str, Ints]]:
    """Per provider and per price kind that occurs: its label and its configurations."""
    markets = found.question.markets
    names = _names(tuple(market.columns for market in markets))
    provider, kind = np.empty((2, len(table)), np.int32)
    for number, market in enumerate(markets):
        mine = slice(None) if len(markets) == 1 else np.flatnonzero(table.market == number)
        place = table.place[mine]
        provider[mine] = _owners(market.columns, names)[market.snapshot.region_index[place]]
        kind[mine] = market.snapshot.kind_index[place]
    kinds = markets[0].columns.kinds
    groups = [(f"best on {names[i]}", np.flatnonzero(provider == i)) for i in _occurring(provider)]
    return groups + [(f"best {kinds[i]}", np.flatnonzero(kind == i)) for i in _occurring(kind)]


@kept_per_snapshot(1)
def _names(markets: tuple[Columns, ...]) -> tuple[str, ...]:
    """The providers of all markets, in alphabetical order."""
    return tuple(sorted({provider for columns in markets for provider, _ in columns.regions}))


def _occurring(values: NDArray[np.int32]) -> list[int]:
    """The values that occur, rising; none is negative."""
    return [int(each) for each in np.flatnonzero(np.bincount(values))]


@kept_per_snapshot(4)
def _owners(columns: Columns, names: tuple[str, ...]) -> NDArray[np.int32]:
    """The provider of each region of a snapshot, as its place among the names."""
    return np.array([names.index(name) for name, _ in columns.regions], np.int32)


@lru_cache(maxsize=8)
def _type_numbers(columns: Columns) -> dict[tuple[str, str], int]:
    """Instance types by provider and name, which tell them apart."""
    return {(each.provider, each.name): number for number, each in enumerate(columns.instance_types)}


def commitments(market: Market, chosen: Choice) -> tuple[Commitment, ...]:
    """The chosen machine in the chosen place under each kind with a term, cheapest obligation first."""
    columns, kind = market.columns, chosen.instance_type
    number = _type_numbers(columns).get((kind.provider, kind.name))
    if number is None or columns.instance_types[number] != kind:
        return ()
    found = []
    for offer in _with_a_term(columns, number, chosen.offer.region):
        hours = price_kinds()[offer.price_kind].term_hours
        obligation = chosen.nodes * offer.usd_micros_per_hour * hours
        plain = max(1, chosen.nodes * chosen.offer.usd_micros_per_hour)
        busy = obligation / plain
        pays_off = busy if busy <= hours else None
        found.append(Commitment(offer=offer, nodes=chosen.nodes, obligation=obligation, break_even_hours=pays_off))
    return tuple(sorted(found, key=lambda each: (each.obligation, each.offer.key)))


@kept_per_snapshot(1024)
def _with_a_term(columns: Columns, type_number: int, region: str) -> tuple[Offer, ...]:
    """The offers of an instance type in a region of its provider under kinds with a term."""
    place = (columns.instance_types[type_number].provider, region)
    if place not in columns.regions:
        return ()
    some = _every_with_a_term(columns)
    here = (columns.type_index[some] == type_number) & (columns.region_index[some] == columns.regions.index(place))
    return tuple(columns.offer(i) for i in some[here].tolist())


@kept_per_snapshot(1)
def _every_with_a_term(columns: Columns) -> NDArray[np.int64]:
    """The offers under kinds with a term."""
    terms = np.array([price_kinds()[name].term_hours for name in columns.kinds])
    return np.flatnonzero(terms[columns.kind_index] > 0)
