"""The report of a refresh on terminals of any width."""

from typing import Any

import pytest
from rich.console import Console

from gpuplan.api.cli.sections import print_sections
from gpuplan.api.presentation.refresh import render_refresh

COUNTS = {"rows": 20_123, "new": 19_876, "vanished": 18_765, "changed": 17_654, "quarantined": 1_543, "stale": 16_432}


def report() -> dict[str, Any]:
    """Of a night with figures as wide as they get."""
    provider = COUNTS | {"provider": "azure", "outcome": "partial", "regions": 112, "regions_read": 110}
    provider |= {"failure": None, "refused": [], "regions_failed": [], "calls_failed": [], "notes": [], "warnings": []}
    shared: dict[str, Any] = {
        "quarantined": [],
        "unknown_accelerators": [],
        "warnings": [],
        "hints": [],
        "watches": None,
    }
    return shared | {"providers": [provider]}


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
