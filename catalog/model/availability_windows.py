"""Availability windows of owned machines, and how long work takes within them."""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from math import inf
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

MINUTES_PER_DAY = 24 * 60
_MINUTES_PER_WEEK = 7 * MINUTES_PER_DAY
_DAY = timedelta(days=1)
_MICROSECOND = timedelta(microseconds=1)
_PER_HOUR = 3_600_000_000
#: How far ahead windows are laid out. Work that does not fit into ten years never finishes.
_HORIZON = timedelta(days=3653)

#: Upper bound of a run's length: a thousand years.
_MOST_HOURS = 8_766_000.0

Span = tuple[datetime, datetime]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeSpan:
    """Free once, from `start` to `end` (aware UTC)."""

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        """Reject an end before the start."""
        if self.start.tzinfo is None or self.end.tzinfo is None:
            raise ValueError("a free span needs times with a zone")
        if self.end <= self.start:
            raise ValueError(f"ends at {self.end:%Y-%m-%dT%H:%MZ}, not after it starts at {self.start:%Y-%m-%dT%H:%MZ}")

    def spans(self, after: datetime, before: datetime) -> Iterator[Span]:
        """The span itself, if it overlaps the time between `after` and `before`."""
        if self.end > after and self.start < before:
            yield self.start, self.end


@dataclass(frozen=True, slots=True, kw_only=True)
class WeeklyWindow:
    """Free every week on `days` (0 is Monday) between two local times, in minutes after midnight.

    `until_minute` at or before `from_minute` means the next day. Times are local to `timezone`. A local time that a clock
    change skips is read as if the clocks had not changed yet; one that occurs twice is read as the first.
    """

    days: tuple[int, ...]
    from_minute: int
    until_minute: int
    timezone: str

    def __post_init__(self) -> None:
        """Reject days and times outside a week, and a window of zero length."""
        if not self.days or any(not 0 <= day < 7 for day in self.days):
            raise ValueError("a weekly window needs days from monday to sunday")
        if not (0 <= self.from_minute < MINUTES_PER_DAY and 0 <= self.until_minute <= MINUTES_PER_DAY):
            raise ValueError("a weekly window needs times of day from 00:00 to 24:00")
        if self.from_minute == self.until_minute:
            raise ValueError("from and to are the same time; write from 00:00 to 24:00 for whole days")

    @property
    def minutes(self) -> int:
        """Length of one window in local time, minutes."""
        length = self.until_minute - self.from_minute
        return length if length > 0 else length + MINUTES_PER_DAY

    def spans(self, after: datetime, before: datetime) -> Iterator[Span]:
        """The windows that overlap the time between `after` and `before`, in order, in UTC."""
        zone = ZoneInfo(self.timezone)
        day = after.astimezone(zone).date() - _DAY
        last = before.astimezone(zone).date()
        while day <= last:
            if day.weekday() in self.days:
                start = _utc(day, self.from_minute, zone)
                end = _utc(day, self.from_minute + self.minutes, zone)
                if end > after and start < before and end > start:
                    yield start, end
            day += _DAY


FreeWindow = FreeSpan | WeeklyWindow


def _utc(day: date, minutes: int, zone: ZoneInfo) -> datetime:
    """The UTC time of a local time of `zone`, given in minutes after midnight of `day`."""
    days, minute = divmod(minutes, MINUTES_PER_DAY)
    local = datetime.combine(day + days * _DAY, time(minute // 60, minute % 60), tzinfo=zone)
    return local.astimezone(UTC)


def overlap(first: FreeWindow, second: FreeWindow) -> bool:
    """Whether two windows of the same kind overlap. A span may lie within a weekly window."""
    if isinstance(first, FreeSpan) and isinstance(second, FreeSpan):
        return first.start < second.end and second.start < first.end
    if isinstance(first, WeeklyWindow) and isinstance(second, WeeklyWindow):
        return _weekly_overlap(first, second)
    return False


def _weekly_overlap(first: WeeklyWindow, second: WeeklyWindow) -> bool:
    for one in _week_minutes(first):
        for other in _week_minutes(second):
            gap = (other - one) % _MINUTES_PER_WEEK
            if gap < first.minutes or _MINUTES_PER_WEEK - gap < second.minutes:
                return True
    return False


def _week_minutes(window: WeeklyWindow) -> list[int]:
    return [day * MINUTES_PER_DAY + window.from_minute for day in window.days]


def elapsed_hours(
    windows: tuple[FreeWindow, ...],
    start: datetime,
    busy_hours: float,
    *,
    restart_hours: float = 0.0,
    after_hours: float = 0.0,
) -> float:
    """Elapsed hours from `after_hours` after `start` until `busy_hours` of free time are used.

    No windows means always free. Each later window in which work continues first loses `restart_hours`. Returns `inf` if
    the windows of the next ten years do not suffice. Raises `ValueError` for hours that are negative or nan, and for a
    start without a time zone.
    """
    if not (busy_hours >= 0 and restart_hours >= 0 and after_hours >= 0):
        raise ValueError(f"busy, restart and after hours {busy_hours, restart_hours, after_hours} must be 0 or more")
    if start.tzinfo is None:
        raise ValueError("start needs a time zone")
    if not windows or busy_hours in {0, inf}:
        return busy_hours
    if after_hours >= _HORIZON / timedelta(hours=1):
        return inf
    day = start.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    begun = (start - day) // _MICROSECOND + round(after_hours * _PER_HOUR)
    # Whole microseconds, so that work that exactly fills a window finishes in it.
    left, lost = round(busy_hours * _PER_HOUR), 0
    restart = round(min(restart_hours, _HORIZON / timedelta(hours=1)) * _PER_HOUR)
    calendar = _calendar(windows, day)
    for opens, closes in calendar[bisect_right(calendar, begun, key=_closes) :]:
        entered = max(opens, begun)
        usable = max(0, closes - entered - lost)
        if usable >= left:
            return (entered + lost + left - begun) / _PER_HOUR
        left -= usable
        lost = restart
    return inf


def elapsed_hours_of_all(
    windows: tuple[FreeWindow, ...], start: datetime, busy_hours: Floats, *, restart_hours: float, after_hours: Floats
) -> Floats:
    """`elapsed_hours` for an array of runs, run i starting `after_hours[i]` after `start`.

    Both arrays hold values >= 0 or inf. Every window after a run's first is shorter by the restart, so a cumulative sum of
    windows gives the one in which each run ends.
    """
    if not windows:
        return busy_hours
    day = start.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    opens, closes = np.array(_calendar(windows, day), np.int64).reshape(-1, 2).T
    restart = round(min(restart_hours, _HORIZON / timedelta(hours=1)) * _PER_HOUR)
    later = np.concatenate(([0], np.cumsum(np.maximum(closes - opens - restart, 0))))
    ends = np.isfinite(busy_hours) & (after_hours < _HORIZON / timedelta(hours=1)) & (busy_hours < _MOST_HOURS)
    busy = np.rint(np.where(ends, busy_hours, 0.0) * _PER_HOUR).astype(np.int64)
    begun = (start - day) // _MICROSECOND + np.rint(np.where(ends, after_hours, 0.0) * _PER_HOUR).astype(np.int64)
    first = np.searchsorted(closes, begun, side="right")
    ends &= first < len(opens)
    at = np.minimum(first, len(opens) - 1)
    entered = np.maximum(opens[at], begun)
    left = busy - (closes[at] - entered)
    last = np.searchsorted(later, later[at + 1] + left, side="left") - 1
    ends &= (left <= 0) | (last < len(opens))
    last = np.minimum(last, len(opens) - 1)
    used_up_at = opens[last] + restart + later[at + 1] + left - later[last]
    end = np.where(left <= 0, entered + busy, used_up_at)
    hours = np.where(ends, (end - begun) / _PER_HOUR, np.inf)
    return np.asarray(np.where(busy_hours == 0, 0.0, hours))


def _closes(span: tuple[int, int]) -> int:
    return span[1]


@lru_cache(maxsize=32)
def _calendar(windows: tuple[FreeWindow, ...], start: datetime) -> tuple[tuple[int, int], ...]:
    """Free intervals after `start` as (from, to) in microseconds after it, sorted and merged.

    Cached per start day, since ten years of windows take about 20 ms.
    """
    spans = sorted(span for window in windows for span in window.spans(start, start + _HORIZON))
    joined: list[tuple[int, int]] = []
    for opens, closes in spans:
        first = max(0, (opens - start) // _MICROSECOND)
        last = (closes - start) // _MICROSECOND
        if joined and first <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return tuple(joined)
