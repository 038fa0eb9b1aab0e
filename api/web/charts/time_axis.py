"""Times along a chart: a scale from moments to pixels, and marks at round hours, days, months or years."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_HOUR = timedelta(hours=1)
#: Distances between marks that people count in, below a month.
_STEPS = tuple(
    timedelta(minutes=minutes) for minutes in (5, 15, 30, 60, 180, 360, 720, 1440, 2 * 1440, 7 * 1440, 14 * 1440)
)
#: Above that, whole months: a quarter, half a year, years.
_MONTHS = (1, 2, 3, 6, 12, 24, 60, 120, 600)
_MONTH = timedelta(days=30.4)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeMark:
    """A mark at `x` pixels; `day` says that a day, month or year begins there."""

    x: float
    label: str
    day: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeAxis:
    """Moments from `begin` to `end` (aware, UTC), between `left` and `right` pixels."""

    begin: datetime
    end: datetime
    left: float
    right: float

    @classmethod
    def around(cls, moments: "list[datetime]", *, left: float, right: float) -> "TimeAxis":
        """An axis that shows all of these; one moment alone gets an hour. Raises `ValueError` without any."""
        begin, end = min(moments).astimezone(UTC), max(moments).astimezone(UTC)
        return cls(
            begin=begin, end=end if end - begin >= timedelta(minutes=1) else begin + _HOUR, left=left, right=right
        )

    def x(self, moment: datetime) -> float:
        """Where a moment stands, in pixels; what lies outside stands at the edge."""
        share = (moment - self.begin) / (self.end - self.begin)
        return round(self.left + (self.right - self.left) * min(1.0, max(0.0, share)), 1)

    def marks(self, *, most: int = 8) -> list[TimeMark]:
        """No more marks than `most`, at round times, with labels that say no more than is needed to tell them apart."""
        span = self.end - self.begin
        step = next((each for each in _STEPS if span / each <= most), None)
        moments = list(_every(self.begin, self.end, step) if step else _months(self.begin, self.end, most))
        shown, last = [], None
        for moment in moments:
            shown.append(
                TimeMark(x=self.x(moment), label=_label(moment, last, step), day=moment.hour == moment.minute == 0)
            )
            last = moment
        return shown


def _every(begin: datetime, end: datetime, step: timedelta) -> Iterator[datetime]:
    origin = datetime(begin.year, 1, 1, tzinfo=UTC)
    moment = origin + step * -((origin - begin) // step)
    while moment <= end:
        yield moment
        moment += step


def _months(begin: datetime, end: datetime, most: int) -> Iterator[datetime]:
    step = next((each for each in _MONTHS if (end - begin) / _MONTH / each <= most), _MONTHS[-1])
    count = -(-(begin.year * 12 + begin.month - 1 + (begin.day > 1 or begin.hour > 0)) // step) * step
    while (moment := datetime(count // 12, count % 12 + 1, 1, tzinfo=UTC)) <= end:
        yield moment
        count += step


def _label(moment: datetime, last: datetime | None, step: timedelta | None) -> str:
    """The date where it is another than the mark's before, the time where marks are closer than a day."""
    if step is None:
        return f"{moment:%b %Y}"
    date = "" if last is not None and last.date() == moment.date() else f"{moment.day} {moment:%b}"
    if date and (last is None or last.year != moment.year):
        date += f" {moment.year}" if step >= timedelta(days=1) else ""
    time = f"{moment:%H:%M}" if step < timedelta(days=1) and not (date and moment.hour == moment.minute == 0) else ""
    return " ".join(part for part in (date, time) if part)
