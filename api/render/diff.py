"""What changed between two snapshots as tables: counts, then what got dearer, cheaper, came and went, each by itself."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from api.changed import MOVES, WHAT, Row, by_machine, changed, grouped
from api.history import DiffPage
from api.render.tables import aligned
from api.render.text import located, plain, usd_per_hour, when
from catalog.price_kinds import price_kinds

#: Lines of a group that are shown unless all are asked for: four groups fill a screen.
MOST_LINES = 8
_TITLES = ("provider", "instance type", "kind", "region", "old USD/h", "new USD/h", "change")
_WITHOUT = {
    "new": ("old USD/h", "change"),
    "gone": ("new USD/h", "change"),
    "unavailable": ("old USD/h", "change"),
    "available": ("old USD/h", "change"),
    "stale": ("old USD/h", "change"),
    "fresh": ("old USD/h", "change"),
}


def render_diff(page: DiffPage, *, everything: bool = False) -> Iterator[str]:
    """What changed as lines: counts, then a table for each thing that happened, then the instance types.

    A line is a machine and price kind with all its places: the largest moves of a price first; of what came or went,
    the kinds that jobs are planned on by default, the most offers first. With `everything` a line is an offer, and
    those that only became stale or fresh again are listed too. The page has to hold all rows.
    """
    for word, snapshot in (("From", page.before), ("to", page.after)):
        yield f"{word:<4} {snapshot.id}  {snapshot.source}, read {when(snapshot.observed_at.isoformat())}"
    if not page.total and not page.instance_types:
        yield "\nNothing changed."
        return
    rows = list(page.rows)
    found = changed(rows)
    yield ""
    if rows:
        titles = ("provider", *WHAT.values())
        counts = [(name, *(f"{each[word]:,}" for word in WHAT)) for name, each in found.counts.items()]
        if len(counts) > 1:
            counts.append(("all", *(f"{count:,}" for count in found.total.values())))
        yield from aligned(titles, counts, right=range(1, len(titles)))
    if not found.moved:
        yield "\nNo price changed, and no offer came or went."
    for word, offers in grouped(rows).items():
        if word in MOVES or everything:
            yield from _group(word, offers, everything=everything)
    if page.instance_types:
        yield ""
        yield from aligned(("provider", "instance type", "what", "facts"), _types(page.instance_types))


def _group(word: str, offers: list[Row], *, everything: bool) -> Iterator[str]:
    lines: list[list[Row]] = [[row] for row in offers] if everything else by_machine(offers)
    if word not in ("dearer", "cheaper"):
        lines.sort(key=lambda rows: (not price_kinds()[rows[0]["price_kind"]].in_default, -len(rows)))
    shown = lines if everything else lines[:MOST_LINES]
    columns = [number for number, title in enumerate(_TITLES) if title not in _WITHOUT.get(word, ())]
    cells = ([_line(rows)[number] for number in columns] for rows in shown)
    yield f"\n{WHAT[word].capitalize()}: {_offers(len(offers))}"
    yield from aligned([_TITLES[number] for number in columns], cells, right=range(4, len(columns)))
    if left := sum(map(len, lines[len(shown) :])):
        yield f"and {left:,} more {'offer' if left == 1 else 'offers'}; --all shows each"


def _offers(count: int) -> str:
    return f"{count:,} {'offer' if count == 1 else 'offers'}"


def _line(rows: Sequence[Row]) -> tuple[object, ...]:
    first = rows[0]
    place = located(first["region"], first["zone"])
    return (
        first["provider"],
        first["instance_type"],
        first["price_kind"],
        place if len(rows) == 1 else f"{len(rows):,} places",
        _span([row["usd_per_hour_before"] for row in rows]),
        _span([row["usd_per_hour_after"] for row in rows]),
        _percent([row["change_percent"] for row in rows]),
    )


def _span(prices: Sequence[str | None]) -> str:
    """One price, or from the lowest to the highest; empty where a snapshot has none."""
    found = sorted({float(price) for price in prices if price is not None})
    return " to ".join(usd_per_hour(each) for each in dict.fromkeys(found[:1] + found[-1:]))


def _percent(changes: Sequence[float | None]) -> str:
    found = sorted({each for each in changes if each})
    return " to ".join(f"{each:+,.1f} %" for each in dict.fromkeys(found[:1] + found[-1:]))


def _types(rows: Iterable[dict[str, Any]]) -> Iterator[tuple[object, ...]]:
    for row in rows:
        facts = [f"{name} {_known(old)} -> {_known(new)}" for name, (old, new) in row["fields"].items()]
        yield row["provider"], row["instance_type"], row["what"], plain(", ".join(facts))


def _known(value: object) -> object:
    return "unknown" if value is None or value == "" else value
