"""The chance of machines by the answers of the clouds, where they answered about just these machines.

An answer counts for its instance type, region, price kind and number of nodes, and for no other number. One for a zone
counts for offers of that zone; an offer for a whole region has the best of its zones. An answer without a zone counts for
every zone that has none of its own. Machines that cannot start within the time of a try, or without quota, have chance 0.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from gpuplan.catalog.model.capacity_answers import CapacityAnswer, CapacityAnswers
from gpuplan.catalog.model.capacity_prior import capacity_prior
from gpuplan.catalog.model.offer import Offer
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.catalog.parsing.quantities import shown
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.snapshots.offer_columns import Columns

#: Clouds answer for the moment. Scores change within the hour, so that an answer says little about a later day.
MOST_HOURS_FROM_START = 6.0
#: Provider, region, instance type, price kind and number of nodes.
Shape = tuple[str, str, str, str, int]
#: Provider, region and accelerator: what has its shortages in common.
Family = tuple[str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveChance:
    """An answer, and the chance within the time of a try at the job's start that it stands for."""

    answer: CapacityAnswer
    chance: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LiveChances:
    """The answers that a plan is made with, by what they speak of; empty if no cloud was asked.

    `zones` has, per shape, an answer per zone. `best_spot` and `best_other` are the best chances of a family.
    """

    zones: Mapping[Shape, Mapping[str, LiveChance]] = field(default_factory=dict)
    best_spot: Mapping[Family, float] = field(default_factory=dict)
    best_other: Mapping[Family, float] = field(default_factory=dict)

    def of(self, offer: Offer, nodes: int) -> LiveChance | None:
        """The answer that counts for so many nodes of an offer, None without one."""
        shape = (offer.provider, offer.region, offer.instance_type, offer.price_kind, nodes)
        zones = self.zones.get(shape)
        if not zones:
            return None
        if offer.zone:
            return zones.get(offer.zone) or zones.get("")
        return zones.get("") or min(zones.values(), key=lambda live: (-live.chance, live.answer.zone))


#: No cloud was asked.
NOT_ASKED = LiveChances()


def live_chances(given: CapacityAnswers | None, columns: Columns, start: datetime) -> LiveChances:
    """The answers in order, for a job that starts at `start`.

    Raises `UnusableInput` for an answer about a machine, region or price kind that the snapshot does not have, for a second
    one about the same machines and place, and for one of another time than the start.
    """
    if given is None:
        return NOT_ASKED
    accelerator = {(row.provider, row.name): row.accelerator for row in columns.instance_types}
    regions = set(columns.regions)
    by_shape: dict[Shape, dict[str, LiveChance]] = {}
    spot: dict[Family, float] = {}
    other: dict[Family, float] = {}
    for number, answer in enumerate(given.answers):
        machine, place = (answer.provider, answer.instance_type), (answer.provider, answer.region)
        if machine not in accelerator or place not in regions or answer.price_kind not in price_kinds():
            what = " ".join((*place, answer.instance_type, answer.price_kind))
            _refuse(number, "instance_type", f"{shown(what)} is not in the snapshot; leave the answer out")
        if abs((answer.asked_at - start).total_seconds()) > MOST_HOURS_FROM_START * 3600:
            message = f"is more than {MOST_HOURS_FROM_START:g} h from the start of the job; ask again at the start"
            _refuse(number, "asked_at", message)
        zones = by_shape.setdefault((*place, answer.instance_type, answer.price_kind, answer.nodes), {})
        if answer.zone in zones:
            _refuse(number, "zone", "is answered twice for the same machines; keep the newest answer")
        live = LiveChance(answer=answer, chance=_chance_at(answer, start))
        zones[answer.zone] = live
        family, best = (*place, accelerator[machine]), spot if _is_spot(answer) else other
        best[family] = max(best.get(family, 0.0), live.chance)
    return LiveChances(zones=by_shape, best_spot=spot, best_other=other)


def _chance_at(answer: CapacityAnswer, start: datetime) -> float:
    try_ends = start + timedelta(minutes=capacity_prior().try_minutes)
    later = answer.starts_at is not None and answer.starts_at > try_ends
    return 0.0 if later or answer.quota_available is False else answer.probability


def _is_spot(answer: CapacityAnswer) -> bool:
    return price_kinds()[answer.price_kind].interruptible


def _refuse(number: int, name: str, message: str) -> None:
    raise UnusableInput.at("capacity_answers", number, name, message=message)
