"""Tables of the changes between two snapshots: counts, then dearer, cheaper, new and vanished offers."""

from collections.abc import Iterable, Iterator, Sequence

from gpuplan.api.presentation.text_formatting import located, plain, usd_per_hour, when
from gpuplan.api.presentation.text_tables import aligned
from gpuplan.api.schemas.prices import OfferChangeRow, TypeChangeRow
from gpuplan.api.services.offer_changes import MOVES, WHAT, by_machine, changed, grouped
from gpuplan.api.services.price_history import DiffPage
from gpuplan.catalog.model.price_kinds import price_kinds

#: Most lines of a group without --all: four groups fill a screen.
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
    """The changes as lines: counts, then one table per kind of change, then the instance types.

    A line is a machine and price kind with all its places. Price changes are sorted by size; new and vanished offers
    by number, with the price kinds that jobs use by default first. With `everything` a line is one offer, and offers
    that only became stale or fresh are listed too. The page must hold all rows.
    """
    for word, snapshot in (("From", page.before), ("to", page.after)):
        yield f"{word:<4} {snapshot.id}  {snapshot.source}, read {when(snapshot.observed_at.isoformat())}"
    if not page.total and not page.instance_types:
        yield "\nNothing changed."
        return
    rows = list(page.rows)
    changes = changed(rows)
    yield ""
    if rows:
        titles = ("provider", *WHAT.values())
        counts = [(name, *(f"{count[word]:,}" for word in WHAT)) for name, count in changes.counts.items()]
        if len(counts) > 1:
            counts.append(("all", *(f"{count:,}" for count in changes.total.values())))
        yield from aligned(titles, counts, right=range(1, len(titles)))
    if not changes.moved:
        yield "\nNo price changed, and no offer appeared or vanished."
    for word, offers in grouped(rows).items():
        if word in MOVES or everything:
            yield from _group(word, offers, everything=everything)
    if page.instance_types:
        yield ""
        yield from aligned(("provider", "instance type", "what", "facts"), _types(page.instance_types))


def _group(word: str, offers: list[OfferChangeRow], *, everything: bool) -> Iterator[str]:
    lines: list[list[OfferChangeRow]] = [[row] for row in offers] if everything else by_machine(offers)
    if word not in ("dearer", "cheaper"):
        lines.sort(key=lambda rows: (not price_kinds()[rows[0].price_kind].in_default, -len(rows)))
    shown = lines if everything else lines[:MOST_LINES]
    columns = [number for number, title in enumerate(_TITLES) if title not in _WITHOUT.get(word, ())]
    cells = ([_line(rows)[number] for number in columns] for rows in shown)
    yield f"\n{WHAT[word].capitalize()}: {_offers(len(offers))}"
    yield from aligned([_TITLES[number] for number in columns], cells, right=range(4, len(columns)))
    if left := sum(map(len, lines[len(shown) :])):
        yield f"and {left:,} more {'offer' if left == 1 else 'offers'}; --all lists them"


def _offers(count: int) -> str:
    return f"{count:,} {'offer' if count == 1 else 'offers'}"


def _line(rows: Sequence[OfferChangeRow]) -> tuple[object, ...]:
    first = rows[0]
    place = located(first.region, first.zone)
    return (
        first.provider,
        first.instance_type,
        first.price_kind,
        place if len(rows) == 1 else f"{len(rows):,} places",
        _span([row.usd_per_hour_before for row in rows]),
        _span([row.usd_per_hour_after for row in rows]),
        _percent([row.change_percent for row in rows]),
    )


def _span(prices: Sequence[str | None]) -> str:
    """One price, or the range from lowest to highest; empty if a snapshot has none."""
    values = sorted({float(price) for price in prices if price is not None})
    return " to ".join(usd_per_hour(fromkey) for fromkey in dict.fromkeys(values[:1] + values[-1:]))


def _percent(changes: Sequence[float | None]) -> str:
    values = sorted({change for change in changes if change})
    return " to ".join(f"{fromkey:+,.1f} %" for fromkey in dict.fromkeys(values[:1] + values[-1:]))


def _types(rows: Iterable[TypeChangeRow]) -> Iterator[tuple[object, ...]]:
    for row in rows:
        facts = [f"{name} {_known(old)} -> {_known(new)}" for name, (old, new) in row.fields.items()]
        yield row.provider, row.instance_type, row.what, plain(", ".join(facts))


def _known(value: object) -> object:
    return "unknown" if value is None or value == "" else value
