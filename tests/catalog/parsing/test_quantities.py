import math
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.catalog.parsing.quantities import count, fraction, gb, gib, hours, moment, usd, whole

amounts = st.floats(min_value=1e-3, max_value=8e4, allow_nan=False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7d", 168),
        ("36h", 36),
        ("90min", 1.5),
        ("1d 12h", 36),
        ("1h30min", 1.5),
        ("2 weeks", 336),
        ("P7D", 168),
        ("PT36H", 36),
        ("P1DT12H", 36),
        ("1,000 h", 1000),
        ("168", 168),
        (168, 168),
    ],
)
def test_a_duration_is_hours_whatever_its_unit(text: object, expected: float) -> None:
    assert hours(text) == expected


@given(amounts)
def test_a_duration_written_with_units_reads_back_exactly(amount: float) -> None:
    assert hours(f"{amount!r}h") == hours(amount) == amount
    assert hours(f"{amount!r} min") == pytest.approx(amount / 60, rel=1e-15)


@given(st.integers(1, 300), st.integers(0, 23), st.integers(0, 59))
def test_the_parts_of_a_duration_add_up(days: int, additional_hours: int, minutes: int) -> None:
    assert hours(f"{days}d {additional_hours}h {minutes}min") == hours(f"P{days}DT{additional_hours}H{minutes}M")


@pytest.mark.parametrize("text", [0, "0", "0h", "0min", "PT0S"])
def test_a_duration_may_be_zero_where_that_is_accepted(text: object) -> None:
    assert hours(text, zero=True) == 0.0
    with pytest.raises(ValueError, match="is zero"):
        hours(text)


@given(amounts)
def test_gib_is_not_gb_and_converts_exactly_both_ways(amount: float) -> None:
    assert gib(f"{amount!r} GiB") == amount
    assert gb(f"{amount!r} GB") == amount
    assert gib(f"{amount!r} GB") == pytest.approx(amount * 1e9 / 2**30, rel=1e-15)
    assert gb(f"{gib(f'{amount!r} GB')!r} GiB") == pytest.approx(amount, rel=1e-15)


@given(st.integers(1, 10**9))
def test_multiples_of_a_count_agree(number: int) -> None:
    assert count(f"{number}k") == count(number * 1000) == count(f"{number}e3") == number * 1000


@given(st.integers(1, 10**8), st.integers(0, 99))
def test_dollars_read_the_same_with_and_without_signs_and_commas(dollars: int, cents: int) -> None:
    plain = float(f"{dollars}.{cents:02}")
    assert usd(f"${dollars:,}.{cents:02}") == usd(f"{dollars}.{cents:02} USD") == usd(plain) == plain


@given(st.integers(1, 99))
def test_a_percentage_is_a_share(percent: int) -> None:
    assert fraction(f"{percent}%") == percent / 100


@pytest.mark.parametrize(
    ("read", "value", "message"),
    [
        (hours, "7 dogs", "'dogs' is not a unit of time"),
        (hours, "7m", "not a unit of time"),
        (hours, "P1M", "not an ISO 8601 duration in weeks"),
        (hours, "-7d", "is negative"),
        (hours, -3, "is negative"),
        (hours, "0h", "is zero"),
        (hours, "1e999999999h", "absurdly large"),
        (hours, 20261201, "absurdly large"),
        (hours, "inf", "is not a duration"),
        (hours, "7d and a bit", "36h, 7d, 90min"),
        (hours, True, "is not a number"),
        (hours, [7], "is not a number"),
        (gib, "80 Gb", "'Gb' is not a unit of memory"),
        (gib, "80 dogs", "80 GiB, 80 GB"),
        (gb, 0, "is zero"),
        (count, "1e40", "absurdly large"),
        pytest.param(count, 10**5000, "is not a finite number", id="5000 digits"),
        (count, "3 hundred", "300B, 4M, 2T"),
        (usd, "€500", "write US dollars"),
        (usd, 1e-9, "absurdly small"),
        (fraction, 1, "between 0 and 1"),
        (fraction, "0.99999999999999999999999", "between 0 and 1"),
        (fraction, "110%", "between 0 and 1"),
        (moment, "2026-12-01", "write 2026-12-01T00:00Z for UTC"),
        (moment, "2026-12-01T09:00", "has no time zone"),
        (moment, "tomorrow", "ISO 8601"),
        (moment, "0001-01-01T00:00+23:59", "outside the years"),
        (moment, 5, "ISO 8601"),
    ],
)
def test_what_is_no_quantity_is_refused_with_what_would_be(
    read: Callable[[object], object], value: object, message: str
) -> None:
    with pytest.raises(ValueError) as refused:
        read(value)
    assert "\n" not in str(refused.value)
    assert message in str(refused.value)


@pytest.mark.parametrize("read", [hours, gib, gb, count, usd, fraction])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, "nan", "", " ", None, "1" * 100, "1e-400", {}])
def test_no_reader_takes_what_is_not_a_positive_finite_number(read: Callable[[object], float], value: object) -> None:
    with pytest.raises(ValueError, match="write "):
        read(value)


@given(st.one_of(st.text(max_size=80), st.floats(), st.integers(), st.booleans(), st.none()))
def test_any_input_gives_a_positive_number_or_a_value_error(value: object) -> None:
    for read in (hours, gib, gb, count, usd, fraction):
        try:
            number = read(value)
        except ValueError:
            continue
        assert 0 < number < math.inf


def test_a_whole_number_may_carry_a_multiple_but_no_fraction() -> None:
    assert whole("4k", low=1, high=10_000) == whole(4e3, low=1, high=10_000) == 4000
    with pytest.raises(ValueError, match="write a whole number from 1 to 10 000"):
        whole(4.5, low=1, high=10_000)
    with pytest.raises(ValueError, match="not accepted"):
        whole(10_001, low=1, high=10_000)


def test_a_time_with_its_zone_is_utc_inside() -> None:
    assert moment("2026-12-01T09:00+01:00") == datetime(2026, 12, 1, 8, tzinfo=UTC) == moment("2026-12-01t08:00z")
