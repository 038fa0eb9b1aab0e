"""The report of a refresh as the JSON object that is stored: each provider's rows and failures, and a line for alerting."""

from collections import defaultdict
from collections.abc import Container, Iterable, Sequence
from datetime import datetime, timedelta

from gpuplan.api.schemas.wire_types.refresh import ProviderReport, RegionMessage
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.providers.refresh.refresh_run import Read, Refreshed

#: Rows that were set aside which the stored document keeps: a source that broke sets aside all of its rows every night.
STORED_QUARANTINE = 500
_LONGEST_REASON = 160
_SHOWN_ID = 12


def running(refresh_id: str, started_at: datetime, names: Sequence[str]) -> JsonObject:
    """A refresh that has begun."""
    return {
        "id": refresh_id,
        "status": "running",
        "started_at": started_at.isoformat(),
        "asked": list(names),
    }


def report(
    begun: JsonObject, refreshed: Refreshed, previous_id: str, *, at: datetime, seconds: float, warnings: Sequence[str]
) -> JsonObject:
    """The document of a refresh that `begun` so, whose rows are dated `at`, and that took so many seconds."""
    providers = [provider_report(provider) for provider in refreshed.read]
    document: JsonObject = begun | {
        "status": "done",
        "outcome": refreshed.outcome,
        "started_at": at.isoformat(),
        "finished_at": (at + timedelta(seconds=seconds)).isoformat(),
        "seconds": round(seconds, 3),
        "snapshot_id": refreshed.snapshot.id,
        "previous_snapshot_id": previous_id,
        "providers": providers,
        "quarantined": [
            {"provider": provider.gathered.provider, "region": aside.region, "what": aside.what, "reason": aside.reason}
            for provider in refreshed.read
            for aside in provider.sifted.aside
        ],
        "quarantined_left_out": 0,
        "unknown_accelerators": sorted(
            {name for provider in refreshed.read for name in provider.sifted.unknown_accelerators}
        ),
        "warnings": list(warnings),
        "watches": None,
    }
    document["hints"] = hints(providers)
    document["summary"] = summary(document)
    return document


def with_watches(document: JsonObject, watches: JsonObject | None, warning: str = "") -> JsonObject:
    """The document with what became of watched jobs on its prices; None where `warning` says why they were not looked at."""
    answer = document | {"watches": watches, "warnings": [*document["warnings"], *([warning] if warning else [])]}
    return answer | {"summary": summary(answer)}


def stored(document: JsonObject) -> JsonObject:
    """The document as it is kept."""
    listed = document["quarantined"][:STORED_QUARANTINE]
    return document | {"quarantined": listed, "quarantined_left_out": len(document["quarantined"]) - len(listed)}


def for_watches(document: JsonObject, watch_ids: Container[str]) -> JsonObject:
    """The document with what it says of these watches alone; counts stay those of all."""
    watches = document.get("watches")
    if not watches:
        return document

    def theirs(rows: Sequence[JsonObject]) -> list[JsonObject]:
        return [row for row in rows if row["watch_id"] in watch_ids]

    deliveries = watches["deliveries"] | {"failed": theirs(watches["deliveries"]["failed"])}
    rows = {"told": theirs(watches["told"]), "problems": theirs(watches["problems"]), "deliveries": deliveries}
    return document | {"watches": watches | rows}


def watches_failed(document: JsonObject) -> int:
    """How many messages and plans of watched jobs did not come about."""
    watches = document["watches"]
    return len(watches["deliveries"]["failed"]) + len(watches["problems"]) if watches else 0


def provider_report(read: Read) -> ProviderReport:
    """One provider: its rows now, what changed in them, which regions and calls failed, what is worth knowing."""
    gathered, offers = read.gathered, read.merged.offers
    listed = gathered.listed or ()
    rows = sorted(gathered.rows.items())
    since = [offer.stale_since for offer in offers if offer.stale_since is not None]
    observed = [offer.observed_at for offer in offers]
    return {
        "provider": gathered.provider,
        "outcome": read.outcome,
        "rows": len(offers),
        "new": read.merged.new,
        "vanished": read.merged.vanished,
        "changed": read.merged.changed,
        "quarantined": len(read.sifted.aside),
        "stale": len(since),
        "unconfirmed": read.unconfirmed,
        "stale_since": min(since).isoformat() if since else None,
        "oldest_observed_at": min(observed).isoformat() if observed else None,
        "newest_observed_at": max(observed).isoformat() if observed else None,
        "instance_types": len(read.merged.types),
        "regions": len(listed),
        "regions_read": len(rows),
        "regions_failed": grouped((region, why) for region, why in sorted(gathered.failed.items())),
        "failure": gathered.failure or None,
        "refused": list(read.refused),
        "calls_failed": [
            *of_provider(line for _, region_rows in rows for line in region_rows.provider_failures),
            *grouped((region, line) for region, region_rows in rows for line in region_rows.failures),
        ],
        "notes": [
            *of_provider(line for _, region_rows in rows for line in region_rows.provider_notes),
            *grouped((region, line) for region, region_rows in rows for line in region_rows.notes),
        ],
        "warnings": [*read.warnings, *read.sifted.notes],
    }


def grouped(lines: Iterable[tuple[str, str]]) -> list[RegionMessage]:
    """What was said of regions, each line once with all its regions, the most common first."""
    regions: defaultdict[str, list[str]] = defaultdict(list)
    for region, line in lines:
        regions[line].append(region)
    ranked = sorted(regions.items(), key=lambda item: (-len(item[1]), item[0]))
    return [{"message": line, "regions": list(dict.fromkeys(places))} for line, places in ranked]


def of_provider(lines: Iterable[str]) -> list[RegionMessage]:
    """What was said of the provider as a whole, each line once, of no region."""
    return [{"message": line, "regions": []} for line in dict.fromkeys(lines)]


def hints(providers: Sequence[ProviderReport]) -> list[str]:
    """What to do where a cloud gave nothing while others did."""
    silent = [provider["provider"] for provider in providers if provider["outcome"] == "failed"]
    others = [provider["provider"] for provider in providers if provider["outcome"] != "failed"]
    if not silent or not others:
        return []
    return [f"to leave out {' and '.join(silent)}: gpuplan refresh --provider {','.join(others)}"]


def in_short(document: JsonObject) -> JsonObject:
    """A report without the rows of its sections, for listings."""
    keys = ("id", "status", "outcome", "started_at", "finished_at", "seconds", "snapshot_id", "summary")
    return {key: document[key] for key in keys}


def summary(document: JsonObject) -> str:
    """The line for alerting: outcome, every provider, the snapshot, how long it took."""
    parts = ", ".join(_phrase(provider) for provider in document["providers"])
    snapshot = document["snapshot_id"][:_SHOWN_ID]
    same = " (unchanged)" if document["snapshot_id"] == document["previous_snapshot_id"] else ""
    failed = watches_failed(document)
    watches = f"; {failed:,} of its watch messages and plans failed" if failed else ""
    return f"refresh: {document['outcome']}; {parts}; snapshot {snapshot}{same}{watches}; {_span(document['seconds'])}"


def _phrase(provider: ProviderReport) -> str:
    name = provider["provider"]
    if provider["outcome"] in {"failed", "refused"}:
        since = (provider["newest_observed_at"] or "")[:10]
        stale = f"{name} stale since {since}" if since else f"{name} without rows"
        word = "refused: " if provider["outcome"] == "refused" else ""
        return f"{stale} ({word}{_cut(_reason(provider))})"
    counts = [f"{provider['new']:,} new", f"{provider['vanished']:,} gone", f"{provider['changed']:,} changed"]
    counts += [f"{provider['stale']:,} stale"] if provider["stale"] else []
    counts += [f"{provider['quarantined']:,} quarantined"] if provider["quarantined"] else []
    phrase = f"{name} {provider['rows']:,} rows ({', '.join(counts)})"
    if provider["regions_failed"]:
        failed = provider["regions"] - provider["regions_read"]
        phrase += f", {failed:,} of its {provider['regions']:,} regions failed ({_cut(_reason(provider))})"
    elif provider["calls_failed"]:
        phrase += f", without all calls ({_cut(_reason(provider))})"
    elif provider["unconfirmed"]:
        phrase += f", {provider['unconfirmed']:,} of them not confirmed tonight"
    return phrase


def _reason(provider: ProviderReport) -> str:
    """The first reason why a provider, a region or a call gave nothing."""
    reasons = [provider["failure"], *provider["refused"]]
    reasons += [line["message"] for line in (*provider["regions_failed"], *provider["calls_failed"])]
    first = next((line for line in reasons if line), "no reason given")
    return str(first).removeprefix(f"{provider['provider']}: ")


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_REASON else text[: _LONGEST_REASON - 1] + "…"


def _span(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 600 else f"{seconds / 60:.0f} min"
