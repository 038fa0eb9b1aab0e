"""The fitted rows of the table of waits are what the public traces give."""

from dataclasses import fields
from pathlib import Path

import pytest

from gpuplan.catalog.model.capacity_prior import AGE_CLASSES
from gpuplan.catalog.model.data_tables import data_table
from gpuplan.catalog.model.spot_waits import TABLE, spot_waits
from gpuplan.planner.model.settings import PlannerSettings
from tools.fitting.capacity_prior import named_traces
from tools.fitting.spot_waits import fitted_rows


@pytest.mark.shared_data
def test_the_fitted_rows_are_what_the_traces_give(shared_data: Path) -> None:
    values = fitted_rows(named_traces(shared_data / "spot" / "cant_be_late_traces"))
    rows = {(row["name"], row["zones"]): row for row in data_table(TABLE) if row["source"].startswith("fitted")}
    assert set(rows) == set(values)
    for key, figures in values.items():
        stated = [float(rows[key][column]) for column in ("value", "low", "high")]
        assert stated == pytest.approx(list(figures), rel=5e-3)


def test_waits_fall_with_zones_and_rise_with_newer_chips() -> None:
    table = spot_waits()
    by_zones = [table.of_one_node("old", zones) for zones in range(1, table.most_zones + 1)]
    assert by_zones == sorted(by_zones, reverse=True)
    assert table.of_one_node("old", 40) == by_zones[-1]
    by_age = [table.of_one_node(age, 1) for age in AGE_CLASSES]
    assert by_age == sorted(by_age)


def test_settings_take_the_joint_losses_of_the_table() -> None:
    default = next(field.default for field in fields(PlannerSettings) if field.name == "node_loss_exponent")
    assert default == spot_waits().loss_node_exponent
