"""Metrics of a refresh for Prometheus' textfile collector: its outcome, and the age of the prices."""

import os
from datetime import datetime
from pathlib import Path

from gpuplan.api.schemas.refresh_answers import RefreshReport
from gpuplan.catalog.runtime.errors import StoreFailure, UnusableInput
from gpuplan.catalog.runtime.extras import require_extra

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
    """Raises `UnusableInput` before the refresh starts, if the file cannot be written or its library is missing."""
    require_extra("--metrics-file", "prometheus_client")
    if path.is_dir() or not path.absolute().parent.is_dir() or not os.access(path.absolute().parent, os.W_OK):
        message = f"cannot write {str(path)!r}; accepted: a file in an existing, writable directory"
        raise UnusableInput.at("metrics-file", message=message)


def write_metrics(path: Path, report: RefreshReport, last_whole_at: datetime | None) -> None:
    """Write the file atomically. Raises `StoreFailure` if it cannot be written."""
    from prometheus_client import CollectorRegistry, Gauge, write_to_textfile

    registry = CollectorRegistry()

    def gauge(name: str, text: str, *labels: str) -> Gauge:
        return Gauge(name, text, labels, registry=registry)

    finished_at = report.finished_at
    gauge("gpuplan_refresh_finished_timestamp_seconds", "When the last refresh ended").set(finished_at.timestamp())
    gauge("gpuplan_refresh_duration_seconds", "How long the last refresh took").set(report.seconds)
    if last_whole_at is not None:
        whole = gauge("gpuplan_refresh_last_success_timestamp_seconds", "When a refresh last left nothing out")
        whole.set(last_whole_at.timestamp())
    outcome = gauge("gpuplan_refresh_outcome", "1 for the outcome of the last refresh", "outcome")
    for outcome_name in OUTCOMES:
        outcome.labels(outcome_name).set(outcome_name == report.outcome)
    for key, (name, text) in _PER_PROVIDER.items():
        counts = gauge(name, text, "provider")
        for provider in report.providers:
            counts.labels(provider.provider).set(getattr(provider, key))
    fresh = gauge("gpuplan_provider_fresh", "1 if every region and call of the provider answered", "provider")
    ages = gauge("gpuplan_price_age_seconds", "How old prices were when the refresh ended", "provider", "row")
    for provider in report.providers:
        fresh.labels(provider.provider).set(provider.outcome == "whole")
        for row, key in _AGES.items():
            observed_at: datetime | None = getattr(provider, key)
            if observed_at is not None:
                age = (finished_at - observed_at).total_seconds()
                ages.labels(provider.provider, row).set(max(0.0, age))
    try:
        write_to_textfile(str(path), registry)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise StoreFailure(
            f"metrics-file: cannot write {str(path)!r}: {reason}; the refresh itself is stored"
        ) from error
