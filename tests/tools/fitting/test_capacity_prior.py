"""The fitted rows of the table of chances are what the public traces give."""

from pathlib import Path

import pytest

from gpuplan.catalog.model.capacity_prior import TABLE, capacity_prior
from gpuplan.catalog.model.data_tables import data_table
from tools.fitting.capacity_prior import fitted, named_traces


@pytest.mark.shared_data
def test_the_fitted_rows_are_what_the_traces_give(shared_data: Path) -> None:
    traces = named_traces(shared_data / "spot" / "cant_be_late_traces")
    assert len(traces) == 16
    values = fitted(traces, capacity_prior().try_minutes)
    rows = {row["name"]: row for row in data_table(TABLE) if row["source"].startswith("fitted")}
    assert set(rows) == set(values)
    for name, (value, low, high) in values.items():
        assert [float(rows[name][column]) for column in ("value", "low", "high")] == pytest.approx(
            [value, low, high], rel=5e-3
        )
