from datetime import UTC, datetime, timedelta
from math import inf, nan
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.catalog.model.availability_windows import (
    FreeSpan,
    FreeWindow,
    WeeklyWindow,
    elapsed_hours,
    elapsed_hours_of_all,
    overlap,
)

BERLIN = "Europe/Berlin"
NIGHTS = WeeklyWindow(days=(0, 1, 2, 3, 4), from_minute=18 * 60, until_minute=8 * 60, timezone=BERLIN)
WEEKEND = WeeklyWindow(days=(5, 6), from_minute=8 * 60, until_minute=18 * 60, timezone=BERLIN)
#: The nights in which clocks change are Sundays at 02:00 and 03:00 local time.
AUTUMN = datetime(2026, 10, 23, 12, tzinfo=UTC)
SPRING = datetime(2027, 3, 26, 12, tzinfo=UTC)


def is_free(window: FreeWindow, at: datetime) -> bool:
    """By the clock on the wall, minute by minute."""
    if isinstance(window, FreeSpan):
        return window.start <= at < window.end
    local = at.astimezone(ZoneInfo(window.timezone))
    minute = local.hour * 60 + local.minute
    if window.until_minute > window.from_minute:
        return local.weekday() in window.days and window.from_minute <= minute < window.until_minute
    today = local.weekday() in window.days and minute >= window.from_minute
    return today or ((local.weekday() - 1) % 7 in window.days and minute < window.until_minute)


def by_minutes(windows: tuple[FreeWindow, ...], start: datetime, busy: int, restart: int, days: int = 21) -> float:
    """Wall minutes until `busy` minutes are used, where each later window loses `restart` minutes."""
    left, lost, was_free, begun = busy, 0, False, False
    for minute in range(days * 24 * 60):
        free = any(is_free(window, start + timedelta(minutes=minute)) for window in windows)
        if free and not was_free and begun:
            lost = restart
        was_free = free
        if not free:
            continue
        begun = True
        if lost:
            lost -= 1
            continue
        left -= 1
        if left == 0:
            return minute + 1
    return inf


@pytest.mark.parametrize("start", [AUTUMN, SPRING], ids=["autumn", "spring"])
@pytest.mark.parametrize("windows", [(NIGHTS,), (NIGHTS, WEEKEND), (WEEKEND,)], ids=["nights", "both", "weekend"])
@pytest.mark.parametrize(("busy", "restart"), [(1, 0), (600, 0), (600, 30), (3000, 30), (6000, 45)])
def test_elapsed_hours_agree_with_counting_minutes_across_a_change_of_clocks(
    start: datetime, windows: tuple[FreeWindow, ...], busy: int, restart: int
) -> None:
    expected = by_minutes(windows, start, busy, restart, days=42)
    assert elapsed_hours(windows, start, busy / 60, restart_hours=restart / 60) * 60 == pytest.approx(
        expected, abs=1e-6
    )


def test_a_night_in_which_clocks_go_back_is_an_hour_longer() -> None:
    every_night = WeeklyWindow(days=(5,), from_minute=22 * 60, until_minute=6 * 60, timezone=BERLIN)
    (longer,) = every_night.spans(datetime(2026, 10, 24, 12, tzinfo=UTC), datetime(2026, 10, 25, 12, tzinfo=UTC))
    (shorter,) = every_night.spans(datetime(2027, 3, 27, 12, tzinfo=UTC), datetime(2027, 3, 28, 12, tzinfo=UTC))
    assert longer[1] - longer[0] == timedelta(hours=9)
    assert shorter[1] - shorter[0] == timedelta(hours=7)


spans = st.tuples(st.integers(0, 4000), st.integers(1, 2000)).map(
    lambda pair: FreeSpan(start=AUTUMN + timedelta(minutes=pair[0]), end=AUTUMN + timedelta(minutes=sum(pair)))
)


@given(st.lists(spans, min_size=1, max_size=4), st.integers(1, 3000), st.integers(0, 60))
@settings(max_examples=30, deadline=None)
def test_any_spans_even_overlapping_agree_with_counting_minutes(
    windows: list[FreeSpan], busy: int, restart: int
) -> None:
    expected = by_minutes(tuple(windows), AUTUMN, busy, restart, days=5)
    result = elapsed_hours(tuple(windows), AUTUMN, busy / 60, restart_hours=restart / 60) * 60
    assert result == expected or result == pytest.approx(expected, abs=1e-6)


@given(st.floats(0, 2000), st.floats(0, 500), st.floats(0, 5))
@settings(deadline=None)
def test_more_work_never_ends_sooner_and_never_sooner_than_its_own_hours(
    busy: float, added: float, restart: float
) -> None:
    first = elapsed_hours((NIGHTS, WEEKEND), AUTUMN, busy, restart_hours=restart)
    assert first >= busy - 1e-9
    assert elapsed_hours((NIGHTS, WEEKEND), AUTUMN, busy + added, restart_hours=restart) >= first - 1e-9


def test_a_machine_without_windows_is_always_free() -> None:
    assert elapsed_hours((), AUTUMN, 42.5, restart_hours=3) == 42.5


def test_windows_that_touch_are_one_and_lose_no_restart() -> None:
    week = WeeklyWindow(days=tuple(range(7)), from_minute=0, until_minute=1440, timezone="UTC")
    assert elapsed_hours((week,), AUTUMN, 100, restart_hours=1) == pytest.approx(100)


def test_work_that_the_windows_never_hold_is_never_done() -> None:
    free_span = FreeSpan(start=AUTUMN, end=AUTUMN + timedelta(hours=5))
    assert elapsed_hours((free_span,), AUTUMN, 5) == 5
    assert elapsed_hours((free_span,), AUTUMN, 5.001) == inf
    assert elapsed_hours((free_span,), AUTUMN + timedelta(days=1), 1) == inf
    assert elapsed_hours((WEEKEND,), AUTUMN, 100, restart_hours=10) == inf


def test_hours_below_zero_and_starts_without_a_zone_are_refused() -> None:
    for hours in (-1.0, nan):
        with pytest.raises(ValueError, match="0 or more"):
            elapsed_hours((NIGHTS,), AUTUMN, hours)
    with pytest.raises(ValueError, match="time zone"):
        elapsed_hours((NIGHTS,), AUTUMN.replace(tzinfo=None), 1)


def test_a_window_that_ends_before_it_starts_or_has_no_length_is_refused() -> None:
    with pytest.raises(ValueError, match="not after it starts"):
        FreeSpan(start=AUTUMN, end=AUTUMN)
    with pytest.raises(ValueError, match="whole days"):
        WeeklyWindow(days=(0,), from_minute=60, until_minute=60, timezone="UTC")


def test_a_night_overlaps_the_next_morning_and_sunday_night_overlaps_monday() -> None:
    monday = WeeklyWindow(days=(0,), from_minute=7 * 60, until_minute=9 * 60, timezone=BERLIN)
    sunday_night = WeeklyWindow(days=(6,), from_minute=22 * 60, until_minute=8 * 60, timezone=BERLIN)
    assert overlap(sunday_night, monday)
    assert overlap(monday, sunday_night)
    assert not overlap(NIGHTS, WEEKEND)
    assert not overlap(monday, WEEKEND)


@given(
    st.lists(st.tuples(st.floats(0.01, 40.0), st.floats(0.01, 40.0)), min_size=1, max_size=6),
    st.floats(0.0, 120.0),
    st.floats(0.0, 90.0),
    st.sampled_from((0.0, 0.25, 5.0)),
)
def test_many_runs_at_once_take_what_each_takes_alone(
    gaps: list[tuple[float, float]], busy: float, after: float, restart: float
) -> None:
    begin = datetime(2026, 11, 21, 8, tzinfo=UTC)
    windows, end = [], begin
    for wait, length in gaps:
        first = end + timedelta(hours=wait)
        end = first + timedelta(hours=length)
        windows.append(FreeSpan(start=first, end=end))
    alone = elapsed_hours(tuple(windows), begin, busy, restart_hours=restart, after_hours=after)
    several = elapsed_hours_of_all(
        tuple(windows), begin, np.array([busy, busy]), restart_hours=restart, after_hours=np.array([after, after])
    )
    assert several.tolist() == [alone, alone]
