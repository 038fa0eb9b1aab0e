"""What happened to each offer between two snapshots, for people: in one group each, counted and filtered."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from gpuplan.api.schemas.prices import OfferChangeRow

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
_WORDS = {
    "new": "new",
    "vanished": "gone",
    "became_unavailable": "unavailable",
    "available_again": "available",
    "became_stale": "stale",
    "fresh_again": "fresh",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedOffer:
    """A change, and the keys of `WHAT` that describe it."""

    row: OfferChangeRow
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """The rows that were asked for, in their order, and how many offers of each provider each word is true of.

    `moved` counts the offers of all providers to which one of `MOVES` happened.
    """

    rows: list[ChangedOffer]
    counts: dict[str, dict[str, int]]
    moved: int

    @property
    def total(self) -> dict[str, int]:
        """How many offers of all providers each word is true of."""
        return {word: sum(count[word] for count in self.counts.values()) for word in WHAT}


def what_happened(row: OfferChangeRow) -> list[str]:
    """Keys of `WHAT` for one row of a diff, as `/v1/snapshots/{id}/diff` gives it; a move comes first."""
    words = [_WORDS[word] for word in row.what if word in _WORDS]
    if "changed" in row.what:
        words.insert(0, "dearer" if _usd(row.usd_per_hour_after) > _usd(row.usd_per_hour_before) else "cheaper")
    return words


def changed(rows: Iterable[OfferChangeRow], *, what: str | None = None, instance_type: str | None = None) -> Changed:
    """The rows to which `what` happened (None: any move), of instance types that match a name or a pattern.

    Counts are of all rows. The order is that of the diff: the largest moves of a price first.
    """
    counts: dict[str, Counter[str]] = {}
    selected: list[ChangedOffer] = []
    moved = 0
    pattern = None if instance_type is None else instance_type.casefold()
    for row in rows:
        words = what_happened(row)
        counts.setdefault(row.provider, Counter()).update(words)
        is_move = not set(words).isdisjoint(MOVES)
        moved += is_move
        if (what not in words) if what is not None else not is_move:
            continue
        if pattern is not None and not fnmatchcase(row.instance_type.casefold(), pattern):
            continue
        selected.append(ChangedOffer(row=row, words=tuple(words)))
    return Changed(
        rows=selected,
        counts={name: {word: count[word] for word in WHAT} for name, count in sorted(counts.items())},
        moved=moved,
    )


def grouped(rows: Iterable[OfferChangeRow]) -> dict[str, list[OfferChangeRow]]:
    """The rows by what happened first of all to their offers, each in one group, in the order of `WHAT`."""
    groups: dict[str, list[OfferChangeRow]] = {word: [] for word in WHAT}
    for row in rows:
        groups[what_happened(row)[0]].append(row)
    return {word: group for word, group in groups.items() if group}


def by_machine(rows: Iterable[OfferChangeRow]) -> list[list[OfferChangeRow]]:
    """Rows of one machine and price kind together, whatever their place; in the order of the first of each."""
    groups: dict[tuple[str, ...], list[OfferChangeRow]] = {}
    for row in rows:
        groups.setdefault((row.provider, row.instance_type, row.price_kind), []).append(row)
    return list(groups.values())


def _usd(price: str | None) -> float:
    return 0.0 if price is None else float(price)
