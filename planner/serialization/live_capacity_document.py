"""The answers of clouds about capacity in a plan, under the hash of what they say."""

import hashlib
import json
from dataclasses import fields

from gpuplan.catalog.model.capacity_answers import CapacityAnswer, CapacityAnswers
from gpuplan.planner.model.capacity_ladder import ChanceSource
from gpuplan.planner.model.live_capacity import LiveAnswer, LiveCapacity, NotLearned
from gpuplan.planner.model.wire import wire


def live_capacity(capacity: CapacityAnswers) -> LiveCapacity:
    """The answers, and what was not learned about getting machines."""
    answers = tuple(
        LiveAnswer(**{field.name: getattr(answer, field.name) for field in fields(LiveAnswer)})
        for answer in capacity.answers
    )
    missing = tuple(
        NotLearned(**{field.name: getattr(row, field.name) for field in fields(NotLearned)})
        for row in capacity.not_learned
        if row.what in ("capacity", "price_kind")
    )
    digest = hashlib.sha256(json.dumps(wire([answers, missing]), sort_keys=True).encode()).hexdigest()
    return LiveCapacity(id=f"capacity-{digest[:20]}", answers=answers, not_learned=missing)


def chance_source(answer: CapacityAnswer | None) -> ChanceSource | None:
    """Where a chance comes from; None: the table of chances."""
    if answer is None:
        return None
    return ChanceSource(published=answer.published, source=answer.source, asked_at=answer.asked_at)
