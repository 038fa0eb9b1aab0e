"""What a refresh did, for people: a table of providers, what failed, what was set aside, and the line for alerting."""

from collections.abc import Iterator
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType

from api.render.tables import bullets, heading, listing
from api.render.text import plain
from api.render.watches import check_lines

MOST_QUARANTINED = 20
MOST_LINES = 20
MOST_REGIONS = 4
_ANY_WIDTH = 1_000
_TITLES = ("cloud", "outcome", "rows", "new", "vanished", "changed", "quarantined", "stale", "regions")
_COUNTS = ("rows", "new", "vanished", "changed", "quarantined", "stale")


def render_refresh(document: dict[str, Any]) -> Group:
    """The whole report but for its last line, `summary`."""
    return Group(*_parts(document))


def _parts(document: dict[str, Any]) -> Iterator[RenderableType]:
    providers = document["providers"]
    yield _Counts([_cells(each) for each in providers])
    yield from _section("Failed", [line for each in providers for line in _failures(each)])
    yield from _section("Refused", [f"{each['provider']}: {why}" for each in providers for why in each["refused"]])
    warnings = [f"{each['provider']}: {line}" for each in providers for line in each["warnings"]]
    yield from _section("Warnings", [*document["warnings"], *warnings])
    yield from _section("Notes", [_of_regions(each, line) for each in providers for line in each["notes"]])
    unknown = document["unknown_accelerators"]
    yield from _section("Accelerators that nobody has described yet", [", ".join(unknown)] if unknown else [])
    aside = document["quarantined"]
    lines = [f"{each['provider']} {each['region']} {each['what']}: {each['reason']}" for each in aside]
    yield from _section(f"Quarantined: {len(aside):,}", lines, most=MOST_QUARANTINED, rest="--json shows all")
    yield from _section("Watched jobs", check_lines(document["watches"]) if document["watches"] else [])
    yield from _section("Next", document["hints"])


class _Counts:
    """The table of clouds, or a sentence for each where it does not fit: a figure that is cut off is a wrong one."""

    def __init__(self, rows: list[tuple[str, ...]]) -> None:
        self._rows = rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        table = listing(_TITLES, self._rows, right=range(2, len(_TITLES)))
        if console.measure(table, options=options.update(max_width=_ANY_WIDTH)).maximum <= options.max_width:
            yield table
            return
        for cloud, outcome, *counts in self._rows:
            figures = ", ".join(f"{title} {count}" for title, count in zip(_TITLES[2:], counts, strict=True))
            yield from bullets([f"{cloud}: {outcome}; {figures}"])


def _section(title: str, lines: list[str], *, most: int = MOST_LINES, rest: str = "") -> Iterator[RenderableType]:
    if not lines:
        return
    yield heading(title)
    yield from bullets(lines[:most])
    if len(lines) > most:
        yield from bullets([f"and {len(lines) - most:,} more" + (f"; {rest}" if rest else "")])


def _cells(each: dict[str, Any]) -> tuple[str, ...]:
    counts = (f"{each[key]:,}" for key in _COUNTS)
    regions = f"{each['regions_read']:,}/{each['regions']:,}" if each["regions"] else "none"
    return each["provider"], each["outcome"], *counts, regions


def _failures(each: dict[str, Any]) -> Iterator[str]:
    if each["failure"]:
        yield f"{each['provider']}: {each['failure'].removeprefix(each['provider'] + ': ')}"
    for line in (*each["regions_failed"], *each["calls_failed"]):
        yield _of_regions(each, line)


def _of_regions(each: dict[str, Any], line: dict[str, Any]) -> str:
    """`aws, 30 regions (af-south-1, ...): message`: the provider, where unless everywhere, and what was said there."""
    places = line["regions"]
    if not places:
        return plain(f"{each['provider']}: {line['message'].removeprefix(each['provider'] + ': ')}")
    if len(places) == each["regions"] > 1:
        where = "every region"
    elif len(places) <= MOST_REGIONS:
        where = ", ".join(places)
    else:
        where = f"{len(places):,} regions ({', '.join(places[:MOST_REGIONS])} ...)"
    return plain(f"{each['provider']}, {where}: {line['message']}")
