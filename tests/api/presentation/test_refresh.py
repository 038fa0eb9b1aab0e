"""The report of a refresh on terminals of any width."""

from datetime import UTC, datetime
from typing import Any

import pytest
from rich.console import Console

from gpuplan.api.cli.sections import print_sections
from gpuplan.api.presentation.refresh import render_refresh
from gpuplan.api.schemas.refresh_answers import ProviderReport, RefreshReport

NIGHT = datetime(2026, 12, 1, tzinfo=UTC)
COUNTS = {"rows": 20_123, "new": 19_876, "vanished": 18_765, "changed": 17_654, "quarantined": 1_543, "stale": 16_432}


def report() -> RefreshReport:
    """Of a night with figures as wide as they get."""
    given: dict[str, Any] = dict.fromkeys(("regions_failed", "refused", "calls_failed", "notes", "warnings"), ())
    given |= COUNTS | dict.fromkeys(("stale_since", "oldest_observed_at", "newest_observed_at"))
    provider = ProviderReport(
        provider="azure",
        outcome="partial",
        regions=112,
        regions_read=110,
        unconfirmed=0,
        instance_types=1,
        failure=None,
        **given,
    )
    return RefreshReport(
        id="refresh-1",
        status="done",
        started_at=NIGHT,
        asked=("azure",),
        outcome="partial",
        finished_at=NIGHT,
        seconds=1.0,
        snapshot_id="s",
        previous_snapshot_id="s",
        providers=(provider,),
        quarantined=(),
        quarantined_left_out=0,
        unknown_accelerators=(),
        hints=(),
        warnings=(),
        watches=None,
        summary="",
    )


def shown(width: int) -> str:
    console = Console(width=width, markup=False)
    with console.capture() as capture:
        print_sections(render_refresh(report()), on=console)
    return capture.get()


def test_a_table_of_usual_figures_fits_80_columns() -> None:
    title, _, row = shown(80).splitlines()
    assert title.split() == ["cloud", "outcome", *COUNTS, "regions"]
    assert row.split() == ["azure", "partial", *(f"{count:,}" for count in COUNTS.values()), "110/112"]


@pytest.mark.parametrize("width", [20, 40, 79])
def test_no_figure_is_cut_off_on_a_narrow_terminal(width: int) -> None:
    text = " ".join(shown(width).split())
    for name, count in COUNTS.items():
        assert f"{name} {count:,}" in text or width == 79
        assert f"{count:,}" in text
