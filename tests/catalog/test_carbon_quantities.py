"""Amounts of CO2 as people write them."""

import pytest

from gpuplan.catalog.parsing.quantities import carbon_kg


@pytest.mark.parametrize(
    ("text", "kg"),
    [
        (500, 500.0),
        ("500", 500.0),
        ("500 kg", 500.0),
        ("2 t", 2000.0),
        ("2t CO2e", 2000.0),
        ("1,500 kgCO2e", 1500.0),
        ("250 g", 0.25),
        ("0.5 tonnes", 500.0),
        ("3 kg co2", 3.0),
    ],
)
def test_an_amount_of_carbon_is_read_in_kg(text: object, kg: float) -> None:
    assert carbon_kg(text) == kg


@pytest.mark.parametrize(
    "text", [0, -1, "0 kg", "-2 t", "2 lb", "nan", "inf", True, None, [], "1e99 t", "", "kg", "1e-12 kg"]
)
def test_what_is_no_amount_of_carbon_is_refused_with_what_would_be(text: object) -> None:
    with pytest.raises(ValueError, match="write kg of CO2 equivalents"):
        carbon_kg(text)
