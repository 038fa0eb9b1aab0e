"""The part of an answer that is reported and compared with later answers: cost, choice, and its offers."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import numpy as np

from gpuplan.api.presentation.phrases import machines, place_and_kind
from gpuplan.api.schemas.stored_answers import read_stored
from gpuplan.api.schemas.watch_answers import (
    ReportedConflicts,
    ReportedJob,
    ReportedPlan,
    WatchedOffer,
)
from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.catalog.store.watch_store import Watch
from gpuplan.planner.model.plan import Infeasible, PlanAnswer


def reported_answer_of(answer: PlanAnswer, at: datetime) -> ReportedJob:
    """The part of a plan, or of an infeasible answer, with which later answers are compared."""
    body = answer.body
    if isinstance(body, Infeasible):
        return ReportedConflicts(
            outcome="infeasible",
            plan_id=body.id,
            snapshot_id=body.snapshot_id,
            at=at,
            conflicts=body.conflicts,
            searched_nodes=body.searched_nodes,
        )
    return ReportedPlan(
        outcome="planned",
        plan_id=body.id,
        snapshot_id=body.snapshot_id,
        at=at,
        cost_usd=body.cost_usd.expected,
        hours=body.hours.expected,
        choice="; then ".join(f"{machines(phase)} in {place_and_kind(phase)}" for phase in body.phases),
        offers=tuple(
            WatchedOffer(
                provider=phase.provider,
                region=phase.region,
                zone=phase.zone,
                instance_type=phase.instance_type,
                price_kind=phase.price_kind,
            )
            for phase in body.phases
        ),
    )


def last_reported(watch: Watch) -> ReportedJob:
    """What was last reported of a stored job. Raises `UnusableInput` where this release does not know its form."""
    if watch.last_told["outcome"] == "planned":
        return read_stored(ReportedPlan, watch.last_told)
    return read_stored(ReportedConflicts, watch.last_told)


def offers_gone(reported: ReportedJob, columns: Columns, *, unverified: bool) -> tuple[WatchedOffer, ...]:
    """The offers of the reported plan that plans can no longer use; a stale price still counts as available.

    With `unverified`, offers count even if their availability was never verified.
    """
    offers = (reported.offers or ()) if isinstance(reported, ReportedPlan) else ()
    return tuple(offer for offer in offers if not _is_listed(offer, columns, unverified=unverified))


def _is_listed(offer: WatchedOffer, columns: Columns, *, unverified: bool) -> bool:
    machine = (offer.provider, offer.instance_type)
    types = _places(columns.instance_types, lambda entry: (entry.provider, entry.name) == machine)
    regions = _places(columns.regions, lambda entry: entry == (offer.provider, offer.region))
    kinds = _places(columns.kinds, lambda entry: entry == offer.price_kind)
    if not (types and regions and kinds):
        return False
    matches = columns.plannable & (columns.type_index == types[0]) & (columns.region_index == regions[0])
    matches &= columns.kind_index == kinds[0]
    if not unverified:
        matches &= columns.verified
    return any(columns.offer(int(i)).zone == offer.zone for i in np.flatnonzero(matches))


def _places[Row](rows: Iterable[Row], wanted: Any) -> list[int]:
    return [i for i, row in enumerate(rows) if wanted(row)]
