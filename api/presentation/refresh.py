"""Sections for a refresh: providers, failures, quarantined rows, and the line for alerting."""

from collections.abc import Iterator, Sequence

from gpuplan.api.presentation.sections import Block, Heading, Sections, sections_of
from gpuplan.api.presentation.text_formatting import plain
from gpuplan.api.presentation.text_tables import bullets, heading, listing
from gpuplan.api.presentation.watches import check_lines
from gpuplan.api.schemas.refresh_answers import ProviderReport, RefreshReport, RegionMessage

MOST_QUARANTINED = 20
MOST_LINES = 20
MOST_REGIONS = 4
_TITLES = ("cloud", "outcome", "rows", "new", "vanished", "changed", "quarantined", "stale", "regions")


def render_refresh(report: RefreshReport) -> Sections:
    """The report without its last line, `summary`."""
    return sections_of(*_parts(report))


def _parts(report: RefreshReport) -> Iterator[Block | Heading]:
    providers = report.providers
    yield listing(_TITLES, [_cells(provider) for provider in providers], right=range(2, len(_TITLES)), is_whole=True)
    yield from _section("Failed", [line for provider in providers for line in _failures(provider)])
    yield from _section(
        "Refused", [f"{provider.provider}: {why}" for provider in providers for why in provider.refused]
    )
    warnings = [f"{provider.provider}: {line}" for provider in providers for line in provider.warnings]
    yield from _section("Warnings", [*report.warnings, *warnings])
    yield from _section("Notes", [_of_regions(provider, line) for provider in providers for line in provider.notes])
    unknown = report.unknown_accelerators
    yield from _section("Accelerators missing from the catalogue", [", ".join(unknown)] if unknown else [])
    aside = report.quarantined
    lines = [f"{row.provider} {row.region} {row.what}: {row.reason}" for row in aside]
    yield from _section(f"Quarantined: {len(aside):,}", lines, most=MOST_QUARANTINED, rest="--json shows all")
    yield from _section("Watched jobs", check_lines(report.watches) if report.watches else [])
    yield from _section("Next", report.hints)


def _section(title: str, lines: Sequence[str], *, most: int = MOST_LINES, rest: str = "") -> Iterator[Block | Heading]:
    if not lines:
        return
    yield heading(title)
    remainder = [f"and {len(lines) - most:,} more" + (f"; {rest}" if rest else "")] if len(lines) > most else []
    yield from bullets([*lines[:most], *remainder])


def _cells(provider: ProviderReport) -> tuple[str, ...]:
    return (
        provider.provider,
        provider.outcome,
        f"{provider.rows:,}",
        f"{provider.new:,}",
        f"{provider.vanished:,}",
        f"{provider.changed:,}",
        f"{provider.quarantined:,}",
        f"{provider.stale:,}",
        f"{provider.regions_read:,}/{provider.regions:,}" if provider.regions else "none",
    )


def _failures(provider: ProviderReport) -> Iterator[str]:
    if provider.failure:
        yield f"{provider.provider}: {provider.failure.removeprefix(provider.provider + ': ')}"
    for line in (*provider.regions_failed, *provider.calls_failed):
        yield _of_regions(provider, line)


def _of_regions(provider: ProviderReport, line: RegionMessage) -> str:
    """`aws, 30 regions (af-south-1, ...): message`: provider, regions unless all, and the message."""
    places = line.regions
    if not places:
        return plain(f"{provider.provider}: {line.message.removeprefix(provider.provider + ': ')}")
    if len(places) == provider.regions > 1:
        where = "every region"
    elif len(places) <= MOST_REGIONS:
        where = ", ".join(places)
    else:
        where = f"{len(places):,} regions ({', '.join(places[:MOST_REGIONS])} ...)"
    return plain(f"{provider.provider}, {where}: {line.message}")
