"""Watches that wait for capacity: whether a cloud gives machines with the wanted chance at the wanted price.

A watch of this kind has, instead of a job, `{"capacity": {machine, nodes, kind, region, least_chance,
under_usd_per_node_hour}}`. Clouds are asked when it is checked; what they said is compared with what was last reported.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from gpuplan.api.notifications.watch_events import NOT_OBTAINABLE, OBTAINABLE, TITLES
from gpuplan.api.presentation.text_formatting import offer_place
from gpuplan.api.presentation.watched_capacity import in_one_line
from gpuplan.api.schemas.watch import WatchDocument
from gpuplan.api.services.live_queries import LiveQueries
from gpuplan.api.services.priced_machines import offers_of, priced_candidates
from gpuplan.catalog.model.capacity_answers import CapacityAnswer
from gpuplan.catalog.model.money import usd_micros, usd_text
from gpuplan.catalog.model.offer import Offer
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.runtime.errors import ProviderFailure
from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.catalog.store.stored_watches import Watch
from gpuplan.planner.model.wire import wire

CAPACITY = "capacity"
DEFAULT_CHANCE = 0.7
#: Each is asked of the clouds in turn, within three seconds.
MOST_CAPACITY_WATCHES = 50


def wanted_of(asked: WatchDocument) -> JsonObject:
    """What a request waits for, complete."""
    under = asked.under_usd_per_node_hour
    return {
        "machine": asked.machine,
        "nodes": asked.nodes or 1,
        "kind": asked.kind or "spot",
        "region": list(asked.region),
        "least_chance": DEFAULT_CHANCE if asked.least_chance is None else asked.least_chance,
        "under_usd_per_node_hour": None if under is None else usd_text(round(under * 1e6)),
    }


def name_of(wanted: Mapping[str, Any]) -> str:
    """`2 x p5.48xlarge, spot`."""
    return f"{wanted['nodes']} x {wanted['machine']}, {wanted['kind'].replace('_', ' ')}"


def looked_up(queries: LiveQueries, columns: Columns, wanted: Mapping[str, Any], now: datetime) -> JsonObject:
    """What the clouds say now, as a watch reports it: the answer with the best chance among those at the wanted price.

    Raises `UnusableInput` for machines without a price there, and `ProviderFailure` if no cloud answered about any place.
    """
    machine, nodes, kind = wanted["machine"], wanted["nodes"], wanted["kind"]
    candidates = priced_candidates(columns, machine, nodes, kind, wanted["region"])
    learned = queries.ask(candidates, now=now).learned
    if not learned.answers:
        reasons = dict.fromkeys(f"{row.provider}: {row.reason}" for row in learned.not_learned)
        raise ProviderFailure(f"not learned: {'; '.join(reasons)}")
    offers = [offer for offer in offers_of(columns, machine) if offer.price_kind == kind]
    under = wanted["under_usd_per_node_hour"]
    priced = [(answer, _micros(answer, offers)) for answer in learned.answers]
    within = [
        (answer, micros)
        for answer, micros in priced
        if under is None or (micros is not None and micros <= usd_micros(under))
    ]
    reported = nothing_learned(columns, now)
    if not within:
        return reported
    answer, micros = min(within, key=lambda pair: (-_chance(pair[0]), pair[1] or 0, pair[0].region, pair[0].zone))
    if _chance(answer) >= wanted["least_chance"]:
        reported["outcome"] = OBTAINABLE
    return reported | {
        "choice": f"{nodes} x {machine} in {offer_place(wire(answer))}",
        "chance": _chance(answer),
        "published": answer.published,
        "source": answer.source,
        "asked_at": answer.asked_at.isoformat(),
        "starts_at": None if answer.starts_at is None else answer.starts_at.isoformat(),
        "usd_per_node_hour": None if micros is None else usd_text(micros),
    }


def nothing_learned(columns: Columns, now: datetime) -> JsonObject:
    """The report without an answer that counts: nothing says that the machines can be obtained."""
    return {"outcome": NOT_OBTAINABLE, "snapshot_id": columns.snapshot_id, "at": now.isoformat()}


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


def capacity_message(watch: Watch, before: Mapping[str, Any], after: Mapping[str, Any], *, at: str) -> JsonObject:
    """The outgoing message: `{"type": "watch.obtainable", "timestamp": ..., "data": {...}}`, without any secret."""
    event = after["outcome"]
    data = {
        "event": event,
        "watch": {"id": watch.id, "name": watch.name},
        "job": "",
        "snapshot_id": after["snapshot_id"],
        "plan_id": None,
        "capacity": dict(watch.job[CAPACITY]),
        "before": dict(before),
        "after": dict(after),
        "summary": f"{watch.name} {TITLES[event]}: {in_one_line(after, watch.job[CAPACITY])}.",
    }
    return {"type": f"watch.{event}", "timestamp": at, "data": data}
