"""The table of constants: every row says what it is, whose it is and how far it may go."""

import pytest

from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.planner.performance.fitted_constants import FITTED, Constant, is_listed, places, table, trying, value

ROWS = list(table().values())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.name} {row.key}".strip())
def test_a_constant_is_within_its_bounds_and_says_unit_meaning_and_source(row: Constant) -> None:
    assert row.low <= row.value <= row.high
    assert row.low <= row.prior <= row.high
    assert row.unit
    assert row.meaning
    assert row.source


def test_fitted_constants_count_the_runs_that_identify_them_and_the_others_are_as_published() -> None:
    for row in ROWS:
        if row.source == FITTED:
            assert row.runs is not None or row.name == "band_sigma", row
        else:
            assert row.value == row.prior, row


def test_a_constant_that_no_run_identifies_stays_at_what_it_leans_on() -> None:
    assert value("class_matmul", "diffusion") == table()["class_matmul", "diffusion"].prior
    assert value("stack_share", "architecture Turing") == pytest.approx(value("stack_share"), rel=1e-3)


def test_an_unseen_chip_takes_the_value_of_its_generation_then_of_its_vendor_then_the_common_one() -> None:
    chips = accelerators()
    hopper, gaudi, trainium = chips["H200-141GB-SXM"], chips["Gaudi2"], chips["Trainium1"]
    assert value("stack_share", *places(hopper)) == value("stack_share", "architecture Hopper")
    assert value("stack_share", *places(gaudi)) == value("stack_share", "vendor Intel")
    assert value("attention_share", *places(trainium)) == value("attention_share")
    assert not is_listed("attention_share", *places(trainium))


def test_an_unknown_constant_is_an_error_and_not_a_default() -> None:
    with pytest.raises(KeyError):
        value("stack_shar")


def test_values_that_are_tried_are_put_back() -> None:
    before = value("overlap")
    with trying({("overlap", ""): 0.9}):
        assert value("overlap") == 0.9
    assert value("overlap") == before
