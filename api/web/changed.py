"""What two snapshots do not say the same of, as the page shows it: what happened to each offer, counted and filtered."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

Row = Mapping[str, Any]

#: What may have happened to an offer, and in words.
WHAT = {
    "cheaper": "cheaper",
    "dearer": "dearer",
    "new": "new",
    "gone": "gone",
    "stale": "became stale",
    "fresh": "fresh again",
}
_SAID = {"new": "new", "vanished": "gone", "became_stale": "stale", "fresh_again": "fresh"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """The rows that were asked for, in their order, and how many offers of each provider each word is true of."""

    rows: list[Row]
    counts: dict[str, dict[str, int]]

    @property
    def total(self) -> dict[str, int]:
        """How many offers of all providers each word is true of."""
        return {word: sum(each[word] for each in self.counts.values()) for word in WHAT}


def what_happened(row: Row) -> list[str]:
    """Keys of `WHAT` for one row of a diff, as `/v1/snapshots/{id}/diff` gives it."""
    words = [_SAID[word] for word in row["what"] if word in _SAID]
    if "changed" in row["what"]:
        words.insert(0, "dearer" if float(row["usd_per_hour_after"]) > float(row["usd_per_hour_before"]) else "cheaper")
    return words


def changed(rows: Iterable[Row], *, what: str | None = None, instance_type: str | None = None) -> Changed:
    """The rows to which `what` happened, of instance types that match a name or a pattern; counts are of all rows.

    The order is that of the diff: the largest moves of a price first.
    """
    counts: dict[str, Counter[str]] = {}
    kept: list[Row] = []
    pattern = None if instance_type is None else instance_type.casefold()
    for row in rows:
        words = what_happened(row)
        counts.setdefault(row["provider"], Counter()).update(words)
        if what is not None and what not in words:
            continue
        if pattern is not None and not fnmatchcase(row["instance_type"].casefold(), pattern):
            continue
        kept.append({**row, "words": words})
    return Changed(
        rows=kept, counts={name: {word: found[word] for word in WHAT} for name, found in sorted(counts.items())}
    )
