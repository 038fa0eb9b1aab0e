"""What happened to each offer between two snapshots, for people: in one group each, counted and filtered."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

Row = Mapping[str, Any]

#: What may have happened to an offer, and in words.
WHAT = {
    "dearer": "dearer",
    "cheaper": "cheaper",
    "new": "new",
    "gone": "gone",
    "unavailable": "no longer available",
    "available": "available again",
    "stale": "became stale",
    "fresh": "fresh again",
}
#: Those that change what may be planned on; the others say whether a refresh confirmed a price that stayed.
MOVES = ("dearer", "cheaper", "new", "gone", "unavailable", "available")
_SAID = {
    "new": "new",
    "vanished": "gone",
    "became_unavailable": "unavailable",
    "available_again": "available",
    "became_stale": "stale",
    "fresh_again": "fresh",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """The rows that were asked for, in their order, and how many offers of each provider each word is true of.

    `moved` counts the offers of all providers to which one of `MOVES` happened.
    """

    rows: list[Row]
    counts: dict[str, dict[str, int]]
    moved: int

    @property
    def total(self) -> dict[str, int]:
        """How many offers of all providers each word is true of."""
        return {word: sum(each[word] for each in self.counts.values()) for word in WHAT}


def what_happened(row: Row) -> list[str]:
    """Keys of `WHAT` for one row of a diff, as `/v1/snapshots/{id}/diff` gives it; a move comes first."""
    words = [_SAID[word] for word in row["what"] if word in _SAID]
    if "changed" in row["what"]:
        words.insert(0, "dearer" if float(row["usd_per_hour_after"]) > float(row["usd_per_hour_before"]) else "cheaper")
    return words


def changed(rows: Iterable[Row], *, what: str | None = None, instance_type: str | None = None) -> Changed:
    """The rows to which `what` happened (None: any move), of instance types that match a name or a pattern.

    Counts are of all rows. The order is that of the diff: the largest moves of a price first.
    """
    counts: dict[str, Counter[str]] = {}
    kept: list[Row] = []
    moved = 0
    pattern = None if instance_type is None else instance_type.casefold()
    for row in rows:
        words = what_happened(row)
        counts.setdefault(row["provider"], Counter()).update(words)
        is_move = not set(words).isdisjoint(MOVES)
        moved += is_move
        if (what not in words) if what is not None else not is_move:
            continue
        if pattern is not None and not fnmatchcase(row["instance_type"].casefold(), pattern):
            continue
        kept.append({**row, "words": words})
    return Changed(
        rows=kept,
        counts={name: {word: found[word] for word in WHAT} for name, found in sorted(counts.items())},
        moved=moved,
    )


def grouped(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """The rows by what happened first of all to their offers, each in one group, in the order of `WHAT`."""
    found: dict[str, list[Row]] = {word: [] for word in WHAT}
    for row in rows:
        found[what_happened(row)[0]].append(row)
    return {word: each for word, each in found.items() if each}


def by_machine(rows: Iterable[Row]) -> list[list[Row]]:
    """Rows of one machine and price kind together, whatever their place; in the order of the first of each."""
    found: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        found.setdefault((row["provider"], row["instance_type"], row["price_kind"]), []).append(row)
    return list(found.values())
