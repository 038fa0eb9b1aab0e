"""Where the chances of a plan come from: a cloud's own answer with its time, or the model; and what was not learned."""

from collections import Counter

from gpuplan.api.presentation.text_formatting import plain, when
from gpuplan.planner.model.capacity_ladder import CapacityLadder, ChangingMachines, NextChoice
from gpuplan.planner.model.live_capacity import LiveCapacity

MODELLED = "modelled"


def source_of(part: CapacityLadder | ChangingMachines | NextChoice) -> str:
    """`EC2 GetSpotPlacementScores: 7, asked 2026-11-27 12:00 UTC`, or that the chance of a choice is modelled."""
    source = part.chance_source
    if source is None:
        return MODELLED
    return f"{plain(source.source, limit=60)}: {plain(source.published, limit=60)}, asked {when(source.asked_at)}"


def not_learned(live: LiveCapacity | None) -> list[str]:
    """A line per cloud and reason, with the number of questions that it concerns; empty where nothing was asked.

    What a cloud publishes nothing about comes last.
    """
    if live is None:
        return []
    rows = sorted(live.not_learned, key=lambda row: row.what == "price_kind")
    of_reason = Counter((row.provider, row.reason) for row in rows)
    return [
        f"{provider}: {plain(reason, limit=160)}{f' ({count} questions)' if count > 1 else ''}"
        for (provider, reason), count in of_reason.items()
    ]
