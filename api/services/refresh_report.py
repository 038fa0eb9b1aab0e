"""The report of a refresh: each provider's rows and failures, and a line for alerting."""

from collections import defaultdict
from collections.abc import Container, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from gpuplan.api.schemas.refresh_answers import (
    ProviderReport,
    Quarantined,
    RefreshReport,
    RefreshWithoutReport,
    RegionMessage,
)
from gpuplan.api.schemas.watch_answers import FailedDelivery, WatchChange, WatchCheck, WatchProblem
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.planner.model.wire import wire
from gpuplan.providers.refresh.refresh_run import Read, Refreshed

#: Rows that were set aside which the stored document keeps: a source that broke sets aside all of its rows every night.
STORED_QUARANTINE = 500
_LONGEST_REASON = 160
_SHOWN_ID = 12


def running(refresh_id: str, started_at: datetime, names: Sequence[str]) -> RefreshWithoutReport:
    """A refresh that has begun."""
    return RefreshWithoutReport(id=refresh_id, status="running", started_at=started_at, asked=tuple(names))


def report(
    begun: RefreshWithoutReport,
    refreshed: Refreshed,
    previous_id: str,
    *,
    at: datetime,
    seconds: float,
    warnings: Sequence[str],
) -> RefreshReport:
    """The report of a refresh that `begun` so, whose rows are dated `at`, and that took so many seconds."""
    providers = tuple(map(provider_report, refreshed.read))
    return _summarized(
        RefreshReport(
            id=begun.id,
            status="done",
            started_at=at,
            asked=begun.asked,
            outcome=refreshed.outcome,
            finished_at=at + timedelta(seconds=seconds),
            seconds=round(seconds, 3),
            snapshot_id=refreshed.snapshot.id,
            previous_snapshot_id=previous_id,
            providers=providers,
            quarantined=tuple(
                Quarantined(
                    provider=provider.gathered.provider, region=aside.region, what=aside.what, reason=aside.reason
                )
                for provider in refreshed.read
                for aside in provider.sifted.aside
            ),
            quarantined_left_out=0,
            unknown_accelerators=tuple(
                sorted({name for provider in refreshed.read for name in provider.sifted.unknown_accelerators})
            ),
            hints=_hints(providers),
            warnings=tuple(warnings),
            watches=None,
            summary="",
        )
    )


def with_watches(answer: RefreshReport, watches: WatchCheck | None, warning: str = "") -> RefreshReport:
    """The report with what became of watched jobs on its prices; None where `warning` says why they were not checked."""
    warnings = (*answer.warnings, *([warning] if warning else []))
    return _summarized(replace(answer, watches=watches, warnings=warnings))


def stored(answer: RefreshReport) -> JsonObject:
    """The report as it is kept."""
    left_out = max(0, len(answer.quarantined) - STORED_QUARANTINE)
    cut = replace(answer, quarantined=answer.quarantined[:STORED_QUARANTINE], quarantined_left_out=left_out)
    document: JsonObject = wire(cut)
    return document


def for_watches(answer: RefreshReport, watch_ids: Container[str]) -> RefreshReport:
    """The report with what it says of these watches alone; counts stay those of all."""
    check = answer.watches
    if check is None:
        return answer

    def theirs[Row: WatchChange | WatchProblem | FailedDelivery](rows: Sequence[Row]) -> tuple[Row, ...]:
        return tuple(row for row in rows if row.watch_id in watch_ids)

    deliveries = replace(check.deliveries, failed=theirs(check.deliveries.failed))
    shown = replace(check, told=theirs(check.told), problems=theirs(check.problems), deliveries=deliveries)
    return replace(answer, watches=shown)


def watches_failed(answer: RefreshReport) -> int:
    """How many messages and plans of watched jobs did not come about."""
    return 0 if answer.watches is None else answer.watches.failures


def provider_report(read: Read) -> ProviderReport:
    """One provider: its rows now, what changed in them, which regions and calls failed, what is worth knowing."""
    gathered, offers = read.gathered, read.merged.offers
    listed = gathered.listed or ()
    rows = sorted(gathered.rows.items())
    since = [offer.stale_since for offer in offers if offer.stale_since is not None]
    observed = [offer.observed_at for offer in offers]
    return ProviderReport(
        provider=gathered.provider,
        outcome=read.outcome,
        rows=len(offers),
        new=read.merged.new,
        vanished=read.merged.vanished,
        changed=read.merged.changed,
        quarantined=len(read.sifted.aside),
        stale=len(since),
        unconfirmed=read.unconfirmed,
        stale_since=min(since) if since else None,
        oldest_observed_at=min(observed) if observed else None,
        newest_observed_at=max(observed) if observed else None,
        instance_types=len(read.merged.types),
        regions=len(listed),
        regions_read=len(rows),
        regions_failed=grouped((region, why) for region, why in sorted(gathered.failed.items())),
        failure=gathered.failure or None,
        refused=read.refused,
        calls_failed=(
            *of_provider(line for _, region_rows in rows for line in region_rows.provider_failures),
            *grouped((region, line) for region, region_rows in rows for line in region_rows.failures),
        ),
        notes=(
            *of_provider(line for _, region_rows in rows for line in region_rows.provider_notes),
            *grouped((region, line) for region, region_rows in rows for line in region_rows.notes),
        ),
        warnings=(*read.warnings, *read.sifted.notes),
    )


def grouped(lines: Iterable[tuple[str, str]]) -> tuple[RegionMessage, ...]:
    """What was said of regions, each line once with all its regions, the most common first."""
    regions: defaultdict[str, list[str]] = defaultdict(list)
    for region, line in lines:
        regions[line].append(region)
    ranked = sorted(regions.items(), key=lambda item: (-len(item[1]), item[0]))
    return tuple(RegionMessage(message=line, regions=tuple(dict.fromkeys(places))) for line, places in ranked)


def of_provider(lines: Iterable[str]) -> tuple[RegionMessage, ...]:
    """What was said of the provider as a whole, each line once, of no region."""
    return tuple(RegionMessage(message=line, regions=()) for line in dict.fromkeys(lines))


def _hints(providers: Sequence[ProviderReport]) -> tuple[str, ...]:
    """What to do where a cloud gave nothing while others did."""
    silent = [provider.provider for provider in providers if provider.outcome == "failed"]
    others = [provider.provider for provider in providers if provider.outcome != "failed"]
    if not silent or not others:
        return ()
    return (f"to leave out {' and '.join(silent)}: gpuplan refresh --provider {','.join(others)}",)


def _summarized(answer: RefreshReport) -> RefreshReport:
    """The report with the line for alerting: outcome, every provider, the snapshot, how long it took."""
    parts = ", ".join(_phrase(provider) for provider in answer.providers)
    snapshot = answer.snapshot_id[:_SHOWN_ID]
    same = " (unchanged)" if answer.snapshot_id == answer.previous_snapshot_id else ""
    failed = watches_failed(answer)
    watches = f"; {failed:,} of its watch messages and plans failed" if failed else ""
    line = f"refresh: {answer.outcome}; {parts}; snapshot {snapshot}{same}{watches}; {_span(answer.seconds)}"
    return replace(answer, summary=line)


def _phrase(provider: ProviderReport) -> str:
    name = provider.provider
    if provider.outcome in {"failed", "refused"}:
        since = provider.newest_observed_at
        stale = f"{name} without rows" if since is None else f"{name} stale since {since:%Y-%m-%d}"
        word = "refused: " if provider.outcome == "refused" else ""
        return f"{stale} ({word}{_cut(_reason(provider))})"
    counts = [f"{provider.new:,} new", f"{provider.vanished:,} gone", f"{provider.changed:,} changed"]
    counts += [f"{provider.stale:,} stale"] if provider.stale else []
    counts += [f"{provider.quarantined:,} quarantined"] if provider.quarantined else []
    phrase = f"{name} {provider.rows:,} rows ({', '.join(counts)})"
    if provider.regions_failed:
        failed = provider.regions - provider.regions_read
        phrase += f", {failed:,} of its {provider.regions:,} regions failed ({_cut(_reason(provider))})"
    elif provider.calls_failed:
        phrase += f", without all calls ({_cut(_reason(provider))})"
    elif provider.unconfirmed:
        phrase += f", {provider.unconfirmed:,} of them not confirmed tonight"
    return phrase


def _reason(provider: ProviderReport) -> str:
    """The first reason why a provider, a region or a call gave nothing."""
    reasons = [provider.failure, *provider.refused]
    reasons += [line.message for line in (*provider.regions_failed, *provider.calls_failed)]
    first = next((line for line in reasons if line), "no reason given")
    return str(first).removeprefix(f"{provider.provider}: ")


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_REASON else text[: _LONGEST_REASON - 1] + "…"


def _span(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 600 else f"{seconds / 60:.0f} min"
