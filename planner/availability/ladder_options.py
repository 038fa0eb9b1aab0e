"""Configurations as choices of a capacity ladder, with what a ladder asks of each."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.capacity_answers import CapacityAnswer
from gpuplan.catalog.model.offer import Offer
from gpuplan.planner.availability.capacity_ladder import LadderChoices
from gpuplan.planner.availability.ladder_candidates import last_positions, value_of
from gpuplan.planner.availability.obtainable import Obtainability, is_certain, obtainability
from gpuplan.planner.candidates.candidate_set import Candidates
from gpuplan.planner.candidates.configuration_choice import in_words, offer_of
from gpuplan.planner.candidates.configurations import Configurations
from gpuplan.planner.candidates.live_chances import Shape
from gpuplan.planner.candidates.markets import Market
from gpuplan.planner.model.outcome import Choice

Floats = NDArray[np.float64]
Pool = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderOption:
    """A choice with its objective in millionths, the latest step at which it meets the deadline, and its obtainability.

    `answer` is the cloud's, if the chance comes from one. `in_words` makes the `Choice`: most options are only compared.
    `row` is the configuration in its table; None for the plan itself.
    """

    offer: Offer
    accelerator: str
    value: float
    last_position: int
    place: Obtainability
    nodes: int
    answer: CapacityAnswer | None
    in_words: Callable[[], Choice]
    row: tuple[Configurations, int] | None = None

    @property
    def only(self) -> Configurations | None:
        """A table of only its configuration; None for the plan itself."""
        return None if self.row is None else self.row[0].take(np.array([self.row[1]]))

    @property
    def pool(self) -> Pool:
        """The machine in its place under its price kind: one refusal answers for any number of nodes."""
        offer = self.offer
        return (offer.provider, offer.region, offer.zone, offer.instance_type, offer.price_kind)

    @property
    def shape(self) -> Shape:
        """What a cloud is asked about it."""
        offer = self.offer
        return (offer.provider, offer.region, offer.instance_type, offer.price_kind, self.nodes)

    @property
    def group(self) -> Pool:
        """What has its shortages in common; certain choices have none in common with any other."""
        if self.place.chance >= 1.0:
            return ("certain", *self.pool)
        return (self.offer.provider, self.offer.region, self.accelerator)


def options_of(candidates: Candidates, table: Configurations, rows: NDArray[np.int64]) -> list[LadderOption]:
    """The configurations at these rows of a table."""
    year, live = candidates.question.start.year, candidates.question.live
    position = last_positions(candidates, table, rows)
    value, columns = value_of(candidates, table)[rows], (table.market[rows], table.place[rows], table.nodes[rows])
    options = []
    for i, (row, number, place, nodes) in enumerate(
        zip(rows.tolist(), *(column.tolist() for column in columns), strict=True)
    ):
        market = candidates.question.markets[number]
        offer, instance_type = offer_of(market, place)
        options.append(
            LadderOption(
                offer=offer,
                accelerator=instance_type.accelerator,
                value=float(value[i]),
                last_position=int(position[i]),
                place=obtainability(offer, instance_type, nodes, market=market, year=year, live=live),
                nodes=nodes,
                answer=answered(candidates, market, offer, nodes),
                in_words=partial(in_words, candidates, table, row),
                row=(table, row),
            )
        )
    return options


def arrays_of(options: list[LadderOption]) -> LadderChoices:
    """The options as the arrays that a ladder is solved over."""
    pools, groups = (
        {key: number for number, key in enumerate(dict.fromkeys(keys))}
        for keys in ([option.pool for option in options], [option.group for option in options])
    )
    return LadderChoices(
        value=np.array([option.value for option in options]),
        last_position=np.array([option.last_position for option in options]),
        pool=np.array([pools[option.pool] for option in options]),
        group=np.array([groups[option.group] for option in options]),
        state_chance=np.array([option.place.state_chance for option in options]),
        obtained=np.array([option.place.obtained for option in options]),
    )


def place_of(candidates: Candidates, choice: Choice, nodes: int, market: Market) -> Obtainability:
    """The obtainability of so many nodes of a choice."""
    question = candidates.question
    return obtainability(
        choice.offer, choice.instance_type, nodes, market=market, year=question.start.year, live=question.live
    )


def answered(candidates: Candidates, market: Market, offer: Offer, nodes: int) -> CapacityAnswer | None:
    """The cloud's answer that the chance of so many nodes comes from."""
    live = None if is_certain(market) else candidates.question.live.of(offer, nodes)
    return None if live is None else live.answer
