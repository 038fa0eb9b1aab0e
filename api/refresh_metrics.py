"""A refresh as metrics for Prometheus' textfile collector: how it went, and how old the prices are."""

import os
from datetime import datetime
from pathlib import Path
from typing import Any

from catalog.errors import StoreFailure, UnusableInput

OUTCOMES = ("whole", "partial", "refused", "failed")
_PER_PROVIDER = {
    "rows": ("gpuplan_offers", "Prices in the snapshot"),
    "stale": ("gpuplan_offers_stale", "Prices that the refresh could not confirm"),
    "quarantined": ("gpuplan_rows_quarantined", "Rows that were read and not taken"),
    "new": ("gpuplan_offers_new", "Prices that were not there before"),
    "vanished": ("gpuplan_offers_vanished", "Prices that are no longer there"),
    "changed": ("gpuplan_offers_changed", "Prices that changed"),
}
_AGES = {"newest": "newest_observed_at", "oldest": "oldest_observed_at"}


def check_metrics_file(path: Path) -> None:
    """Raises `UnusableInput` at metrics-file if no such file can be written, before anything is read."""
    if path.is_dir() or not path.absolute().parent.is_dir() or not os.access(path.absolute().parent, os.W_OK):
        message = f"cannot write {str(path)!r}; accepted: a file in a directory that is there and can be written"
        raise UnusableInput.at("metrics-file", message=message)


def write_metrics(path: Path, document: dict[str, Any], last_whole_at: datetime | None) -> None:
    """Writes the file whole or not at all. Raises `StoreFailure` if it cannot be written."""
    from prometheus_client import CollectorRegistry, Gauge, write_to_textfile

    registry = CollectorRegistry()

    def gauge(name: str, text: str, *labels: str) -> Gauge:
        return Gauge(name, text, labels, registry=registry)

    finished_at = datetime.fromisoformat(document["finished_at"])
    gauge("gpuplan_refresh_finished_timestamp_seconds", "When the last refresh ended").set(finished_at.timestamp())
    gauge("gpuplan_refresh_duration_seconds", "How long the last refresh took").set(document["seconds"])
    if last_whole_at is not None:
        whole = gauge("gpuplan_refresh_last_success_timestamp_seconds", "When a refresh last left nothing out")
        whole.set(last_whole_at.timestamp())
    outcome = gauge("gpuplan_refresh_outcome", "1 for the outcome of the last refresh", "outcome")
    for each in OUTCOMES:
        outcome.labels(each).set(each == document["outcome"])
    for key, (name, text) in _PER_PROVIDER.items():
        counts = gauge(name, text, "provider")
        for each in document["providers"]:
            counts.labels(each["provider"]).set(each[key])
    fresh = gauge("gpuplan_provider_fresh", "1 if every region and call of the provider answered", "provider")
    ages = gauge("gpuplan_price_age_seconds", "How old prices were when the refresh ended", "provider", "row")
    for each in document["providers"]:
        fresh.labels(each["provider"]).set(each["outcome"] == "whole")
        for row, key in _AGES.items():
            if each[key]:
                age = (finished_at - datetime.fromisoformat(each[key])).total_seconds()
                ages.labels(each["provider"], row).set(max(0.0, age))
    try:
        write_to_textfile(str(path), registry)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise StoreFailure(
            f"metrics-file: cannot write {str(path)!r}: {reason}; the refresh itself is stored"
        ) from error
