"""The part of an answer that is reported and compared with later answers: cost, choice, and its offers."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import numpy as np

from gpuplan.api.presentation.phrases import machines, place_and_kind
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.planner.model.plan import Infeasible, PlanAnswer
from gpuplan.planner.model.wire import wire

Key = tuple[str, str, str, str, str]

_KEY = ("provider", "region", "zone", "instance_type", "price_kind")


def reported_answer_of(answer: PlanAnswer, at: datetime) -> JsonObject:
    """The part of a plan, or of an infeasible answer, with which later answers are compared.

    A plan has `cost_usd`, `hours`, `choice` and `offers`; an infeasible answer has `conflicts` and `searched_nodes`.
    """
    body = answer.body
    reported = {
        "outcome": answer.outcome,
        "plan_id": body.id,
        "snapshot_id": body.snapshot_id,
        "at": at.isoformat(),
    }
    if isinstance(body, Infeasible):
        return reported | {"conflicts": wire(body.conflicts), "searched_nodes": body.searched_nodes}
    return reported | {
        "cost_usd": wire(body.cost_usd.expected),
        "hours": body.hours.expected,
        "choice": "; then ".join(f"{machines(phase)} in {place_and_kind(phase)}" for phase in body.phases),
        "offers": [{name: getattr(phase, name) for name in _KEY} for phase in body.phases],
    }


def offers_gone(document: JsonObject, columns: Columns, *, unverified: bool) -> list[JsonObject]:
    """The offers of the reported plan that plans can no longer use; a stale price still counts as available.

    With `unverified`, offers count even if their availability was never verified.
    """
    return [
        offer for offer in document.get("offers", ()) if not _is_listed(_key(offer), columns, unverified=unverified)
    ]


def _key(offer: JsonObject) -> Key:
    provider, region, zone, instance_type, price_kind = (str(offer[name]) for name in _KEY)
    return provider, region, zone, instance_type, price_kind


def _is_listed(key: Key, columns: Columns, *, unverified: bool) -> bool:
    provider, region, zone, instance_type, price_kind = key
    types = _places(columns.instance_types, lambda entry: (entry.provider, entry.name) == (provider, instance_type))
    regions = _places(columns.regions, lambda entry: entry == (provider, region))
    kinds = _places(columns.kinds, lambda entry: entry == price_kind)
    if not (types and regions and kinds):
        return False
    matches = columns.plannable & (columns.type_index == types[0]) & (columns.region_index == regions[0])
    matches &= columns.kind_index == kinds[0]
    if not unverified:
        matches &= columns.verified
    return any(columns.offer(int(i)).zone == zone for i in np.flatnonzero(matches))


def _places[Row](rows: Iterable[Row], wanted: Any) -> list[int]:
    return [i for i, row in enumerate(rows) if wanted(row)]
