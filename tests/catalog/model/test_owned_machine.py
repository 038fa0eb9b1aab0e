from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import pytest

from gpuplan.catalog.model.offer import Implausible, InstanceType
from gpuplan.catalog.model.owned_machine import OwnedMachine


def machine(**changes: Any) -> OwnedMachine:
    shape = InstanceType(provider="local", name="rig", accelerator="RTX-3090", accelerator_count=Fraction(2))
    given: dict[str, Any] = {
        "instance_type": shape,
        "region": "lab",
        "machines": 1,
        "usd_per_hour_full": 0.12,
        "power_watts": 900.0,
        "pue": 1.5,
        "usd_per_kwh": 0.4,
    }
    return OwnedMachine(**given | changes)


def test_an_hour_of_power_is_kilowatts_times_pue_times_the_price_of_a_kilowatt_hour() -> None:
    assert machine().usd_per_hour_power == pytest.approx(0.9 * 1.5 * 0.4)


def test_a_machine_without_windows_works_all_the_time() -> None:
    assert machine().elapsed_hours(datetime(2026, 11, 21, tzinfo=UTC), 30, restart_hours=1) == 30


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("machines", 0),
        ("usd_per_hour_full", -1),
        ("power_watts", 0),
        ("pue", 0.9),
        ("usd_per_kwh", 0),
        ("pue", float("nan")),
    ],
)
def test_what_no_machine_is_is_refused_by_name(field: str, value: float) -> None:
    with pytest.raises(Implausible, match=f"rig: {field}"):
        machine(**{field: value})
