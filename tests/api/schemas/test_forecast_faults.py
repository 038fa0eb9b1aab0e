"""Whatever is wrong in a forecast, it is refused by the name of the field, in one line, or it is answered."""

import copy
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.api.schemas.forecast import parse_forecast
from gpuplan.catalog.runtime.errors import UnusableInput

NOW = datetime(2026, 11, 21, tzinfo=UTC)
WHOLE: dict[str, Any] = {
    "name": "lab",
    "horizon_years": 3,
    "discount_rate": "4%",
    "electricity_usd_per_kwh": 0.28,
    "pue": 1.2,
    "life_years": 4,
    "residual_share": "15%",
    "held_until": "2028-01-01T00:00Z",
    "limits": {
        "slots": 4,
        "power_watts": 3600,
        "cooling_watts": 3000,
        "upfront_usd": 20000,
        "machines": 4,
        "ecc": True,
    },
    "machines": ["RTX 4090", "L4"],
    "prices": [{"accelerator": "L4", "usd": 2000, "power_watts": 150, "residual_usd": 300, "life_years": 3}],
    "commitments": ["reserved_1y"],
    "jobs_wait": False,
    "scenarios": {"low": 0.3, "high": 0.7},
    "jobs": [
        {
            "job": {"workload": {"kind": "preset", "model": "resnet-50", "samples": "10M"}},
            "per_month": {"low": 1, "high": 9},
            "growth_per_year": "10%",
        }
    ],
}
BAD: tuple[Any, ...] = (
    -1, -0.001, 0, 1e30, float("nan"), float("inf"), "", "many", "-5%", "300%", [], {}, [None], None, True, "\x00",
    {"low": -1}, ["H1000"], "2020-01-01T00:00Z", "x" * 3000,
)  # fmt: skip


def paths(node: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a document but its root."""
    inner = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [path for key, value in inner for path in [(*at, key), *paths(value, (*at, key))]]


@given(path=st.sampled_from(paths(WHOLE)), bad=st.sampled_from(BAD), drop=st.booleans())
@settings(max_examples=100, deadline=None)
def test_anything_anywhere_is_read_or_refused_in_one_line_that_names_the_field(
    path: tuple[Any, ...], bad: object, drop: bool
) -> None:
    document = copy.deepcopy(WHOLE)
    node = document
    for step in path[:-1]:
        node = node[step]
    if drop:
        del node[path[-1]]
    else:
        node[path[-1]] = bad
    try:
        forecast = parse_forecast(document, now=NOW)
    except UnusableInput as error:
        for fault in error.faults:
            assert fault.field
            assert "\n" not in str(fault.message)
            assert len(fault.message) < 700
            assert "Input should be" not in fault.message
    else:
        assert all(rate >= 0 for job in forecast.jobs for rate in job.runs_per_year)
        assert all(0 <= machine.residual_usd <= machine.usd and machine.life_years > 0 for machine in forecast.machines)
        assert forecast.horizon_years > 0


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        ({"horizon_years": -2}, "horizon_years", "-2"),
        ({"held_until": "2020-01-01T00:00Z"}, "held_until", "not after the start"),
        ({"held_until": "soon"}, "held_until", "soon"),
        ({"limits": {"slots": 1.5}}, "limits.slots", "1.5"),
        ({"limits": {"power_watts": -3600}}, "limits.power_watts", "-3600"),
        ({"limits": {"vendors": ["acme"]}}, "limits.vendors[0]", "acme"),
        ({"prices": [{"accelerator": "L4", "usd": 2000, "life_years": 0}]}, "prices[0].life_years", "0"),
        (
            {"prices": [{"accelerator": "L4", "usd": 100, "residual_usd": 101}]},
            "prices[0].residual_usd",
            "more than usd",
        ),
        ({"scenarios": {"low": -0.5, "high": 1.5}}, "scenarios.low", "-0.5"),
        ({"life_years": 0.00001}, "life_years", "too short"),
        (
            {"horizon_years": 15, "jobs": [WHOLE["jobs"][0] | {"per_month": 80_000, "growth_per_year": "500%"}]},
            "jobs[0].growth_per_year",
            "at the end of the horizon",
        ),
        ({"scenarios": {}}, "scenarios", "0 entries"),
    ],
)
def test_what_contradicts_itself_is_refused_by_name(changes: dict[str, Any], field: str, message: str) -> None:
    with pytest.raises(UnusableInput) as refused:
        parse_forecast({key: value for key, value in WHOLE.items() if key not in changes} | changes, now=NOW)
    faults = {fault.field: fault.message for fault in refused.value.faults}
    assert field in faults
    assert message in faults[field]
