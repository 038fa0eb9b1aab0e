"""Watches that wait for capacity: whether a cloud gives machines with the wanted chance at the wanted price.

A watch of this kind has, instead of a job, `{"capacity": {machine, nodes, kind, region, least_chance,
under_usd_per_node_hour}}`. Clouds are asked when it is checked; what they said is compared with what was last reported.
"""

from datetime import datetime

from gpuplan.api.notifications.watch_events import TITLES, CapacityNews, NamedWatch
from gpuplan.api.presentation.capacity import in_one_line
from gpuplan.api.presentation.text_formatting import offer_place
from gpuplan.api.schemas.stored_answers import read_stored
from gpuplan.api.schemas.watch import WatchDocument
from gpuplan.api.schemas.watch_answers import NoCapacityAnswer, ReportedCapacity, ReportedMachines, WantedCapacity
from gpuplan.api.services.live_queries import LiveQueries
from gpuplan.api.services.priced_machines import offers_of, priced_candidates
from gpuplan.catalog.model.capacity_answers import CapacityAnswer
from gpuplan.catalog.model.money import usd_micros
from gpuplan.catalog.model.offer import Offer
from gpuplan.catalog.runtime.errors import ProviderFailure
from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.catalog.store.watch_store import Watch
from gpuplan.planner.serialization.phase_document import usd as usd_of

CAPACITY = "capacity"
DEFAULT_CHANCE = 0.7
#: Each is asked of the clouds in turn, within three seconds.
MOST_CAPACITY_WATCHES = 50


def wanted_of(asked: WatchDocument) -> WantedCapacity:
    """What a request waits for, complete."""
    under = asked.under_usd_per_node_hour
    return WantedCapacity(
        machine=str(asked.machine),
        nodes=asked.nodes or 1,
        kind=asked.kind or "spot",
        region=asked.region,
        least_chance=DEFAULT_CHANCE if asked.least_chance is None else asked.least_chance,
        under_usd_per_node_hour=None if under is None else usd_of(round(under * 1e6)),
    )


def wanted_by(watch: Watch) -> WantedCapacity:
    """What a stored watch for machines waits for. Raises `UnusableInput` where this release does not know its form."""
    return read_stored(WantedCapacity, watch.job[CAPACITY])


def last_answer(watch: Watch) -> ReportedMachines:
    """What was last reported of the machines of a stored watch. Raises `UnusableInput` as `wanted_by` does."""
    if "choice" in watch.last_told:
        return read_stored(ReportedCapacity, watch.last_told)
    return read_stored(NoCapacityAnswer, watch.last_told)


def name_of(wanted: WantedCapacity) -> str:
    """`2 x p5.48xlarge, spot`."""
    return f"{wanted.nodes} x {wanted.machine}, {wanted.kind.replace('_', ' ')}"


def looked_up(queries: LiveQueries, columns: Columns, wanted: WantedCapacity, now: datetime) -> ReportedMachines:
    """What the clouds say now, as a watch reports it: the answer with the best chance among those at the wanted price.

    Raises `UnusableInput` for machines without a price there, and `ProviderFailure` if no cloud answered about any place.
    """
    candidates = priced_candidates(columns, wanted.machine, wanted.nodes, wanted.kind, wanted.region)
    learned = queries.ask(candidates, now=now).learned
    if not learned.answers:
        reasons = dict.fromkeys(f"{row.provider}: {row.reason}" for row in learned.not_learned)
        raise ProviderFailure(f"not learned: {'; '.join(reasons)}")
    offers = [offer for offer in offers_of(columns, wanted.machine) if offer.price_kind == wanted.kind]
    under = wanted.under_usd_per_node_hour
    priced = [(answer, _micros(answer, offers)) for answer in learned.answers]
    within = [
        (answer, micros)
        for answer, micros in priced
        if under is None or (micros is not None and micros <= usd_micros(under))
    ]
    if not within:
        return no_answer(columns, now)
    answer, micros = min(within, key=lambda pair: (-_chance(pair[0]), pair[1] or 0, pair[0].region, pair[0].zone))
    return ReportedCapacity(
        outcome="obtainable" if _chance(answer) >= wanted.least_chance else "not_obtainable",
        snapshot_id=columns.snapshot_id,
        at=now,
        choice=f"{wanted.nodes} x {wanted.machine} in {offer_place(answer)}",
        chance=_chance(answer),
        published=answer.published,
        source=answer.source,
        asked_at=answer.asked_at,
        starts_at=answer.starts_at,
        usd_per_node_hour=None if micros is None else usd_of(micros),
    )


def no_answer(columns: Columns, now: datetime) -> NoCapacityAnswer:
    """The report without an answer that counts: nothing says that the machines can be obtained."""
    return NoCapacityAnswer(outcome="not_obtainable", snapshot_id=columns.snapshot_id, at=now)


def _chance(answer: CapacityAnswer) -> float:
    """The chance of an answer; 0 where the account has no quota for the machines."""
    return 0.0 if answer.quota_available is False else answer.probability


def _micros(answer: CapacityAnswer, offers: list[Offer]) -> int | None:
    """The price per node-hour where the answer is about; None if the snapshot has none there."""
    alike = [
        offer.usd_micros_per_hour
        for offer in offers
        if (offer.provider, offer.region) == (answer.provider, answer.region)
        and (not answer.zone or offer.zone in ("", answer.zone))
    ]
    return min(alike, default=None)


def capacity_news(
    watch: Watch, wanted: WantedCapacity, before: ReportedMachines, after: ReportedMachines
) -> CapacityNews:
    """The news that the machines can be obtained, or no more."""
    return CapacityNews(
        event=after.outcome,
        watch=NamedWatch(id=watch.id, name=watch.name),
        job="",
        snapshot_id=after.snapshot_id,
        plan_id=None,
        before=before,
        after=after,
        summary=f"{watch.name} {TITLES[after.outcome]}: {in_one_line(after, wanted)}.",
        capacity=wanted,
    )
