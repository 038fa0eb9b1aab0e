"""What people are told of an answer, and hold the next one against: cost, choice, and the offers it rests on."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import numpy as np

from api.render.machines import machines, place
from catalog.columns import Columns

Document = dict[str, Any]
Key = tuple[str, str, str, str, str]

_KEY = ("provider", "region", "zone", "instance_type", "price_kind")


def told_of(answer: Document, at: datetime) -> Document:
    """The part of a plan, or of the answer that there is none, which later answers are compared with.

    `cost_usd`, `hours`, `choice` and `offers` are there for a plan, `conflicts` and `searched_nodes` where there is
    none.
    """
    planned = answer["outcome"] == "planned"
    body = answer["plan"] if planned else answer["infeasible"]
    told = {
        "outcome": answer["outcome"],
        "plan_id": body["id"],
        "snapshot_id": body["snapshot_id"],
        "at": at.isoformat(),
    }
    if not planned:
        return told | {"conflicts": body["conflicts"], "searched_nodes": body["searched_nodes"]}
    return told | {
        "cost_usd": body["cost_usd"]["expected"],
        "hours": body["hours"]["expected"],
        "choice": "; then ".join(f"{machines(phase)} in {place(phase)}" for phase in body["phases"]),
        "offers": [{name: phase[name] for name in _KEY} for phase in body["phases"]],
    }


def offers_gone(told: Document, columns: Columns, *, unverified: bool) -> list[Document]:
    """The offers that the told plan rests on and that nobody can plan on any more; a stale price is still there.

    With `unverified`, an offer counts even if nobody has verified that it can be had.
    """
    return [each for each in told.get("offers", ()) if not _is_there(_key(each), columns, unverified=unverified)]


def _key(offer: Document) -> Key:
    provider, region, zone, instance_type, price_kind = (str(offer[name]) for name in _KEY)
    return provider, region, zone, instance_type, price_kind


def _is_there(key: Key, columns: Columns, *, unverified: bool) -> bool:
    provider, region, zone, instance_type, price_kind = key
    types = _places(columns.instance_types, lambda each: (each.provider, each.name) == (provider, instance_type))
    regions = _places(columns.regions, lambda each: each == (provider, region))
    kinds = _places(columns.kinds, lambda each: each == price_kind)
    if not (types and regions and kinds):
        return False
    found = columns.plannable & (columns.type_index == types[0]) & (columns.region_index == regions[0])
    found &= columns.kind_index == kinds[0]
    if not unverified:
        found &= columns.verified
    return any(columns.offer(int(i)).zone == zone for i in np.flatnonzero(found))


def _places[Row](rows: Iterable[Row], wanted: Any) -> list[int]:
    return [i for i, row in enumerate(rows) if wanted(row)]
