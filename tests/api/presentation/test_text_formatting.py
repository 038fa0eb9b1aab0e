"""Figures for people: never wrong by their rounding, never able to harm the terminal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.api.presentation.text_formatting import (
    additional_hours,
    ago,
    difference_text,
    duration,
    layout,
    number,
    percent,
    plain,
    usd,
    usd_per_hour,
    when,
)
from gpuplan.planner.model.shared import Layout


@given(st.text())
def test_a_strangers_text_becomes_one_printable_line(text: str) -> None:
    shown = plain(text)
    assert shown.isprintable()
    assert "\x1b" not in shown


def test_an_escape_sequence_is_shown_and_not_obeyed() -> None:
    assert plain("a\x1b[31mred\r\nb\u202e") == "a\ufffd[31mred b\ufffd"


@pytest.mark.parametrize(
    ("hours", "expected"),
    [
        (0.001, "3.6 s"),
        (0.25, "15 min"),
        (36, "36 h"),
        (76, "3 d 4 h"),
        (24 * 200, "200 d"),
        (24 * 365, "1 year"),
        (24 * 365 * 3, "3 years"),
        (None, "unknown"),
        (float("inf"), "never"),
    ],
)
def test_hours_are_said_as_people_do(hours: float | None, expected: str) -> None:
    assert duration(hours) == expected


@pytest.mark.parametrize(
    ("amount", "expected"),
    [
        ("1234.5", "$1,234.50"),
        ("0", "$0.00"),
        ("0.004", "<$0.01"),
        ("-0.004", ">-$0.01"),
        (None, "unknown"),
        ("-3", "-$3.00"),
    ],
)
def test_money_is_never_rounded_to_nothing(amount: str | None, expected: str) -> None:
    assert usd(amount) == expected


def test_a_price_per_hour_below_ten_dollars_keeps_four_decimals() -> None:
    assert usd_per_hour("0.5265") == "$0.5265"
    assert usd_per_hour("55.04") == "$55.04"
    assert usd_per_hour(None) == "unknown"


def test_unknown_figures_are_said_to_be_unknown() -> None:
    assert number(None) == percent(None) == when(None) == layout(None) == "unknown"


def test_figures_keep_three_digits() -> None:
    assert [number(value) for value in (0.012345, 12.345, 1234.5, 7.0)] == ["0.0123", "12.3", "1,234", "7"]


def test_a_layout_names_only_what_is_split() -> None:
    parts = Layout(
        data=4,
        tensor=2,
        pipeline=1,
        context=1,
        expert=1,
        interleave=1,
        zero_stage=3,
        micro_batch=2,
        checkpointing="full",
    )
    assert layout(parts) == "data 4, tensor 2, ZeRO-3, micro-batch 2, full checkpointing"


def test_a_time_names_its_zone() -> None:
    assert when("2026-11-21T15:14:00+00:00") == "2026-11-21 15:14 UTC"
    assert when("2026-11-21") == "2026-11-21"


@pytest.mark.parametrize(
    ("hours", "signed", "expected"),
    [
        (13.7, "13.7 h", "13.7 h more"),
        (-0.00669, "-24.1 s", "24.1 s less"),
        (-600.0, "-25 d", "25 d less"),
        (1e-7, "0 s", "0 s more"),
    ],
)
def test_a_difference_of_hours_is_said_as_people_say_hours(hours: float, signed: str, expected: str) -> None:
    assert additional_hours(hours) == signed
    assert difference_text(additional_hours(hours)) == expected


@pytest.mark.parametrize(
    ("hours", "expected"),
    [
        (0.0, "0 minutes ago"),
        (1 / 60, "1 minute ago"),
        (0.99, "59 minutes ago"),
        (1.5, "1 hour ago"),
        (23.9, "23 hours ago"),
        (24 * 69 + 4, "69 days ago"),
        (24 * 365, "365 days ago"),
        (24 * 602, "1.6 years ago"),
    ],
)
def test_an_age_is_rounded_for_readers(hours: float, expected: str) -> None:
    assert ago(hours) == expected
