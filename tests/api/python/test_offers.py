"""`gpuplan.offers`: rows of the catalogue, and data frames where pandas or polars is installed."""

import sys

import pandas
import polars
import pytest

import gpuplan


@pytest.fixture
def h100() -> gpuplan.Offers:
    return gpuplan.offers(accelerator="H100", provider="aws")


def test_offers_are_rows_with_the_keys_of_the_command_line(h100: gpuplan.Offers) -> None:
    assert len(h100) == len(list(h100)) > 20
    assert {row["provider"] for row in h100} == {"aws"}
    assert all("H100" in row["accelerator"] for row in h100)
    assert isinstance(h100[0]["usd_per_hour"], str)
    assert list(h100[:2]) == [h100[0], h100[1]]


def test_changing_a_row_does_not_change_the_table(h100: gpuplan.Offers) -> None:
    h100[0]["provider"] = "mine"
    assert h100[0]["provider"] == "aws"


def test_only_the_first_rows_are_shown_and_all_are_counted(h100: gpuplan.Offers) -> None:
    for shown in (repr(h100), h100._repr_html_()):
        assert f"{len(h100):,} offers in snapshot {h100.snapshot_id}; the first 20 are shown" in shown
    assert h100._repr_html_().count("<tr>") == 21


def test_a_filter_that_no_offer_meets_is_refused_by_name() -> None:
    with pytest.raises(gpuplan.UnusableInput, match=r"provider: 'awss' matches nothing; accepted, e\.g\.: aws"):
        gpuplan.offers(provider="awss")


def test_a_pandas_frame_holds_prices_as_numbers_and_times_as_times(h100: gpuplan.Offers) -> None:
    frame = h100.to_pandas()
    assert len(frame) == len(h100)
    assert frame["usd_per_hour"].sum() == pytest.approx(sum(float(row["usd_per_hour"]) for row in h100))
    assert isinstance(frame["observed_at"].dtype, pandas.DatetimeTZDtype)


def test_a_polars_frame_holds_prices_as_numbers_and_times_as_times(h100: gpuplan.Offers) -> None:
    frame = h100.to_polars()
    assert frame.height == len(h100)
    assert frame.schema["usd_per_hour"] == polars.Float64
    assert isinstance(frame.schema["observed_at"], polars.Datetime)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_missing_library_is_named_with_the_way_to_install_it(
    h100: gpuplan.Offers, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=f"needs {library}, which is not installed: pip install {library}"):
        getattr(h100, f"to_{library}")()
