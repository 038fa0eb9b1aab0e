"""What own runs got where they asked for machines: each try is stored, and those of the last days count in live chances.

The chance is that of a Beta distribution: its prior, worth `PRIOR_TRIES` tries, is the cloud's own answer of the moment
where there is one, else the table's; each try of an own run at the same machines and place adds one.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from gpuplan.api.services.capacity_candidates import Candidate, candidate_of
from gpuplan.catalog.model.capacity_answers import CapacityAnswer
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.catalog.snapshots.offer_columns import Columns

#: Tries older than this say nothing about now.
TRIES_FOR = timedelta(days=7)
#: How many tries the chance without own runs is worth. Assumed: after two refusals in a row a chance of 90 % reads 45 %.
PRIOR_TRIES = 2.0
SOURCE = "your own runs"


def with_own_runs(
    answers: Sequence[CapacityAnswer],
    candidates: Sequence[Candidate],
    tries: Iterable[CapacityAnswer],
    columns: Columns,
    now: datetime,
) -> list[CapacityAnswer]:
    """The clouds' answers, with the tries of own runs counted in where there are any about the candidates."""
    asked = set(candidates)
    tried: dict[tuple[Candidate, str], list[CapacityAnswer]] = defaultdict(list)
    for attempt in tries:
        if attempt.asked_at <= now and candidate_of(attempt) in asked:
            tried[candidate_of(attempt), attempt.zone].append(attempt)
    by_place = {(candidate_of(answer), answer.zone): answer for answer in answers}
    adjusted = []
    for (candidate, zone), attempts in tried.items():
        cloud = by_place.get((candidate, zone)) or by_place.get((candidate, ""))
        prior = cloud or replace(
            attempts[-1], probability=_modelled(candidate, columns, now), published="", asked_at=now
        )
        adjusted.append(_with_tries(prior, attempts))
    return [*(answer for place, answer in by_place.items() if place not in tried), *adjusted]


def in_words(attempts: Sequence[CapacityAnswer]) -> str:
    """`refused 3 of 5 times in the last 7 days`."""
    refused = sum(attempt.probability == 0 for attempt in attempts)
    times = "time" if len(attempts) == 1 else "times"
    return f"refused {refused} of {len(attempts)} {times} in the last {TRIES_FOR.days} days"


def _with_tries(prior: CapacityAnswer, attempts: Sequence[CapacityAnswer]) -> CapacityAnswer:
    """The answer with the tries counted in; `prior` is the cloud's, or the table's without anything published."""
    obtained = sum(attempt.probability for attempt in attempts)
    words = in_words(attempts)
    return replace(
        prior,
        zone=attempts[-1].zone,
        probability=(obtained + PRIOR_TRIES * prior.probability) / (len(attempts) + PRIOR_TRIES),
        published=f"{words}; {prior.published}" if prior.published else words,
        source=f"{SOURCE}; {prior.source}" if prior.published else SOURCE,
        modelled=tuple(dict.fromkeys(("probability", *prior.modelled))),
    )


def _modelled(candidate: Candidate, columns: Columns, now: datetime) -> float:
    """The chance by the table, for machines that the snapshot has."""
    from gpuplan.planner.availability.obtainable import modelled_chance

    [instance_type] = (
        row
        for row in columns.instance_types
        if (row.provider, row.name) == (candidate.provider, candidate.instance_type)
    )
    is_spot = price_kinds()[candidate.kind].interruptible
    return modelled_chance(instance_type, candidate.nodes, is_spot=is_spot, year=now.year)
