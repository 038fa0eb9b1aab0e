"""Which prices cannot be."""

from fractions import Fraction

import pytest

from gpuplan.catalog.model.offer import InstanceType
from gpuplan.catalog.model.price_plausibility import price_bounds, usual_prices, why_implausible
from tests.catalog.snapshots_for_tests import TYPES, offer

KINDS = {(item.provider, item.name): item for item in TYPES}
H100 = TYPES[0]


def test_what_an_accelerator_usually_costs_is_the_median_of_whole_on_demand_prices() -> None:
    rows = [offer(usd, region=str(usd)) for usd in (80_000_000, 96_000_000, 200_000_000)]
    apart = [offer(8_000_000, price_kind="spot"), offer(8_000, region="x", partial=("ram",))]
    assert usual_prices([*rows, *apart], KINDS) == {H100.accelerator: 12.0}


@pytest.mark.parametrize(
    ("kind", "usd_per_gpu", "fits"),
    [
        ("on_demand", 12.0, True),
        ("on_demand", 1.2, False),
        ("on_demand", 120.0, False),
        ("spot", 1.2, True),
        ("spot", 0.12, False),
        ("reserved_3y", 1.3, True),
        ("reserved_3y", 1.1, False),
    ],
)
def test_each_kind_has_bounds_of_its_own(kind: str, usd_per_gpu: float, fits: bool) -> None:
    row = offer(round(usd_per_gpu * 8e6), price_kind=kind)
    why = why_implausible(row, H100, {H100.accelerator: 12.0})
    assert (why is None) == fits
    assert why is None or f"{usd_per_gpu:.4f} USD per accelerator-hour is outside" in why


def test_an_accelerator_that_nobody_has_priced_yet_has_the_bounds_of_all() -> None:
    assert price_bounds(None, "spot") == (0.01, 150.0)


def test_a_slice_is_compared_as_a_whole_card() -> None:
    sliced = InstanceType(provider="aws", name="g6f", accelerator="L4-24GB", accelerator_count=Fraction(1, 8))
    assert why_implausible(offer(100_000), sliced, {"L4-24GB": 0.8}) is None
    assert why_implausible(offer(1_000_000), sliced, {"L4-24GB": 0.8}) is not None


def test_flex_start_and_calendar_may_cost_less_than_any_on_demand_price() -> None:
    assert price_bounds(10.0, "flex_start")[0] == price_bounds(10.0, "calendar")[0] == pytest.approx(1.0)
    assert price_bounds(10.0, "on_demand")[0] == pytest.approx(3.0)
